"""Whole jobs: computations of which some were recorded in several pieces, and their hand-overs.

    rank 1   [1B0 piece 1][1B0 piece 2]
    rank 0                             [0B0 piece 1][0B0 piece 2]
                          the last piece ──> the first piece

Pieces are spans of one rank, step and action, such as Paddle's ``backward(chunk0)`` and
``backward(chunk1)``. A job takes as long as its pieces together. What it made is there when its
last piece ended, and its taker's first piece is the one that waits for it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from serried.action import Spans
from serried.trace.model.pairs import Codes, Rows, hand_overs, packed


def whole_hand_overs(spans: Spans, pipeline: Codes | None = None) -> tuple[Rows, Rows]:
    """Returns the rows of hand-overs as ``hand_overs`` does, of jobs in pieces only the outer."""
    before, after = hand_overs(spans, pipeline)
    job, count = _jobs(spans)
    if count == len(spans):
        return before, after
    rows = np.lexsort((spans.start_ns,))
    first, last = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    first[job[rows[::-1]]] = rows[::-1]
    rows = rows[np.argsort(spans.end_ns[rows], kind="stable")]
    last[job[rows]] = rows
    takes = first[job[after]] == after
    return last[job[before[takes]]], after[takes]


def whole_jobs(spans: Spans) -> Spans:
    """Returns ``spans`` with every job as one: from its first piece's start, as long as all.

    ``spans`` stand by rank and start, and so do the jobs.
    """
    job, count = _jobs(spans)
    if count == len(spans):
        return spans
    _, first = np.unique(job, return_index=True)
    length = np.zeros(count, dtype=np.int64)
    np.add.at(length, job, spans.end_ns - spans.start_ns)
    first = np.sort(first)
    whole = spans.where(first)
    return replace(whole, end_ns=whole.start_ns + length[job[first]])


def _jobs(spans: Spans) -> tuple[Rows, int]:
    """Returns the number of each span's job, and how many there are."""
    columns = (spans.rank, spans.step, spans.kind, spans.stage, spans.microbatch)
    names = packed([column.astype(np.int64) for column in columns])
    _, job = np.unique(names, return_inverse=True)
    return job, int(job.max(initial=-1)) + 1
