"""Throughput of a recorded run: microbatches and tokens a second, and how even its steps are.

    step 3 |--------- window ---------|optimizer|   gap   step 4 |---------
           |<------------------ period ----------------->|

A period runs from one complete step's first span to that of the next step; where no two complete
steps follow one another it ends with the step's last span, so the gap is not in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.action import ActionKind, Spans
from serried.trace.model.trace import Trace


@dataclass(frozen=True)
class Throughput:
    """Says how fast a job went, over its complete steps."""

    period_ns: float
    """The mean time from a step's start to the next one's."""
    has_gaps: bool
    """Whether the time between steps is in it."""
    jitter: float
    """The standard deviation of the periods over their mean."""
    microbatches_per_step: int
    """The microbatches of all replicas together."""
    tokens_per_microbatch: int | None

    @property
    def microbatches_per_s(self) -> float:
        """How many microbatches all replicas finished in a second."""
        return self.microbatches_per_step / (self.period_ns / 1e9)

    @property
    def tokens_per_s(self) -> float | None:
        """How many tokens that is; None where nobody said how many a microbatch holds."""
        held = self.tokens_per_microbatch
        return None if held is None else held * self.microbatches_per_s


def throughput(
    trace: Trace, spans: Spans, *, tokens_per_microbatch: int | None = None
) -> Throughput | None:
    """Measures ``spans``, those of complete steps; None where they take no time."""
    if not len(spans):
        return None
    periods, has_gaps = _periods(spans)
    if not periods.mean():
        return None
    microbatches = spans.microbatch[spans.kind == ActionKind.F]
    each = max(trace.job.num_microbatches, 1 + int(microbatches.max(initial=-1)))
    return Throughput(
        period_ns=float(periods.mean()),
        has_gaps=has_gaps,
        jitter=float(periods.std() / periods.mean()),
        microbatches_per_step=each * replicas(trace),
        tokens_per_microbatch=tokens_per_microbatch,
    )


def replicas(trace: Trace) -> int:
    """Returns how many copies of the model take microbatches of their own."""
    sizes = trace.job.sizes
    if "dp" in sizes:
        return sizes["dp"]
    held = int(np.prod([sizes.get(axis, 1) for axis in ("tp", "cp", "pp")]))
    return max(1, trace.job.world_size // held)


def _periods(spans: Spans) -> tuple[NDArray[np.int64], bool]:
    steps, of = np.unique(spans.step, return_inverse=True)
    first = np.full(len(steps), np.iinfo(np.int64).max)
    last = np.full(len(steps), np.iinfo(np.int64).min)
    np.minimum.at(first, of, spans.start_ns)
    np.maximum.at(last, of, spans.end_ns)
    # Steps 3 and 4 make a period, 3 and 7 none; nor do two between which a clock went back.
    follows = np.flatnonzero((np.diff(steps) == 1) & (np.diff(first) > 0))
    if len(follows):
        return first[follows + 1] - first[follows], True
    return last - first, False
