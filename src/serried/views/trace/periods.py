"""The page of a job without a pipeline: what each rank's period was spent on, and its loader.

rank    host  period     data  compute  communication  optimizer  not recorded  others wait
   1  node-1  90.2 ms  40.3 ms  36.1 ms        0.90 ms    8.00 ms       4.90 ms      39.8 ms
   0  node-0  90.2 ms  0.21 ms  36.0 ms        40.9 ms    8.10 ms       4.99 ms
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len

from serried.trace.measure.ranks.period import PARTS, RankPeriod, StepPeriods
from serried.trace.measure.ranks.slowest import RankPace
from serried.trace.measure.warm_up import WARM_UP
from serried.trace.model.trace import Trace
from serried.units import duration_text
from serried.views.sentences import phrase, tell
from serried.views.table import Table
from serried.views.trace.text import (
    LABEL_COLUMNS,
    add_more,
    count_text,
    labelled,
    right_table,
    waited_for_text,
)
from serried.views.trace.verdict import how_to_record
from serried.views.trace.words import WIDTH, host_text

TOLD = {
    "data": "data",
    "compute": "compute",
    "communication": "exposed communication",
    "optimizer": "optimizer",
    "unrecorded": "not recorded",
}
"""What the parts of a period are called, before they are translated."""
HEADINGS = {"communication": "communication", "unrecorded": "unrecorded"}
"""What some are called above a column, where there is little room."""


def periods_table(
    trace: Trace,
    periods: StepPeriods,
    paces: Sequence[RankPace],
    *,
    rows: int,
    lang: str = "en",
) -> Table:
    """Returns a row for each of ``rows`` ranks, those first that the others wait for."""
    late = {each.rank: each.waited_for_ns for each in paces if each.waited_for_ns is not None}
    parts = [name for name in TOLD if name != "data" or periods.has_data]
    words = [phrase(HEADINGS.get(name, TOLD[name]), lang) for name in parts]
    waited_for = (tell("others wait", lang),) if late else ()
    heads = ["rank", tell("host", lang), tell("period", lang), *words, *waited_for]
    table = right_table(*heads)
    for each in by_own_time(periods)[:rows]:
        times = [each.period_ns, *(getattr(each, f"{name}_ns") for name in parts)]
        last = [waited_for_text(late.get(each.rank))] if late else []
        host = host_text(trace, each.rank)
        table.add_row(str(each.rank), host, *map(duration_text, times), *last)
    add_more(table, len(periods.ranks) - rows, lang)
    return table


def by_own_time(periods: StepPeriods) -> list[RankPeriod]:
    """Returns the ranks, those first that wait least: what is not waiting is their own doing."""
    return sorted(
        periods.ranks, key=lambda each: (each.communication_ns - each.period_ns, each.rank)
    )


def period_lines(trace: Trace, periods: StepPeriods, *, lang: str = "en") -> list[str]:
    """Returns what the mean period is made of, which rank's loader takes longest, and the rule."""
    mean = periods.mean
    parts = [
        tell(
            "{part} {time} ({share:.1%})",
            lang,
            part=phrase(TOLD[name], lang),
            time=duration_text(ns),
            share=ns / mean.period_ns if mean.period_ns else 0.0,
        )
        for name, ns in ((name, getattr(mean, f"{name}_ns")) for name in TOLD)
        if name != "data" or periods.has_data
    ]
    whole = tell("{period} a step =", lang, period=duration_text(mean.period_ns))
    return [
        *labelled(tell("period", lang), [*_sum(whole, parts), _rule(periods, lang)]),
        *labelled(tell("data", lang), _loader(trace, periods, lang)),
    ]


def _sum(whole: str, parts: Sequence[str]) -> list[str]:
    """Returns ``whole`` and the parts that add up to it, as many to a line as fit."""
    lines = [f"{whole} {parts[0]}"]
    for part in parts[1:]:
        if cell_len(f"{lines[-1]} + {part}") <= WIDTH - LABEL_COLUMNS:
            lines[-1] += f" + {part}"
        else:
            lines.append(f"+ {part}")
    return lines


def _loader(trace: Trace, periods: StepPeriods, lang: str) -> list[str]:
    """Returns whose loader takes longest, or how loading is recorded."""
    most = periods.loader
    if most is None:
        before = duration_text(periods.mean.before_ns)
        told = tell(
            "loading was not recorded; it is in the {before} before a rank's first span",
            lang,
            before=before,
        )
        return [told, how_to_record(lang)]
    least = min(periods.ranks, key=lambda each: each.data_ns)
    told = tell(
        "loading takes {time} of a step ({share:.1%})"
        if len(periods.ranks) == 1
        else "longest on rank {rank} on {host}: {time} of a step ({share:.1%}); least on rank "
        "{other}: {little}",
        lang,
        rank=most.rank,
        host=host_text(trace, most.rank),
        time=duration_text(most.data_ns),
        share=most.share("data"),
        other=least.rank,
        little=duration_text(least.data_ns),
    )
    return [told]


def _rule(periods: StepPeriods, lang: str) -> str:
    return tell(
        "mean of ranks, {steps}; not the first, nor starting ones over {times}x the median",
        lang,
        steps=count_text(len(periods.steps), "step", lang),
        times=WARM_UP,
    )


def periods_document(periods: StepPeriods | None) -> dict[str, Any] | None:
    """Returns the periods as JSON has them, in microseconds; None where there is a pipeline."""
    if periods is None:
        return None
    most = periods.loader
    return {
        "steps": list(periods.steps),
        "has_data": periods.has_data,
        "loader": None if most is None else most.rank,
        "mean": _times(periods.mean),
        "ranks": [{"rank": each.rank, **_times(each)} for each in periods.ranks],
    }


def _times(each: RankPeriod) -> dict[str, float]:
    return {f"{name}_us": getattr(each, f"{name}_ns") / 1e3 for name in ("period", *PARTS)}
