"""What the latest steps of a running job show: their length, their bubble, who waits for whom.

rank 0   ... | step 38 | step 39 | step 40 |      kept of each rank: its latest steps
rank 1   ... | step 38 | step 39 | step 40 ~      measured: those that all of them finished
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from serried.diagnose.watch.latest_steps import MOST_RANKS, common_steps, kept_trace
from serried.errors import InputError
from serried.trace.measure.ranks.slowest import paces
from serried.trace.measure.statistics import measure
from serried.trace.measure.throughput import throughput
from serried.trace.model.record import RecordHeader, Records
from serried.trace.model.trace import Trace


@dataclass(frozen=True)
class RankFigures:
    """Holds what one rank did of the latest steps; medians of a step, in seconds."""

    rank: int
    compute_s: float
    """Computing, the waits inside left out."""
    waits_s: float
    """Waiting for messages and collectives."""
    waited_for_s: float | None
    """How much longer the others of its stages waited than it: its lateness; None without any."""


@dataclass(frozen=True)
class LatestFigures:
    """Holds what the latest steps of a job show that all of its ranks finished."""

    num_steps: int
    step_s: float
    """The mean time from a step's start to the next one's."""
    microbatches_per_s: float
    """All replicas count together."""
    idle: float
    """The share of all ranks' time in a step's window in which they computed nothing."""
    has_pipeline: bool
    """Whether ``idle`` is the bubble of a pipeline."""
    ranks: tuple[RankFigures, ...]


def figures_in(ranks: Sequence[tuple[RecordHeader, Records]]) -> LatestFigures | None:
    """Returns what the steps show that all of ``ranks`` recorded; None where there is none yet.

    None too for more than ``MOST_RANKS`` ranks, and for files that make no job, as of two runs in
    one folder.
    """
    kept = [(header, table) for header, table in ranks if len(table)]
    if not 1 <= len(kept) <= MOST_RANKS:
        return None
    steps = common_steps(kept)
    if not len(steps):
        return None
    try:
        return _measured(kept_trace(kept), steps)
    except InputError:
        return None


def _measured(trace: Trace, steps: NDArray[np.int32]) -> LatestFigures | None:
    whole = replace(trace, spans=trace.spans.where(np.isin(trace.spans.step, steps)))
    stats = measure(whole)
    found = throughput(whole, whole.spans)
    if stats.bubble is None or found is None:
        return None
    # A step's time begins where the one before it ended, so paces are given all that was kept.
    rows = paces(trace, np.array([each.step for each in stats.steps], dtype=np.int32))
    return LatestFigures(
        num_steps=len(stats.steps),
        step_s=found.period_ns / 1e9,
        microbatches_per_s=found.microbatches_per_s,
        idle=stats.bubble,
        has_pipeline=stats.has_pipeline,
        ranks=tuple(
            RankFigures(
                each.rank,
                each.compute_ns / 1e9,
                each.waits_ns / 1e9,
                None if each.waited_for_ns is None else each.waited_for_ns / 1e9,
            )
            for each in sorted(rows, key=lambda pace: pace.rank)
        ),
    )
