"""Goodput of a planned job, as text and as JSON: checkpoints, losses, days, spare nodes."""

from __future__ import annotations

from math import isinf
from typing import Any

from serried.finding import Sentence, said
from serried.plan.goodput import JobGoodput
from serried.units import duration_text
from serried.views.explain.plain import wrap
from serried.views.sentences import say, tell
from serried.views.table import Table

SHARES = {
    "useful": said("useful work"),
    "saving": said("saving checkpoints"),
    "redone": said("work done again"),
    "restarting": said("restarting"),
    "waiting": said("waiting for nodes"),
}
"""Where the time of a job with failures goes, by the fields that hold it."""


def goodput_verdict(told: JobGoodput) -> Sentence:
    """Says the goodput, how often something fails, and the best checkpoint interval."""
    return said(
        "goodput {useful:.1%}: a failure every {mtbf} on average; best a checkpoint every "
        "{interval}, {steps:,} steps",
        useful=told.goodput.useful,
        mtbf=long_text(told.job.mtbf_s),
        interval=long_text(told.goodput.interval_s),
        steps=told.interval_steps,
    )


def duration_line(told: JobGoodput) -> Sentence | None:
    """Says how long the job takes; None where nobody says how many steps it has."""
    if told.steps is None or told.work_s is None or told.wall_s is None:
        return None
    if isinf(told.wall_s):
        return said(
            "{steps:,} steps never end: failures come faster than a checkpoint can be reached; "
            "save or restart faster, or take fewer GPUs",
            steps=told.steps,
        )
    return said(
        "{steps:,} steps take {wall} with failures, {work} without",
        steps=told.steps,
        wall=long_text(told.wall_s),
        work=long_text(told.work_s),
    )


def spares_line(told: JobGoodput) -> Sentence | None:
    """Says how many spare nodes are worth having; None where nobody says how long repairs take."""
    best = told.spares
    if best is None:
        return None
    return said(
        "spare nodes worth having: {count:,} (here {given:,}); with them goodput is {useful:.1%}, "
        "{booked:.1%} of all GPU-time that is booked",
        count=best.count,
        given=told.job.spare_nodes,
        useful=best.goodput.useful,
        booked=best.of_booked,
    )


def goodput_parts(told: JobGoodput, *, columns: int, lang: str = "en") -> list[str | Table]:
    """Returns what is to be said of a job with failures, then where its time goes."""
    head = (goodput_verdict(told), duration_line(told), spares_line(told))
    lines = [line for each in head if each for line in wrap(say(each, lang), columns)]
    return [*lines, "", goodput_table(told, lang=lang)]


def goodput_table(told: JobGoodput, *, lang: str = "en") -> Table:
    """Returns a row for each part of the job's time: its share, and what that is of a day."""
    rows = Table()
    rows.add_column(tell("with failures", lang))
    for word in (said("share"), said("of a day")):
        rows.add_column(say(word, lang), justify="right")
    for name, word in SHARES.items():
        share = getattr(told.goodput, name)
        rows.add_row(say(word, lang), f"{share:.2%}", long_text(share * 86400))
    return rows


def goodput_document(told: JobGoodput) -> dict[str, Any]:
    """Returns the goodput as a part of ``serried.plan/1``; times are in seconds."""
    found, best = told.goodput, told.spares
    endless = told.wall_s is not None and isinf(told.wall_s)
    return {
        "mtbf_s": told.job.mtbf_s,
        "failures_per_day": found.failures_per_day,
        "interval_s": found.interval_s,
        "interval_steps": told.interval_steps,
        **{name: getattr(found, name) for name in SHARES},
        "steps": told.steps,
        "work_s": told.work_s,
        "wall_s": None if endless else told.wall_s,
        "spare_nodes": told.job.spare_nodes,
        "best_spare_nodes": best and best.count,
        "best_spare_nodes_useful": best and best.goodput.useful,
        "best_spare_nodes_of_booked": best and best.of_booked,
    }


def long_text(seconds: float) -> str:
    """Returns a time with three figures, beyond two hours in hours and beyond two days in days.

    >>> long_text(0.5), long_text(792), long_text(10_980), long_text(1_060_000)
    ('500 ms', '792 s', '3.05 h', '12.3 d')
    """
    for unit, scale in (("d", 86400), ("h", 3600)):
        if seconds >= 2 * scale:
            value = seconds / scale
            digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
            return f"{value:,.{digits}f} {unit}"
    return duration_text(seconds * 1e9)
