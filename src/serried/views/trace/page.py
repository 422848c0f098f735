"""What ``trace stats`` prints: verdict, tables with the slowest first, and lines; or all there is.

    verdict              three lines at most
    headlines            which run it is
    tables               of steps and ranks, or of periods where there is no pipeline
    lines                bubble, plan, order, throughput, critical path, messages

The whole is forty lines of a hundred columns at most: tables of ranks take what is left of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from serried.plan.traffic.reference import TrafficReference
from serried.trace.measure.analysis import Analysis
from serried.trace.measure.step_table import StepTable
from serried.trace.measure.verdict import run_verdict
from serried.trace.model.trace import Trace
from serried.views.sentences import tell
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
from serried.views.trace.gaps import gap_lines
from serried.views.trace.periods import period_lines, periods_table
from serried.views.trace.text import (
    bubble_lines,
    headlines,
    left_out_lines,
    message_lines,
    ranks_table,
    steps_table,
    warm_up_lines,
    what_if_lines,
)
from serried.views.trace.traffic import traffic_table
from serried.views.trace.verdict import verdict_lines

LINES = 40
"""Lines of a screen, which the answer takes at most unless all is asked for."""
_STEPS = 3
_KINDS = 3
_LEAST_ROWS = 2
_ALL = 1 << 30

Part = str | Table


def stats_parts(
    trace: Trace,
    analysis: Analysis,
    *,
    lang: str = "en",
    places: Sequence[object] = (),
    traffic: Sequence[TrafficReference] = (),
    by: StepTable | None = None,
    is_whole: bool = False,
    has_more: bool = True,
) -> list[Part]:
    """Returns lines and tables in the order in which they are printed.

    ``traffic`` is what kinds of groups moved, beside what it is held against; ``by`` a grouping
    that was asked for, in place of the usual tables. ``is_whole`` gives every step and rank, and
    every line there is; without it ``has_more`` says how to have them.
    """
    verdict = run_verdict(trace, analysis)
    top = [
        *verdict_lines(trace, analysis, verdict, places=places, lang=lang),
        "",
        *headlines(trace, analysis.statistics, lang=lang),
    ]
    if by is not None and not is_whole:
        rows = LINES - len(top) - 3  # a blank, the headings, and how many rows more there are
        return [*top, "", by_table(by, rows=rows, lang=lang)]
    if not analysis.statistics.steps:
        return [*top, "", *_lines(trace, analysis, lang, is_whole=is_whole)]
    kinds = _ALL if is_whole else _KINDS
    moved: list[Part] = ["", traffic_table(traffic, shown=kinds, lang=lang)] if traffic else []
    lines = ["", *_lines(trace, analysis, lang, is_whole=is_whole)]
    lines += (
        [] if is_whole or not has_more else [tell("--all prints every step, rank and figure", lang)]
    )
    if by is not None:
        return [*top, "", by_table(by, rows=_ALL, lang=lang), *moved, *lines]
    taken = len(top) + len(lines) + (2 + min(len(traffic), _KINDS + 1) if traffic else 0)
    left = _ALL if is_whole else LINES - taken
    return [*top, *_tables(trace, analysis, left, lang), *moved, *lines]


def _tables(trace: Trace, analysis: Analysis, left: int, lang: str) -> list[Part]:
    """Returns the tables in ``left`` lines, a blank before each."""
    found, periods = analysis.statistics, analysis.periods
    if periods is not None:
        rows = _rows(len(periods.ranks), left - 2)
        table = periods_table(trace, periods, analysis.paces, rows=rows, lang=lang)
        return ["", table]
    steps = _rows(len(found.steps), _STEPS + 1 if left < _ALL else _ALL)
    left -= 2 + steps + (steps < len(found.steps))
    ranks = _rows(len(found.ranks), left - 2)
    return [
        "",
        steps_table(trace, found, rows=steps, lang=lang),
        "",
        ranks_table(trace, found, analysis.paces, rows=ranks, lang=lang),
    ]


def _rows(count: int, room: int) -> int:
    """Returns how many of ``count`` rows stand in ``room`` lines, one of which counts the rest."""
    return count if count <= room else max(_LEAST_ROWS, room - 1)


def _lines(trace: Trace, analysis: Analysis, lang: str, *, is_whole: bool) -> list[str]:
    found, periods = analysis.statistics, analysis.periods
    is_periodic = periods is not None and bool(found.steps)
    first = [] if periods is None or not found.steps else period_lines(trace, periods, lang=lang)
    if not is_periodic or is_whole:
        first += [
            *([] if is_periodic else warm_up_lines(found, lang=lang)),
            *bubble_lines(trace, found, lang=lang, schedule=analysis.schedule, is_whole=is_whole),
        ]
    has_pipeline = trace.has_pipeline
    # A period's parts say of a job without a pipeline what a path and a replay would.
    has_path = has_pipeline or is_whole
    slow = [each for each in analysis.paces if each.is_slow]
    # The verdict has told of one slow rank, or of none; of several the others are told here.
    slowest = slowest_lines(analysis.paces, lang=lang, has_pipeline=has_pipeline)
    return [
        *first,
        *planned_lines(analysis.planned, lang=lang, is_whole=is_whole),
        *order_lines(analysis, lang=lang),
        *communication_lines(found.bubbles, lang=lang),
        *throughput_lines(analysis.throughput, lang=lang),
        *(slowest if is_whole or len(slow) > 1 else []),
        *(path_lines(analysis.path, lang=lang, is_whole=is_whole) if has_path else []),
        *(gap_lines(analysis.gaps, lang=lang) if is_whole else []),
        *(what_if_lines(analysis.replayed, lang=lang, is_whole=is_whole) if has_path else []),
        *message_lines(found, lang=lang, is_whole=is_whole),
        *left_out_lines(found, lang=lang),
    ]
