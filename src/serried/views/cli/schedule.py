"""``serried schedule``: any pipeline schedule drawn, timed, explained and written for others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from serried.errors import InputError, listed
from serried.pipeline import ENTRIES, fit, to_csv
from serried.pipeline.measured import MeasuredSchedule
from serried.pipeline.request import ScheduleRequest
from serried.views.cli.language import current_language, lang_option
from serried.views.cli.output import OutputChoice, as_json, form_option, output_option, width
from serried.views.layout.advice import advice_lines
from serried.views.schedule.document import chrome_document, schedules_document
from serried.views.schedule.picture import picture
from serried.views.schedule.text import (
    comparison_table,
    exceeded_line,
    headline,
    number_lines,
    registry_table,
)
from serried.views.sentences import tell
from serried.views.table import Table

ENDINGS = ("table", "json", "csv", "svg", "png")
FORMATS = (*ENDINGS, "chrome")
PICTURE_RANKS = 64


@click.command()
@click.argument("names", required=False, metavar="[NAME,...]")
@click.option(
    "--name",
    "names_option",
    metavar="NAME,...",
    help="Names of schedules, or a CSV file of actions; the same as NAME.",
)
@click.option("--stages", "--pp", "stages", metavar="NUMBER", help="Ranks of the pipeline.")
@click.option("--microbatches", metavar="NUMBER", help="Microbatches in a step.")
@click.option(
    "--chunks",
    metavar="NUMBER",
    help="Stages on each rank; by default 2 where the schedule can have several, else 1.",
)
@click.option(
    "--group",
    metavar="NUMBER",
    help="Microbatches that run through one model chunk before the next chunk, where the schedule "
    "has such groups; by default as many as ranks.",
)
@click.option(
    "--moe-overlap",
    is_flag=True,
    help="Run one more forward while warming up, as Megatron does to overlap MoE communication.",
)
@click.option(
    "--forward",
    metavar="NUMBER",
    help="Time of a forward in any unit, the same for all times: one number, or one for each "
    "stage; by default 1.",
)
@click.option(
    "--input-grad",
    metavar="NUMBER",
    help="Time of the input-gradient half of a backward; by default 1.",
)
@click.option(
    "--weight-grad",
    metavar="NUMBER",
    help="Time of the weight-gradient half of a backward; by default 1.",
)
@click.option(
    "--backward", metavar="NUMBER", help="Time of a whole backward; by default that of both halves."
)
@click.option(
    "--overlap",
    metavar="NUMBER",
    help="Time of a forward and a backward that overlap; by default their sum.",
)
@click.option(
    "--recompute",
    metavar="NUMBER",
    help="Time of running a forward again before its backward.",
)
@click.option(
    "--recompute-early",
    is_flag=True,
    help="Recompute while waiting for the gradient, not after it has come.",
)
@click.option(
    "--embedding",
    metavar="NUMBER",
    help="Times that the embedding adds on the first stage, as F,I,W: forward, input gradient, "
    "weight gradient.",
)
@click.option(
    "--loss",
    metavar="NUMBER",
    help="Times that the loss adds on the last stage, as F,I,W: forward, input gradient, weight "
    "gradient.",
)
@click.option(
    "--latency",
    metavar="NUMBER",
    help="Latency of a message between two ranks, in the unit of all times.",
)
@click.option(
    "--message-bytes",
    metavar="NUMBER",
    help="Size of a message, which --bandwidth turns into time.",
)
@click.option("--bandwidth", metavar="NUMBER", help="Bytes that a link moves in a unit of time.")
@click.option(
    "--blocking", is_flag=True, help="Let each message block its sender until it has arrived."
)
@click.option(
    "--all-reduce",
    metavar="NUMBER",
    help="Time of the all-reduce of a stage's gradients after its last backward.",
)
@click.option("--optimizer", metavar="NUMBER", help="Time of the optimizer's step at the end.")
@click.option(
    "--memory-limit",
    metavar="NUMBER",
    help="Microbatches whose activations fit on a rank; auto stays within it, other schedules are "
    "checked against it.",
)
@click.option(
    "--memory",
    metavar="NUMBER",
    help="What a forward, an input gradient and a weight gradient add to a rank's memory, as "
    "F,I,W; by default 1,0,-1.",
)
@click.option(
    "--of",
    metavar="stage|rank",
    help="What times and the memory limit are of: a stage, or a whole rank, whose stages share "
    "them; by default a stage.",
)
@click.option(
    "--fit",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Take the times of a recorded run (a folder or file).",
)
@click.option("--summary", is_flag=True, help="Leave the lists of actions out of the JSON.")
@form_option(FORMATS)
@lang_option
@output_option
def schedule(
    names: str | None,
    names_option: str | None,
    summary: bool,
    **options: Any,
) -> None:
    """Draws, times and explains pipeline schedules; without a name, lists them.

    \b
    serried schedule 1f1b --stages 4 --microbatches 8
    serried schedule 1f1b,zb-h1,zbv --stages 4 --microbatches 8 --latency 0.1
    serried schedule auto --stages 4 --microbatches 12 --memory-limit 6 -o plan.csv
    serried schedule my.csv --forward 10,12,10,12 --format json
    """
    if names and names_option and names != names_option:
        raise InputError(
            "schedules are named twice, '{one}' and --name '{two}'; name them once",
            one=names,
            two=names_option,
        )
    names = names_option or names
    output = OutputChoice.of(options, ENDINGS)
    form = output.form_among(FORMATS)
    if not names:
        if form != "table":
            raise InputError(
                "{form} is of a schedule and none is named; there are {names}",
                form=form,
                names=listed(ENTRIES, limit=len(ENTRIES)),
            )
        return output.show(registry_table(lang=output.lang))
    given = _given(options)
    several = [_measured(name, given) for name in names.split(",")]
    if form == "json":
        document = schedules_document(several, summary=summary, lang=output.lang)
        return output.write(as_json(document, depth=1))
    if form != "table" and len(several) > 1:
        raise InputError(
            "{form} holds one schedule and {count} are named; name one, or take table or json",
            form=form,
            count=len(several),
        )
    if form == "table":
        return _table(several, output)
    return output.write(_file(several[0], form))


def _table(several: list[MeasuredSchedule], output: OutputChoice) -> None:
    lang = output.lang
    parts: list[str | Text | Table] = []
    for measured in several:
        parts += [headline(measured, lang=lang), ""]
        # Beyond so many ranks only figures are printed; --format json still has every action.
        if measured.schedule.num_ranks <= PICTURE_RANKS:
            parts += [*picture(measured.simulation, width(), lang=lang), ""]
        if len(several) == 1:
            parts += number_lines(measured, lang=lang)
    if len(several) > 1:
        parts.append(comparison_table(several, lang=lang))
        parts += [line for each in several if (line := exceeded_line(each, lang=lang))]
    for measured in several:
        findings = [refusal.finding for refusal in measured.refusals]
        parts += advice_lines(findings, width=width(), lang=lang)
    return output.show(*parts)


def _file(measured: MeasuredSchedule, form: str) -> str | bytes:
    if form == "csv":
        return to_csv(measured.schedule)
    if form == "chrome":
        return as_json(chrome_document(measured), depth=1)
    if form == "png":
        from serried.views.schedule.png import schedule_png

        return schedule_png(measured.simulation)
    from serried.views.schedule.svg import schedule_svg

    return schedule_svg(measured.simulation)


def _measured(name: str, given: Mapping[str, object]) -> MeasuredSchedule:
    request = ScheduleRequest.of(name, given)
    measured = request.measured()
    entry = ENTRIES.get(request.name)
    # Unknown names were refused above: a name without an entry is a file of actions.
    if request.group and entry and not entry.takes_group:
        told = tell(
            "{name} has no groups; --group does nothing to it", current_language(), name=entry.name
        )
        click.echo(f"serried: {told}", err=True)
    return measured


_OF_A_RUN = ("forward", "input_grad", "weight_grad", "backward")
"""Times that a recorded run tells; overlap, recompute and all-reduce stay as typed."""


def _given(options: Mapping[str, Any]) -> Mapping[str, object]:
    """Returns what the options say, with the times of a run where there is one."""
    if not options["fit"]:
        return options
    typed = [f"--{name.replace('_', '-')}" for name in _OF_A_RUN if options[name] is not None]
    if typed:
        raise InputError(
            "--fit takes the times of {run}, and {typed} says others; leave out one of them",
            run=options["fit"],
            typed=listed(typed, last="and"),
        )
    from serried.trace.merge.in_memory import merge

    run = fit(merge([options["fit"]]).spans)
    return {**options, **{name: getattr(run, name) for name in _OF_A_RUN}}
