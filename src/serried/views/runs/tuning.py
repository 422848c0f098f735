"""What tuning found: the best layout first, planned beside measured, and what the rest would take.

best of 100 layouts: tp 1, pp 4, dp 1, zbv, 8 microbatches, 281 ms a step (planned 276 ms)
planned steps are off by 2.1% on average over 5 runs, and in the order of measured ones
layout                                    planned  measured  off
tp 1, pp 4, dp 1, zbv, 8 microbatches      276 ms    281 ms  -1.8%
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from serried.units import duration_text
from serried.views.sentences import say, tell
from serried.views.table import Table

if TYPE_CHECKING:
    from serried.runtime.tune.tuning import TunedLayout, Tuning

SCHEMA = "serried.tuning/1"
SHOWN = 10
"""Layouts that were not run and are shown; JSON has all."""


def tuning_verdict(found: Tuning, *, lang: str = "en") -> list[str]:
    """Returns the best layout, and how far plans were from runs."""
    best = found.best
    lines = [
        tell(
            "best of {count} layouts: {name}, {measured} a step (planned {planned})",
            lang,
            count=len(found.layouts),
            name=best.candidate.name,
            measured=_seconds(best.measured.period if best.measured else 0.0),
            planned=_seconds(best.planned.period),
        )
    ]
    if len(found.run) == 1:
        lines.append(tell("the planned step is off by {error:.1%}", lang, error=found.mean_error))
    elif found.run:
        lines.append(_errors_and_order(found, lang))
    return lines


def tuning_table(found: Tuning, *, lang: str = "en") -> Table:
    """Returns the runs by their measured step, then the best of what was only planned."""
    rows = Table()
    rows.add_column(tell("layout", lang))
    for name in ("planned", "between", "measured", "off"):
        rows.add_column(tell(name, lang), justify="right")
    rows.add_column("")
    ran = [each for each in found.layouts if each.measured]
    ran.sort(key=lambda each: each.measured.period if each.measured else 0.0)
    planned = [each for each in found.layouts if not each.measured][:SHOWN]
    for each in [*ran, *planned]:
        low, high = each.planned.interval
        rows.add_row(
            each.candidate.name,
            _seconds(each.planned.period),
            f"{_seconds(low)} – {_seconds(high)}",
            _seconds(each.measured.period) if each.measured else "",
            "" if each.error is None else f"{each.error:+.1%}",
            tell("calibrates", lang) if each.is_calibrating else "",
        )
    return rows


def tuning_notes(found: Tuning, *, lang: str = "en") -> list[str]:
    """Returns what plans take for granted, each once."""
    told = dict.fromkeys(
        say(assumed, lang) for each in found.layouts for assumed in each.planned.assumptions
    )
    return [tell("assumed: {what}", lang, what=each) for each in told]


def tuning_document(found: Tuning) -> dict[str, Any]:
    """Returns the ``serried.tuning/1`` document; times are in seconds."""
    return {
        "schema": SCHEMA,
        "best": found.best.candidate.name,
        "mean_error": found.mean_error,
        "layouts": [_row(each) for each in found.layouts],
    }


def _row(each: TunedLayout) -> dict[str, Any]:
    its = each.candidate.settings
    low, high = each.planned.interval
    return {
        "name": each.candidate.name,
        "sizes": {"tp": its.tp, "pp": its.pp, "dp": its.dp, "cp": its.cp},
        "schedule": its.pipeline.name,
        "microbatches": its.microbatches,
        "planned_s": each.planned.period,
        "interval_s": [low, high],
        "measured_s": each.measured.period if each.measured else None,
        "error": each.error,
        "calibrates": each.is_calibrating,
        "assumptions": [str(assumed) for assumed in each.planned.assumptions],
    }


def _errors_and_order(found: Tuning, lang: str) -> str:
    """Returns how far plans were off, and whether they rank the runs as measured.

    Runs count as level that lie closer together than plans are off on average.
    """
    swapped = [
        slower.measured.period / quicker.measured.period - 1
        for quicker, slower in combinations(found.run, 2)
        if quicker.measured and slower.measured and quicker.planned.period > slower.planned.period
    ]
    is_level = max(swapped, default=0.0) < found.mean_error
    return tell(
        "planned steps are off by {error:.1%} on average over {runs} runs, and in the order of "
        "measured ones"
        if not swapped
        else "planned steps are off by {error:.1%} on average over {runs} runs, and in the order "
        "of measured ones but where these are less than that apart"
        if is_level
        else "planned steps are off by {error:.1%} on average over {runs} runs, and in another "
        "order than measured ones",
        lang,
        error=found.mean_error,
        runs=len(found.run),
    )


def _seconds(seconds: float) -> str:
    return duration_text(seconds * 1e9)
