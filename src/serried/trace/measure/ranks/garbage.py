"""Python's garbage collections: what each rank spent on them, step by step, where it was recorded.

rank 0   [F][gc][B] |[F][B]     |[F][gc][B]      a rank collects when it has made so many
rank 1   [F][B].... |[F][gc][B] |[F][B]....      objects, and everybody waits for it
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from serried.action import ActionKind
from serried.trace.model.trace import Trace

COLLECTION = "garbage collection"
"""What a span is called in which Python collects garbage."""


def collecting_ns(
    trace: Trace, steps: NDArray[np.int64], ranks: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """Returns by step and rank the time spent on collections; None where none was recorded.

    ``steps`` and ``ranks`` ascend.
    """
    if COLLECTION not in trace.names:
        return None
    spans = trace.spans
    rows = (spans.kind == ActionKind.SPAN) & (spans.peer == trace.names.index(COLLECTION))
    rows &= np.isin(spans.step, steps) & np.isin(spans.rank, ranks)
    cell = np.searchsorted(steps, spans.step[rows]) * len(ranks)
    cell += np.searchsorted(ranks, spans.rank[rows])
    took = (spans.end_ns - spans.start_ns)[rows]
    sums = np.bincount(cell, took, minlength=len(steps) * len(ranks))
    return np.asarray(sums, dtype=np.float64).reshape(len(steps), len(ranks))
