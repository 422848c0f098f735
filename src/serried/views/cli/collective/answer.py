"""What a command answers of a collective: its steps, or its algorithms beside one another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from serried.collective.placed_group import PlacedGroup
from serried.errors import InputError
from serried.plan.busbw import read_busbw
from serried.plan.collective_crossing import AlgorithmsBySize
from serried.plan.collective_price import CollectiveQuestion, PricedCollective
from serried.views.cli.output import OutputChoice, as_json, width
from serried.views.collective.comparison import (
    comparison_document,
    comparison_table,
    comparison_verdict,
    crossing_lines,
)
from serried.views.collective.document import collective_document
from serried.views.collective.text import (
    about_lines,
    legend_lines,
    steps_table,
    verdict_lines,
)
from serried.views.explain.plain import wrap
from serried.views.job.collective import FIELDS, CollectiveWords
from serried.views.table import Table

ENDINGS = ("table", "json", "svg", "png")
PICTURES = ("svg", "png")
ALL = "all"
"""What ``--algorithm`` takes to compare."""


def answer_collective(
    name: str,
    options: Mapping[str, Any],
    output: OutputChoice,
    *,
    group: PlacedGroup | None = None,
) -> None:
    """Answers what options ask of the collective ``name``, over ``group`` or their own ranks."""
    words = {field: options.get(field) or "" for field in FIELDS} | {"name": name}
    is_compared = options.get("compare_algorithms") or words["algorithm"].lower() == ALL
    measured = read_busbw(Path(options["busbw"])) if options["busbw"] else None
    if is_compared:
        words["algorithm"] = ""
    asked = CollectiveWords(words).question(group, measured)
    if options.get("explain"):
        return _explain(asked, output)
    if is_compared:
        return _compare(asked, output)
    return _show(asked.priced(), steps_of(options["steps"]), output)


def _explain(asked: CollectiveQuestion, output: OutputChoice) -> None:
    """Prints what a collective is for; raises InputError for one that there is not."""
    from serried.views.explain.collectives import explained_collective
    from serried.views.explain.plain import as_text

    if output.form_among(ENDINGS) != "table":
        raise InputError("--explain is text; leave out --format, or write into a .txt file")
    name = asked.ways()[0].collective.name
    output.write(as_text(explained_collective(name, lang=output.lang), width()))


def _show(priced: PricedCollective, steps: tuple[int, int] | None, output: OutputChoice) -> None:
    """Prints or writes a collective in one of its forms."""
    form, lang = output.form_among(ENDINGS), output.lang
    if form == "json":
        return output.write(as_json(collective_document(priced, steps), depth=1))
    if form in PICTURES:
        from serried.views.collective.steps_picture import steps_picture

        drawing = steps_picture(priced, lang=lang)
        return output.write(drawing.svg() if form == "svg" else drawing.png())
    parts: list[str | Table] = [*verdict_lines(priced, lang=lang)]
    if len(priced.collective.steps):
        parts += ["", *about_lines(priced, lang=lang), ""]
        parts += [steps_table(priced, steps, lang=lang), ""]
        parts += _wrapped(legend_lines(priced, steps, lang=lang))
    return output.show(*parts)


def _compare(asked: CollectiveQuestion, output: OutputChoice) -> None:
    """Prints or writes the algorithms of a collective beside one another."""
    if asked.group.size == 1:
        return _show(asked.priced(), None, output)
    by_size = AlgorithmsBySize.of(asked)
    form, lang = output.form_among(ENDINGS), output.lang
    if form == "json":
        return output.write(as_json(comparison_document(by_size), depth=1))
    if form in PICTURES:
        from serried.views.collective.curves import curves

        drawing = curves(by_size, lang=lang)
        return output.write(drawing.svg() if form == "svg" else drawing.png())
    top = _wrapped([comparison_verdict(by_size, lang=lang)])
    lines = crossing_lines(by_size, lang=lang)
    below = ["", *lines] if lines else []
    return output.show(*top, "", comparison_table(by_size, lang=lang), *below)


def _wrapped(lines: list[str]) -> list[str]:
    return [part for line in lines for part in wrap(line, width())]


def steps_of(text: str | None) -> tuple[int, int] | None:
    """Reads FIRST:END; raises InputError for what is no such range.

    >>> steps_of("10:20")
    (10, 20)
    """
    if not text:
        return None
    ends = text.split(":")
    if len(ends) != 2 or not all(_is_number(each) for each in ends):
        raise InputError("--steps takes a range such as 0:10; it got '{text}'", text=text[:40])
    return int(ends[0]), int(ends[1])


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10
