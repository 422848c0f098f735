"""``serried schedule``: any pipeline schedule drawn, timed, explained and written for others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from serried.errors import InputError
from serried.pipeline import (
    ENTRIES,
    Costs,
    Extra,
    Links,
    fit,
    to_csv,
)
from serried.pipeline.costs import Number
from serried.pipeline.in_flight import TO_WEIGHT
from serried.pipeline.measured import MeasuredSchedule, ScheduleRequest
from serried.views.cli.language import current_language, lang_option
from serried.views.cli.options import COUNT
from serried.views.cli.output import OutputChoice, as_json, output_option, width
from serried.views.job.exact_number import read_numbers
from serried.views.layout.advice import advice_lines
from serried.views.schedule.document import chrome_document, schedules_document
from serried.views.schedule.picture import picture
from serried.views.schedule.png import schedule_png
from serried.views.schedule.svg import schedule_svg
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


class Numbers(click.ParamType[tuple[Number, ...]]):
    """Reads exact numbers apart by commas: 10, 0.601 or 1/3; one, or one for each stage."""

    name = "number"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Number, ...]:
        """Returns the numbers; raises InputError when one is none."""
        if isinstance(value, tuple):
            return value
        option = param.opts[0] if param else "the option"
        return read_numbers(option, str(value))


NUMBERS = Numbers()
ONE, NOTHING = (1,), (0,)


@click.command()
@click.argument("names", required=False, metavar="[NAME,...]")
@click.option(
    "--name",
    "names_option",
    metavar="NAME,...",
    help="Names of schedules, or a CSV file of actions; the same as NAME.",
)
@click.option("--stages", "--pp", "num_ranks", type=COUNT, help="Ranks of the pipeline.")
@click.option("--microbatches", type=COUNT, help="Microbatches in a step.")
@click.option(
    "--chunks",
    type=COUNT,
    help="Stages on each rank; by default 2 where the schedule can have several, else 1.",
)
@click.option(
    "--group",
    type=COUNT,
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
    type=NUMBERS,
    default=ONE,
    help="Time of a forward in any unit, the same for all times: one number, or one for each "
    "stage; by default 1.",
)
@click.option(
    "--input-grad",
    type=NUMBERS,
    default=ONE,
    help="Time of the input-gradient half of a backward; by default 1.",
)
@click.option(
    "--weight-grad",
    type=NUMBERS,
    default=ONE,
    help="Time of the weight-gradient half of a backward; by default 1.",
)
@click.option(
    "--backward", type=NUMBERS, help="Time of a whole backward; by default that of both halves."
)
@click.option(
    "--overlap",
    type=NUMBERS,
    help="Time of a forward and a backward that overlap; by default their sum.",
)
@click.option(
    "--recompute",
    type=NUMBERS,
    default=NOTHING,
    help="Time of running a forward again before its backward.",
)
@click.option(
    "--recompute-early",
    is_flag=True,
    help="Recompute while waiting for the gradient, not after it has come.",
)
@click.option(
    "--embedding",
    type=NUMBERS,
    default=NOTHING,
    help="Times that the embedding adds on the first stage, as F,I,W: forward, input gradient, "
    "weight gradient.",
)
@click.option(
    "--loss",
    type=NUMBERS,
    default=NOTHING,
    help="Times that the loss adds on the last stage, as F,I,W: forward, input gradient, weight "
    "gradient.",
)
@click.option(
    "--latency",
    type=NUMBERS,
    default=NOTHING,
    help="Latency of a message between two ranks, in the unit of all times.",
)
@click.option(
    "--message-bytes",
    type=NUMBERS,
    default=NOTHING,
    help="Size of a message, which --bandwidth turns into time.",
)
@click.option("--bandwidth", type=NUMBERS, help="Bytes that a link moves in a unit of time.")
@click.option(
    "--blocking", is_flag=True, help="Let each message block its sender until it has arrived."
)
@click.option(
    "--all-reduce",
    type=NUMBERS,
    default=NOTHING,
    help="Time of the all-reduce of a stage's gradients after its last backward.",
)
@click.option(
    "--optimizer", type=NUMBERS, default=NOTHING, help="Time of the optimizer's step at the end."
)
@click.option(
    "--memory-limit",
    type=NUMBERS,
    help="Microbatches whose activations fit on a rank; auto stays within it, other schedules are "
    "checked against it.",
)
@click.option(
    "--memory",
    type=NUMBERS,
    help="What a forward, an input gradient and a weight gradient add to a rank's memory, as "
    "F,I,W; by default 1,0,-1.",
)
@click.option(
    "--fit",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Take the times of a recorded run (a folder or file).",
)
@click.option("--summary", is_flag=True, help="Leave the lists of actions out of the JSON.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Form of the answer; by default by the ending of --output, else a table.",
)
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
    if not names:
        return output.show(registry_table(lang=output.lang))
    form = output.form_among(FORMATS)
    costs = _costs(options)
    several = [_measured(name.strip(), options, costs) for name in names.split(",")]
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
        return schedule_png(measured.simulation)
    return schedule_svg(measured.simulation)


def _measured(name: str, options: Mapping[str, Any], costs: Costs) -> MeasuredSchedule:
    entry = ENTRIES.get(name.lower())
    request = ScheduleRequest(
        name,
        stages=options["num_ranks"],
        microbatches=options["microbatches"],
        chunks=options["chunks"],
        group=options["group"],
        moe_overlap=options["moe_overlap"],
        costs=costs,
        memory_limit=_one(options, "memory_limit"),
        weights=_three("memory", options["memory"]) if options["memory"] else TO_WEIGHT,
    )
    measured = request.measured()
    # Unknown names were refused above: a name without an entry is a file of actions.
    if request.group and entry and not entry.takes_group:
        told = tell(
            "{name} has no groups; --group does nothing to it", current_language(), name=entry.name
        )
        click.echo(f"serried: {told}", err=True)
    return measured


def _costs(options: Mapping[str, Any]) -> Costs:
    """Returns the costs that the options say, or those of a run with the rest of the options."""
    given = {name: _duration(options[name]) for name in _DURATIONS}
    if options["fit"]:
        from serried.trace.merge.merge import merge

        run = fit(merge([options["fit"]]).spans)
        # A run tells these four times alone; overlap, recompute and all-reduce stay as typed.
        given |= {name: getattr(run, name) for name in _OF_A_RUN}
    latency, size = _one(options, "latency"), _one(options, "message_bytes")
    return Costs(
        **given,
        is_recompute_early=options["recompute_early"],
        embedding=Extra(*_three("embedding", options["embedding"])),
        loss=Extra(*_three("loss", options["loss"])),
        links=Links(latency, size, _one(options, "bandwidth"), options["blocking"]),
        optimizer=_one(options, "optimizer"),
    )


_OF_A_RUN = ("forward", "input_grad", "weight_grad", "backward")
_DURATIONS = (*_OF_A_RUN, "overlap", "recompute", "all_reduce")


def _duration(numbers: tuple[Number, ...] | None) -> Any:
    """Returns one number, or one for each stage, or None where the option was not given."""
    return numbers[0] if numbers and len(numbers) == 1 else numbers


def _one(options: Mapping[str, Any], name: str) -> Any:
    numbers = options[name]
    if numbers and len(numbers) > 1:
        raise InputError(
            "--{option} takes one number; it got {count}",
            option=name.replace("_", "-"),
            count=len(numbers),
        )
    return _duration(numbers)


def _three(option: str, numbers: tuple[Number, ...]) -> tuple[Number, Number, Number]:
    """Returns what F, I and W take; nothing where the option is left at 0."""
    if numbers == NOTHING:
        return 0, 0, 0
    if len(numbers) != 3:
        raise InputError(
            "--{option} takes three numbers, for F, I and W, such as 1,0,2; it got {count}",
            option=option,
            count=len(numbers),
        )
    return numbers[0], numbers[1], numbers[2]
