"""``serried collective``: who sends what to whom, step by step, and what each step costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from serried.errors import InputError
from serried.plan.busbw import read_busbw
from serried.plan.collective_price import PricedCollective
from serried.views.cli.language import lang_option
from serried.views.cli.options import link_options
from serried.views.cli.output import OutputChoice, as_json, output_option, width
from serried.views.collective.document import collective_document
from serried.views.collective.text import (
    about_lines,
    legend_lines,
    registry_table,
    steps_table,
    verdict_lines,
)
from serried.views.explain.plain import wrap
from serried.views.job.collective import FIELDS, CollectiveWords
from serried.views.table import Table

ENDINGS = ("table", "json")


@click.command()
@click.argument("name", required=False, metavar="[NAME]")
@click.option("--ranks", metavar="N", help="Ranks of the group; by default 8.")
@click.option(
    "--gpus-per-node",
    metavar="N",
    help="Ranks on a node, or on each node where they differ, such as 4,1; by default what the "
    "network has.",
)
@link_options
@click.option(
    "--steps",
    metavar="FIRST:END",
    help="Print these steps, from the first to before the end; numbers count from 0.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(ENDINGS),
    help="Form of the answer; by default by the ending of --output, else a table.",
)
@lang_option
@output_option
def collective(name: str | None, **options: Any) -> None:
    """Shows who sends which block to whom in a collective, and what each step costs.

    Without NAME it lists every collective with its algorithms.

    \b
    serried collective all-reduce --ranks 8 --algorithm ring --bytes 1GiB
    serried collective all-gather --ranks 16 --network a100
    serried collective all-reduce --ranks 16 --latency 3,14 --bandwidth 370,45
    serried collective all-reduce --ranks 8 --busbw busbw.json --format json
    """
    output = OutputChoice.of(options, ENDINGS)
    if not name:
        return output.show(registry_table(lang=output.lang))
    form = output.form_among(ENDINGS)
    words = {field: options[field] or "" for field in FIELDS if field != "name"}
    measured = options["busbw"] and read_busbw(Path(options["busbw"]))
    priced = CollectiveWords(words | {"name": name}).question(measured=measured or None).priced()
    return show(priced, steps_of(options["steps"]), form, output)


def show(
    priced: PricedCollective, steps: tuple[int, int] | None, form: str, output: OutputChoice
) -> None:
    """Prints or writes a collective in one of its forms."""
    if form == "json":
        return output.write(as_json(collective_document(priced, steps), depth=1))
    lang = output.lang
    parts: list[str | Table] = [*verdict_lines(priced, lang=lang)]
    if len(priced.collective.steps):
        parts += ["", *about_lines(priced, lang=lang), ""]
        parts += [steps_table(priced, steps, lang=lang), ""]
        lines = legend_lines(priced, steps, lang=lang)
        parts += [part for line in lines for part in wrap(line, width())]
    return output.show(*parts)


def steps_of(text: str | None) -> tuple[int, int] | None:
    """Reads FIRST:END; raises InputError for what is no such range.

    >>> steps_of("10:20")
    (10, 20)
    """
    if not text:
        return None
    first, colon, end = text.partition(":")
    if not colon or not all(each.isascii() and each.isdecimal() and len(each) < 10
                            for each in (first, end)):  # fmt: skip
        raise InputError("--steps takes a range such as 0:10; it got '{text}'", text=text[:40])
    return int(first), int(end)
