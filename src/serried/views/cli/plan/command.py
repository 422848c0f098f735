"""``serried plan``: whether a job fits, how long its step takes, and what of."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from serried.errors import InputError, listed
from serried.finding import said
from serried.launch.request import LayoutRequest
from serried.plan.asked import of_groups, plan_request
from serried.plan.job_plan import JobPlan, job_plan
from serried.views.cli.job import request_of
from serried.views.cli.language import lang_option
from serried.views.cli.options import job_options, size_options
from serried.views.cli.output import PATH, OutputChoice, as_json, form_option, output_option, width
from serried.views.cli.plan.from_run import from_options, require_run, retimed_plan
from serried.views.cli.plan.goodput import goodput_options, job_goodput, require_goodput
from serried.views.cli.plan.options import plan_constants, plan_options, plan_words

ENDINGS = ("table", "json", "svg", "png")
CHAKRA = ".et"
LONG_TRACE = 200_000
"""Spans from which on a timeline takes seconds to write, and is told before."""


@click.command()
@click.argument("file", required=False, type=PATH)
@plan_options
@size_options
@job_options
@from_options
@goodput_options
@click.option(
    "--calibrate",
    type=PATH,
    multiple=True,
    metavar="FILE|RUN",
    help="Fit the constants of your cluster to measured steps, CSV rows of model, gpu, gpus, tp … "
    "and step_s, or recorded runs, and write them into --output, a TOML file for --constants.",
)
@click.option(
    "--emit",
    metavar="TARGET",
    help="Print a launch script or config for this layout; a name that is not known lists those "
    "that are.",
)
@click.option(
    "--explain", is_flag=True, help="Print every formula with its numbers and its source."
)
@click.option(
    "--trace",
    type=PATH,
    metavar="FILE",
    help="Write the planned step of all ranks as a timeline that the workbench, Chrome and "
    "Perfetto open: .json or .pftrace; or as a folder of Chakra traces for ASTRA-sim: .et.",
)
@lang_option
@form_option(ENDINGS)
@output_option
def plan(file: Path | None, **options: Any) -> int:
    """Plans a job: whether it fits, where it is fullest, how long a step takes and why.

    FILE is a launch script or config, from which the layout, the model and the training are read;
    options go before what it says.

    \b
    serried plan train.sh --cluster h100
    serried plan --model llama3-8b --cluster h100 --world-size 16 --tp 2 --pp 4 \\
        --sequence 8192 --global-batch 64
    serried plan train.sh --cluster h100 --tp 4 --recompute full -o plan.svg
    serried plan --calibrate runs.csv --calibrate runs/pp4 -o cluster.toml
    serried plan --from runs/pp4 --pp 2 --schedule zbv --microbatches 16
    serried plan --model ./config.json --cluster gb200 --world-size 64 --sequence 4096 \\
        --global-batch 256 --compute mxfp8 --format json
    serried plan train.sh --cluster h100 --gpu-mtbf 50000 --checkpoint-time 30 --restart-time 600
    """
    if options["runs"]:
        return retimed_plan(options)
    require_run(options)
    require_goodput(options)
    if options["calibrate"]:
        from serried.views.cli.plan.calibrate import calibrated

        return calibrated(options)
    output = OutputChoice.of(options, ENDINGS)
    _require_one_answer(output, options)
    asked = request_of(file, options)
    made = job_plan(plan_request(asked, plan_words(options)), plan_constants(options))
    asked = of_groups(asked)
    if options["trace"]:
        _write_trace(made, asked, options)
    if options["emit"]:
        from serried.launch.write import write

        layout, placement = asked.laid_out()
        output.write(write(options["emit"], layout, placement, sizes=asked.sizes()))
    elif options["explain"]:
        from serried.views.plan.explain import explained

        known = plan_constants(options)
        output.show(*explained(made, columns=width(), lang=output.lang, constants=known))
    else:
        _answer(made, output, asked, options)
    return 0 if made.memory.fits else 1


def _require_one_answer(output: OutputChoice, options: Mapping[str, Any]) -> None:
    """Raises InputError for options of which one would do nothing."""
    if len(options.get("world_size") or ()) > 1:
        raise InputError(
            "a plan is of one number of ranks, and --world-size gives several; give one"
        )
    if options["explain"] and options["emit"]:
        raise InputError("--explain and --emit are two answers; ask for one of them")
    if options["emit"] and options["form"]:
        raise InputError("--emit writes a launch file, which has no --format; leave it out")
    if options["explain"] and output.form_among(ENDINGS) != "table":
        raise InputError("--explain is text; leave out --format, or write into a .txt file")


def _write_trace(made: JobPlan, asked: LayoutRequest, options: Mapping[str, Any]) -> None:
    """Writes the planned step as a timeline; raises InputError for an ending that says no form."""
    from serried.plan.planned_trace import planned_trace
    from serried.plan.time.step_end import step_ends
    from serried.trace.formats.chakra.writing import write_chakra
    from serried.trace.formats.chrome import write_chrome
    from serried.trace.formats.perfetto import write_perfetto
    from serried.views.cli.language import current_language
    from serried.views.cli.progress import told
    from serried.views.sentences import tell

    path: Path = options["trace"]
    writers = {".json": write_chrome, ".pftrace": write_perfetto}
    write = writers.get(path.suffix.lower())
    if write is None and path.suffix.lower() != CHAKRA:
        raise InputError(
            "{path} has no suffix that says what to write; those that do: {suffixes}",
            path=path,
            suffixes=listed([*writers, CHAKRA]),
        )
    layout, placement = asked.laid_out()
    constants = plan_constants(options)
    planned = planned_trace(made.asked, layout, placement, constants)
    if len(planned.spans) >= LONG_TRACE:
        writing = said(
            "writing {spans:,} spans of {ranks:,} ranks",
            spans=len(planned.spans),
            ranks=len(planned.ranks),
        )
        told(current_language())(writing)
    if write is None:
        write_chakra(planned, path, ends=step_ends(made.asked, layout, constants))
    else:
        write(planned, path)
    click.echo(tell("wrote {path}", current_language(), path=path), err=True)


def _answer(
    made: JobPlan, output: OutputChoice, asked: LayoutRequest, options: Mapping[str, Any]
) -> None:
    form = output.form_among(ENDINGS)
    require_goodput(options, form)
    failing = job_goodput(made, options)
    if form == "json":
        from serried.views.plan.document import plan_document, read_document
        from serried.views.plan.goodput_text import goodput_document

        document = plan_document(made, lang=output.lang)
        if asked.config:
            document["read"] = read_document(asked.config, lang=output.lang)
        if failing:
            document["goodput"] = goodput_document(failing)
        output.write(as_json(document))
    elif form in ("svg", "png"):
        from serried.views.plan.picture import plan_picture

        # The letters of a PNG are drawn without a font, and have no Chinese.
        drawing = plan_picture(made, lang="en" if form == "png" else output.lang)
        if form == "png" and output.path is None:
            raise InputError("a PNG goes into a file; give one, such as -o plan.png")
        output.write(drawing.svg() if form == "svg" else drawing.png())
    else:
        from serried.views.plan.text import plan_parts

        parts = plan_parts(made, columns=width(), lang=output.lang)
        if failing:
            from serried.views.plan.goodput_text import goodput_parts

            parts += ["", *goodput_parts(failing, columns=width(), lang=output.lang)]
        output.show(*parts)
