"""How many operations wait in each stream: one more at a launch, one less where one begins.

    launches   +1    +1  +1
    begins               -1    -1   -1
    length     1     2   2     1    0

A queue that is never long means that the host is what the GPU waits for. Source:
HolisticTraceAnalysis 0.5.0, ``get_queue_length_summary``; at one moment a launch counts before a
begin, which there is left to the order of a sort.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serried.trace.gpu.activity import GpuRank
from serried.trace.gpu.launches import Launches
from serried.trace.gpu.spread import Spread, spread_of


@dataclass(frozen=True)
class StreamQueue:
    """Holds how the queue of one stream was, over all moments at which it changed."""

    device: int
    stream: int
    length: Spread


def queue_lengths(rank: GpuRank, pairs: Launches) -> tuple[dict[int, int], dict[int, int]]:
    """Returns how long an operation's queue was when it was launched and when it began.

    Both are by the operation's place in its column; those of graphs are left out.
    """
    pairs = pairs.single()
    operations = rank.operations
    device, stream = operations.device[pairs.operation], operations.stream[pairs.operation]
    enters, leaves = rank.calls.start_ns[pairs.call], operations.start_ns[pairs.operation]
    at_launch: dict[int, int] = {}
    at_begin: dict[int, int] = {}
    for at in {*zip(device.tolist(), stream.tolist(), strict=True)}:
        rows = np.flatnonzero((device == at[0]) & (stream == at[1]))
        moments = np.concatenate((enters[rows], leaves[rows]))
        change = np.repeat([1, -1], len(rows))
        order = np.lexsort((-change, moments))
        length = np.empty_like(change)
        length[order] = change[order].cumsum()
        places = pairs.operation[rows].tolist()
        at_launch |= zip(places, length[: len(rows)].tolist(), strict=True)
        at_begin |= zip(places, length[len(rows) :].tolist(), strict=True)
    return at_launch, at_begin


def stream_queues(rank: GpuRank, pairs: Launches) -> list[StreamQueue]:
    """Returns the queues of a rank's streams, by stream; graphs are left out."""
    pairs = pairs.single()
    operations = rank.operations
    device, stream = operations.device[pairs.operation], operations.stream[pairs.operation]
    enters, leaves = rank.calls.start_ns[pairs.call], operations.start_ns[pairs.operation]
    found = []
    for at in sorted({*zip(device.tolist(), stream.tolist(), strict=True)}):
        rows = (device == at[0]) & (stream == at[1])
        moments = np.concatenate((enters[rows], leaves[rows]))
        change = np.repeat([1, -1], len(moments) // 2)
        length = change[np.lexsort((-change, moments))].cumsum()
        found.append(StreamQueue(*at, spread_of(length)))
    return found
