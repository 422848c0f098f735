"""``serried tune``: the best layout for a training on this machine, planned first and then run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from serried.errors import InputError
from serried.views.cli.count import COUNT
from serried.views.cli.language import current_language
from serried.views.cli.output import TABLE_OR_JSON, OutputChoice, as_json, output_option
from serried.views.cli.train.options import SectionedCommand, train_settings, with_options
from serried.views.runs.tuning import (
    tuning_document,
    tuning_notes,
    tuning_table,
    tuning_verdict,
)
from serried.views.sentences import tell

OF_ONE_RUN = (
    *("emit", "nodes", "gpus_per_node", "image", "save_dir", "save_every", "keep", "resume"),
    *("load", "export", "log_file", "tensorboard", "explain"),
)
"""Options of a training that say nothing of many short ones."""

if TYPE_CHECKING:
    from serried.runtime.tune.tuning import RunBegun


class TuneCommand(SectionedCommand):
    """Shows the options of a training, then those of tuning."""

    own_sections = {"Tuning": 4}  # noqa: RUF012


@click.command(cls=TuneCommand)
@with_options
@click.option(
    "--best",
    type=COUNT,
    default=5,
    show_default=True,
    help="How many of the layouts that are planned best are run.",
)
@click.option(
    "--schedules",
    metavar="NAME,...",
    help="Schedules that are tried, joined by commas; by default seven that differ most.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(TABLE_OR_JSON),
    help="Form of the answer; by default a table, or JSON where --output ends in .json.",
)
@output_option
def tune(best: int, schedules: str | None, **options: Any) -> None:
    """Finds the best layout of a training for the ranks at hand.

    Takes the options of serried train; tp, pp, schedule and microbatches are what is searched.
    Two to five short runs show what the work takes, every layout is planned from them, and the
    best are run: planned beside measured.

    \b
    serried tune --nproc 4 --layers 8 --steps 8
    serried tune --nproc 4 --layers 8 --steps 8 --compute emulated --forward-ms 40 --backward-ms 80
    """
    from serried.runtime.tune.candidates import SCHEDULES, candidates
    from serried.runtime.tune.tuning import tune as tuned

    _require_of_many()
    output = OutputChoice.of(options, TABLE_OR_JSON)
    form = output.form_among(TABLE_OR_JSON)
    settings = train_settings(None, options)
    names = tuple(name.strip() for name in schedules.split(",")) if schedules else SCHEDULES
    folder: Path | None = settings.trace_dir
    found = tuned(
        candidates(settings, names),
        most_runs=best,
        steps=settings.steps,
        folder=folder,
        tell=_tell,
    )
    if form == "json":
        output.write(as_json(tuning_document(found)))
        return
    lang = output.lang
    verdict, notes = tuning_verdict(found, lang=lang), tuning_notes(found, lang=lang)
    output.show(*verdict, "", tuning_table(found, lang=lang), *notes)


def _require_of_many() -> None:
    """Raises InputError for an option that belongs to one training, not to the runs of tuning."""
    context = click.get_current_context()
    for word in OF_ONE_RUN:
        if context.get_parameter_source(word) is not click.core.ParameterSource.DEFAULT:
            raise InputError(
                "{option} belongs to one training, and tuning runs several; leave it out here, and "
                "give it to serried train with the layout that is found",
                option=f"--{word.replace('_', '-')}",
            )


def _tell(begun: RunBegun) -> None:
    """Prints on stderr which run begins."""
    click.echo(
        tell(
            "run {number} of {total}, which calibrates: {name}"
            if begun.is_calibrating
            else "run {number} of {total}: {name}",
            current_language(),
            number=begun.number,
            total=begun.total,
            name=begun.candidate.name,
        ),
        err=True,
    )
