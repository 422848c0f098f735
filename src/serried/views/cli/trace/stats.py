"""``serried trace stats``: everything that is measured of a recorded run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from serried.trace.formats.megatron.statistics import measure_timers
from serried.trace.formats.megatron.timers import TimerLog, timer_log
from serried.trace.formats.reading import read_recording
from serried.trace.gpu.activity import GpuTrace
from serried.trace.measure.analysis import Analysis, analyse
from serried.trace.measure.ranks.rank_figures import figures_of
from serried.trace.measure.step_table import StepTable
from serried.trace.measure.verdict import run_verdict
from serried.trace.merge.files import Folder
from serried.trace.model.trace import Trace
from serried.views.cli.language import lang_option
from serried.views.cli.output import TABLE_OR_JSON, OutputChoice, as_json, printed_form_option
from serried.views.cli.progress import told
from serried.views.cli.trace.arguments import (
    NO_REFERENCES,
    AskedLayout,
    References,
    places_argument,
    reference_options,
    sizes_options,
)
from serried.views.cli.trace.gpus import tell_gpus
from serried.views.layout.advice import warned
from serried.views.trace.document import (
    analysis_document,
    figures_document,
    stats_document,
    table_document,
)
from serried.views.trace.page import stats_parts
from serried.views.trace.periods import periods_document
from serried.views.trace.timers import timer_parts, timers_document
from serried.views.trace.traffic import traffic_document
from serried.views.trace.verdict import verdict_document


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
@click.option(
    "--all",
    "is_whole",
    is_flag=True,
    help="Print every step and rank, and every figure, past the forty lines of an answer.",
)
@sizes_options
@printed_form_option
@lang_option
def stats(
    places: tuple[Folder, ...],
    by: str | None,
    tokens: int | None,
    busbw: Path | None,
    network: str | None,
    is_whole: bool,
    form: str,
    lang: str,
    **layout: int | Path | None,
) -> None:
    """Measures a recorded run: the verdict first, then ranks, bubble beside the plan, path.

    \b
    serried trace stats runs/first
    serried trace stats runs/first --by step,rank,stage --format json
    serried trace stats runs/first --busbw busbw.json --network h100
    """
    output = OutputChoice(lang, form)
    references, asked = References.read(busbw, network), AskedLayout.of(layout)
    if (log := timer_log(places)) is not None:
        _tell_timers(log, asked.for_reading(), output, is_whole=is_whole)
        return
    trace = read_recording(places, asked.for_reading(), listener=told(lang))
    if isinstance(trace, GpuTrace):
        tell_gpus(trace, output, asked.of_gpus(trace), references, places=places)
        return
    asked.require(trace)
    analysis = analyse(trace, tokens_per_microbatch=tokens, listener=told(lang))
    axes = [axis.strip() for axis in by.split(",")] if by is not None else None
    table = analysis.table().grouped(axes) if axes is not None else None
    tell_analysis(trace, analysis, output, references, places=places, by=table, is_whole=is_whole)


def _tell_timers(
    log: TimerLog, sizes: dict[str, int], output: OutputChoice, *, is_whole: bool
) -> None:
    """Prints what a log of Megatron's timers says, which is no trace."""
    found, lang = measure_timers(log, sizes), output.lang
    for warning in log.findings:
        click.echo(warned(warning, lang=lang), err=True)
    if output.form_among(TABLE_OR_JSON) == "json":
        return output.write(as_json(timers_document(log, found)))
    return output.show(*timer_parts(log, found, lang=lang, is_whole=is_whole))


def tell_analysis(
    trace: Trace,
    analysis: Analysis,
    output: OutputChoice,
    references: References = NO_REFERENCES,
    *,
    places: Sequence[Folder] = (),
    by: StepTable | None = None,
    is_whole: bool = False,
) -> None:
    """Prints warnings to stderr and what was measured of ``places`` to stdout.

    ``is_whole`` prints every step and rank, and every figure.
    """
    lang = output.lang
    traffic = references.beside(analysis.traffic)
    for warning in trace.warnings:
        click.echo(warned(warning, lang=lang), err=True)
    if output.form_among(TABLE_OR_JSON) == "json":
        found = analysis.statistics
        verdict = run_verdict(trace, analysis)
        document = {
            **stats_document(trace, found, analysis.replayed),
            **analysis_document(analysis),
            "verdict": verdict_document(trace, analysis, verdict, places=places),
            "periods": periods_document(analysis.periods),
            "figures": figures_document(figures_of(trace, found)),
            "traffic": traffic_document(traffic),
            **({"by": table_document(by)} if by is not None else {}),
        }
        return output.write(as_json(document))
    parts = stats_parts(
        trace,
        analysis,
        lang=output.lang,
        places=places,
        traffic=traffic,
        by=by,
        is_whole=is_whole,
    )
    return output.show(*parts)
