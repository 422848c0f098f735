"""``serried trace stats``: everything that is measured of a recorded run."""

from __future__ import annotations

from pathlib import Path

import click

from serried.trace.formats.megatron.statistics import measure_timers
from serried.trace.formats.megatron.timers import TimerLog, timer_log
from serried.trace.formats.reading import read_recording
from serried.trace.gpu.activity import GpuTrace
from serried.trace.measure.analysis import Analysis, analyse
from serried.trace.measure.rank_figures import figures_of
from serried.trace.measure.step_table import StepTable
from serried.trace.merge.files import Folder
from serried.trace.model.trace import Trace
from serried.views.cli.language import lang_option
from serried.views.cli.output import TABLE_OR_JSON, OutputChoice, as_json, printed_form_option
from serried.views.cli.progress import told
from serried.views.cli.trace.arguments import (
    NO_REFERENCES,
    References,
    given,
    places_argument,
    reference_options,
    sizes_options,
)
from serried.views.cli.trace.gpus import tell_gpus
from serried.views.layout.advice import warned
from serried.views.table import Table
from serried.views.trace.analysis_text import (
    by_table,
    communication_lines,
    order_lines,
    path_lines,
    planned_lines,
    slowest_lines,
    throughput_lines,
)
from serried.views.trace.document import (
    analysis_document,
    figures_document,
    stats_document,
    table_document,
)
from serried.views.trace.text import (
    bubble_lines,
    headlines,
    left_out_lines,
    message_lines,
    ranks_table,
    steps_table,
    what_if_lines,
)
from serried.views.trace.timers import (
    timed_ranks_table,
    timer_headlines,
    timer_lines,
    timers_document,
    timers_table,
)
from serried.views.trace.traffic import traffic_document, traffic_table
from serried.views.trace.verdict import run_verdict_lines

KINDS_SHOWN = 6
"""Operations over kinds of groups that the terminal shows; JSON has them all."""


@click.command("stats", short_help="Measure a recorded run, writing nothing.")
@places_argument
@click.option(
    "--by",
    metavar="AXES",
    help="Print a row per step, rank or stage, or per several of them: --by step,stage.",
)
@click.option(
    "--tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Tokens of one microbatch, to work out tokens per second.",
)
@reference_options
@sizes_options
@printed_form_option
@lang_option
def stats(
    places: tuple[Folder, ...],
    by: str | None,
    tokens: int | None,
    busbw: Path | None,
    network: str | None,
    form: str,
    lang: str,
    **sizes: int | None,
) -> None:
    """Measures a recorded run: bubble beside the plan, ranks, critical path, throughput.

    \b
    serried trace stats runs/first
    serried trace stats runs/first --by step,rank,stage --format json
    serried trace stats runs/first --busbw busbw.json --network h100
    """
    output = OutputChoice(lang, form)
    references = References.read(busbw, network)
    if (log := timer_log(places)) is not None:
        _tell_timers(log, given(sizes), output)
        return
    trace = read_recording(places, given(sizes), listener=told(lang))
    if isinstance(trace, GpuTrace):
        tell_gpus(trace, output, given(sizes), references)
        return
    analysis = analyse(trace, tokens_per_microbatch=tokens, listener=told(lang))
    axes = [axis.strip() for axis in by.split(",")] if by is not None else None
    table = analysis.table().grouped(axes) if axes is not None else None
    tell_analysis(trace, analysis, output, references, by=table)


def _tell_timers(log: TimerLog, sizes: dict[str, int], output: OutputChoice) -> None:
    """Prints what a log of Megatron's timers says, which is no trace."""
    found, lang = measure_timers(log, sizes), output.lang
    for warning in log.findings:
        click.echo(warned(warning, lang=lang), err=True)
    if output.form_among(TABLE_OR_JSON) == "json":
        return output.write(as_json(timers_document(log, found)))
    tables: list[str | Table] = ["", timers_table(found, lang=lang)]
    tables += ["", timed_ranks_table(found, lang=lang)] if found.ranks else []
    top, lines = timer_headlines(log, found, lang=lang), timer_lines(log, found, lang=lang)
    return output.show(*top, *tables, "", *lines)


def tell_analysis(
    trace: Trace,
    analysis: Analysis,
    output: OutputChoice,
    references: References = NO_REFERENCES,
    *,
    by: StepTable | None = None,
) -> None:
    """Prints warnings to stderr and what was measured to stdout."""
    lang = output.lang
    traffic = references.beside(analysis.traffic)
    for warning in trace.warnings:
        click.echo(warned(warning, lang=lang), err=True)
    if output.form_among(TABLE_OR_JSON) == "json":
        document = stats_document(trace, analysis.statistics, analysis.replayed)
        figures = figures_document(figures_of(trace, analysis.statistics))
        more: dict[str, object] = {"figures": figures, "traffic": traffic_document(traffic)}
        more |= {"by": table_document(by)} if by is not None else {}
        return output.write(as_json({**document, **analysis_document(analysis), **more}))
    found = analysis.statistics
    tables: list[str | Table] = ["", steps_table(trace, found, lang=lang)]
    tables += ["", ranks_table(trace, found, lang=lang)]
    # A grouping that was asked for stands in place of the usual tables of steps and ranks.
    if by is not None:
        tables = ["", by_table(by, lang=lang)]
    tables += ["", traffic_table(traffic, shown=KINDS_SHOWN, lang=lang)] if traffic else []
    verdict = run_verdict_lines(trace, analysis, lang=lang)
    top = [*verdict, *([""] if verdict else []), *headlines(trace, found, lang=lang)]
    lines = _lines(trace, analysis, lang)
    return output.show(*top, *(tables if found.steps else ()), "", *lines)


def _lines(trace: Trace, analysis: Analysis, lang: str) -> list[str]:
    found = analysis.statistics
    return [
        *bubble_lines(trace, found, lang=lang, schedule=analysis.schedule),
        *planned_lines(analysis.planned, lang=lang),
        *order_lines(analysis, lang=lang),
        *communication_lines(found.bubbles, lang=lang),
        *throughput_lines(analysis.throughput, lang=lang),
        *slowest_lines(analysis.paces, lang=lang, has_pipeline=trace.has_pipeline),
        *path_lines(analysis.path, lang=lang),
        *what_if_lines(analysis.replayed, lang=lang),
        *message_lines(found, lang=lang),
        *left_out_lines(found, lang=lang),
    ]
