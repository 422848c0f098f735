"""Lanes: a rank whose spans overlap gets several tracks, within each of which none do.

    rank 3   lane 0   |--F--|  |--F--|     |---B---|
             lane 1      |SEND|     |RECV|

A span takes the first lane that is free. Spans that no other overlaps take lane 0; those that
hang together are a cluster, and the clusters of all ranks are spread at once, member by member.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from serried.action import Spans

Lanes = NDArray[np.int32]

_CROWD = 512
"""A cluster of more members than this is spread by itself."""


def lanes(spans: Spans) -> Lanes:
    """Returns the track of each span within its rank: 0 unless it overlaps an earlier one.

    ``spans`` stand by rank and then by start.
    """
    lane = np.zeros(len(spans), dtype=np.int32)
    first = _clusters(spans)
    size = np.diff(np.append(first, len(spans)))
    # The rounds of the clusters that are spread together are as many as the largest has members,
    # so crowds stay out of them; a span alone stays on lane 0.
    small = (size > 1) & (size <= _CROWD)
    _spread_together(spans, first[small], size[small], lane)
    for begin, count in zip(first[size > _CROWD], size[size > _CROWD], strict=True):
        part = slice(begin, begin + count)
        lane[part] = _spread(spans.start_ns[part].tolist(), spans.end_ns[part].tolist())
    return lane


def _clusters(spans: Spans) -> NDArray[np.int64]:
    """Returns where each cluster begins: its first span starts when all before it have ended."""
    if not len(spans):
        return np.zeros(0, dtype=np.int64)
    latest = np.empty(len(spans), dtype=np.int64)
    bounds = [0, *(np.flatnonzero(np.diff(spans.rank)) + 1).tolist(), len(spans)]
    for first, last in pairwise(bounds):
        # latest[i] is when all of a rank's spans up to i have ended: span i may end before a longer
        # one that began earlier.
        np.maximum.accumulate(spans.end_ns[first:last], out=latest[first:last])
    is_first = np.ones(len(spans), dtype=np.bool_)
    is_first[1:] = (spans.rank[1:] != spans.rank[:-1]) | (spans.start_ns[1:] >= latest[:-1])
    return np.flatnonzero(is_first)


def _spread_together(
    spans: Spans, first: NDArray[np.int64], size: NDArray[np.int64], lane: Lanes
) -> None:
    """Writes the lanes of clusters, the ``k``-th member of every one of them at a time."""
    order = np.argsort(-size, kind="stable")
    first, size = first[order], size[order]
    # free_from[c, l] is when lane l of cluster c is free again; one that nobody took always was.
    free_from = np.full((len(first), 1), np.iinfo(np.int64).min)
    for k in range(int(size.max(initial=0))):
        # The largest clusters stand first, so those with a k-th member are the first `count`.
        count = int(np.searchsorted(-size, -k, "left"))
        rows = first[:count] + k
        is_free = free_from[:count] <= spans.start_ns[rows, None]
        if not is_free.any(axis=1).all():
            more = np.full((len(first), 1), np.iinfo(np.int64).min)
            free_from = np.concatenate([free_from, more], axis=1)
            is_free = free_from[:count] <= spans.start_ns[rows, None]
        chosen = is_free.argmax(axis=1)
        lane[rows] = chosen
        free_from[np.arange(count), chosen] = spans.end_ns[rows]


def _spread(begin: list[int], end: list[int]) -> list[int]:
    """Returns the first lane that is free for each span, in order of start."""
    free_from: list[int] = []
    found = []
    for start, stop in zip(begin, end, strict=True):
        lane = next((i for i, free in enumerate(free_from) if free <= start), len(free_from))
        free_from[lane : lane + 1] = [stop]
        found.append(lane)
    return found
