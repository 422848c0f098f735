"""The critical path of one rank's step: what host and GPU waited for last, from end to beginning.

    thread      ├ aten::mm ┤├ aten::add ┤         ├ item() … ┤       calls hold those they make
                   └ launch 1   └ launch 2                ^
    stream 7            ├─ mm ─┤├─ add ─┤                 │ waits for the stream
    stream 20                           ├─ all_reduce ────┘ waits for an event of stream 7

Beginnings and ends of calls and operations are joined where one cannot be before the other: a call
and those it makes, a launch and its operation where the stream was empty, two operations in a row
on a stream, an event and who waits for it. The path is the longest chain; a call in which the host
only waits has no length of its own, nor has the time between two outermost calls of a thread.

Source: HolisticTraceAnalysis 0.5.0, hta/analyzers/critical_path_analysis.py, whose graph this is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from serried.limits import PATH_EVENTS
from serried.trace.gpu.activity import CallKind, GpuRank, OperationKind, SyncKind
from serried.trace.gpu.launches import Launches, launches
from serried.trace.gpu.queue import queue_lengths
from serried.trace.gpu.steps import steps_counted


class PathPart(Enum):
    """Names what the time on the path is."""

    HOST = "host"
    COMPUTATION = "computation"
    COMMUNICATION = "communication"
    MEMORY = "memory"
    LAUNCH = "launch"
    """From a launch to its operation, on an empty stream."""
    GAP = "gap"
    """Between two operations in a row."""
    NOTHING = "nothing"
    """A dependency, which takes no time."""


_PART_OF = {
    OperationKind.COMPUTATION: PathPart.COMPUTATION,
    OperationKind.COMMUNICATION: PathPart.COMMUNICATION,
    OperationKind.MEMORY: PathPart.MEMORY,
}
_BLOCKING = frozenset(
    f"{library}{call}"
    for library in ("cuda", "hip")
    for call in (
        "DeviceSynchronize",
        "StreamSynchronize",
        "EventQuery",
        "EventSynchronize",
        "Memcpy",
        "MemcpyAsync",
    )
)
"""Calls in which the host may only wait; a copy to pageable memory does, asked to or not."""
_WAIT_CALLS = ("cudaStreamWaitEvent", "hipStreamWaitEvent")


@dataclass(frozen=True)
class GpuPath:
    """Holds the critical path of a step; times are ns."""

    step: int | None
    """None where the profile marks no steps and all of it was taken."""
    length_ns: int
    by_part: dict[PathPart, int]
    by_name: tuple[tuple[str, int], ...]
    """Names of calls and operations on it, the longest first."""


@dataclass
class _Graph:
    """Holds moments and what leads from one to another."""

    times: list[int]
    edges: list[tuple[int, int, int, PathPart, int]]
    """From, to, length, what it is, and whose name it has (-1 for none)."""

    def join(self, src: int, dst: int, part: PathPart, owner: int = -1) -> None:
        length = 0 if part is PathPart.NOTHING else max(0, self.times[dst] - self.times[src])
        self.edges.append((src, dst, length, part, owner))


def critical_path(rank: GpuRank, window: tuple[int, int] | None = None) -> GpuPath | None:
    """Returns the critical path of a rank's first step, or of what begins in ``window``.

    Returns None where nothing begins in it, and where more does than a path is looked for in.
    """
    step = None
    if window is None:
        step, window = _first_step(rank)
    pairs = launches(rank)
    calls, operations = _within(rank, pairs, window)
    if not 0 < len(calls) + len(operations) <= PATH_EVENTS.most:
        return None
    graph = _Graph([], [])
    of_call = {int(row): 2 * at for at, row in enumerate(calls.tolist())}
    offset = 2 * len(calls)
    of_operation = {int(row): offset + 2 * at for at, row in enumerate(operations.tolist())}
    graph.times += _moments(rank.calls.start_ns[calls], rank.calls.end_ns[calls])
    starts, ends = rank.operations.start_ns[operations], rank.operations.end_ns[operations]
    graph.times += _moments(starts, ends)
    _join_calls(graph, rank, of_call)
    _join_operations(graph, rank, pairs, of_call, of_operation)
    return _longest(graph, rank, step)


def _first_step(rank: GpuRank) -> tuple[int | None, tuple[int, int]]:
    if chosen := steps_counted(rank):
        at = int(np.flatnonzero(rank.steps.number == chosen[0])[0])
        return chosen[0], (int(rank.steps.start_ns[at]), int(rank.steps.end_ns[at]))
    return None, (-(2**62), 2**62)


def _moments(starts: np.ndarray, ends: np.ndarray) -> list[int]:
    """Returns start and end of each in turn."""
    found: list[int] = np.stack((starts, ends), axis=1).ravel().tolist()
    return found


def _within(
    rank: GpuRank, pairs: Launches, window: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the calls that begin in a window and the operations launched by them."""
    calls = rank.calls
    is_in = (calls.start_ns >= window[0]) & (calls.start_ns <= window[1])
    is_in &= calls.end_ns > calls.start_ns
    rows = np.flatnonzero(is_in & (calls.kind != CallKind.RANGE))
    return rows, np.unique(pairs.operation[is_in[pairs.call]])


def _join_calls(graph: _Graph, rank: GpuRank, of_call: dict[int, int]) -> None:
    """Joins each thread's calls: a call to those it makes, in order, and back to its end."""
    calls = rank.calls
    blocking = {at for at, name in enumerate(rank.names) if name in _BLOCKING}
    threads: dict[int, list[int]] = defaultdict(list)
    for row in of_call:
        threads[int(calls.thread[row])].append(row)
    for rows in threads.values():
        open_calls: list[int] = []
        last, last_top = -1, -1

        def close(row: int, last: int) -> int:
            end = of_call[row] + 1
            is_wait = int(calls.name[row]) in blocking
            graph.join(last, end, PathPart.NOTHING if is_wait else PathPart.HOST, row)
            return end

        # Calls stand by start, of two at once the longer first, so a caller is before its callees.
        for row in rows:
            while open_calls and calls.end_ns[open_calls[-1]] <= calls.start_ns[row]:
                last = close(open_calls.pop(), last)
                if not open_calls:
                    last, last_top = -1, last
            start = of_call[row]
            if open_calls:
                graph.join(last, start, PathPart.HOST, open_calls[-1])
            elif last_top >= 0:
                graph.join(last_top, start, PathPart.NOTHING)
            open_calls.append(row)
            last = start
        while open_calls:
            last = close(open_calls.pop(), last)


def _join_operations(
    graph: _Graph,
    rank: GpuRank,
    pairs: Launches,
    of_call: dict[int, int],
    of_operation: dict[int, int],
) -> None:
    """Joins operations to launches, to those before them on a stream, and to who waits for them."""
    operations, calls, syncs = rank.operations, rank.calls, rank.syncs
    call_of = dict(zip(pairs.operation.tolist(), pairs.call.tolist(), strict=True))
    at_launch, at_begin = queue_lengths(rank, pairs)
    events = _Events(rank, pairs)
    offset = len(calls)
    last: dict[tuple[int, int], int] = {}
    waits_for: dict[int, int] = {}
    # A wait counts where it ends, an operation where it begins.
    order = [(int(operations.start_ns[row]), 1, row) for row in of_operation]
    order += [(int(end), 0, row) for row, end in enumerate(syncs.end_ns.tolist())]
    for _, is_operation, row in sorted(order):
        if not is_operation:
            _join_sync(graph, rank, row, events, last, waits_for, of_call, of_operation)
            continue
        start = of_operation[row]
        end, stream = start + 1, (int(operations.device[row]), int(operations.stream[row]))
        kind = OperationKind(int(operations.kind[row]))
        graph.join(start, end, _PART_OF[kind], offset + row)
        awaited = of_operation.get(waits_for.get(row, -1))
        awaited_end = None if awaited is None else awaited + 1
        if awaited_end is not None:
            graph.join(awaited_end, start, PathPart.NOTHING)
        before = last.get(stream)
        call = call_of[row]
        called = int(calls.start_ns[call])
        was_empty = at_launch.get(row) == 1 and at_begin.get(row) == 0
        times = graph.times
        is_first = before is None or times[before] < called
        if was_empty and is_first and (awaited_end is None or times[awaited_end] < called):
            if call in of_call:
                graph.join(of_call[call], start, PathPart.LAUNCH)
        elif before is not None and (awaited_end is None or times[awaited_end] < times[before]):
            graph.join(before, start, PathPart.GAP)
        last[stream] = end


class _Events:
    """Finds the operations before an event was recorded, and after it was waited for."""

    def __init__(self, rank: GpuRank, pairs: Launches) -> None:
        calls, operations = rank.calls, rank.operations
        self._calls = calls
        by_stream: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for call, row in sorted(zip(pairs.call.tolist(), pairs.operation.tolist(), strict=True)):
            stream = int(operations.stream[row])
            by_stream[stream].append((int(calls.start_ns[call]), int(calls.thread[call]), row))
        self._launched = by_stream
        driver = np.flatnonzero((calls.kind == CallKind.DRIVER) & (calls.correlation >= 0))
        numbers = calls.correlation[driver].tolist()
        self.call_of = dict(zip(numbers, driver.tolist(), strict=True))
        self._by_name = rank.names

    def before(self, recorded: int, stream: int) -> int | None:
        """Returns the operation last launched on a stream before an event was recorded there."""
        call = self.call_of.get(recorded)
        if call is None:
            return None
        moment = int(self._calls.start_ns[call])
        found = [row for at, _, row in self._launched.get(stream, ()) if at < moment]
        return found[-1] if found else None

    def after(self, correlation: int, stream: int) -> int | None:
        """Returns the operation that a thread launches next on a stream after it had it wait."""
        call = self.call_of.get(correlation)
        if call is None or self._by_name[int(self._calls.name[call])] not in _WAIT_CALLS:
            return None
        moment, thread = int(self._calls.start_ns[call]), int(self._calls.thread[call])
        launched = self._launched.get(stream, ())
        return next((row for at, by, row in launched if at > moment and by == thread), None)


def _join_sync(
    graph: _Graph,
    rank: GpuRank,
    row: int,
    events: _Events,
    last: dict[tuple[int, int], int],
    waits_for: dict[int, int],
    of_call: dict[int, int],
    of_operation: dict[int, int],
) -> None:
    """Joins what a wait waited for to who waited: the host's call, or the stream's next."""
    syncs = rank.syncs
    kind, stream = SyncKind(int(syncs.kind[row])), int(syncs.stream[row])
    number = int(syncs.correlation[row])
    waiting = of_call.get(events.call_of.get(number, -1))
    if kind in (SyncKind.STREAM_WAIT, SyncKind.EVENT):
        source = events.before(int(syncs.recorded[row]), int(syncs.on_stream[row]))
        if source is None:
            return
        if kind is SyncKind.STREAM_WAIT:
            if (target := events.after(number, stream)) is not None:
                waits_for[target] = source
        elif waiting is not None and source in of_operation:
            graph.join(of_operation[source] + 1, waiting + 1, PathPart.NOTHING)
        return
    ends = last.items()
    for (_, mine), end in ends:
        if waiting is not None and (kind is SyncKind.CONTEXT or mine == stream):
            graph.join(end, waiting + 1, PathPart.NOTHING)


def _longest(graph: _Graph, rank: GpuRank, step: int | None) -> GpuPath | None:
    """Returns the longest chain; an edge that leads back in time is left out, for none can."""
    times = graph.times
    edges = [edge for edge in graph.edges if times[edge[0]] <= times[edge[1]]]
    best = [0] * len(times)
    through: list[tuple[int, int, int, PathPart, int] | None] = [None] * len(times)
    for edge in _in_order(edges, times):
        src, dst, length, *_ = edge
        if through[dst] is None or best[src] + length > best[dst]:
            best[dst], through[dst] = best[src] + length, edge
    at = int(np.argmax(best))
    length = best[at]
    parts: dict[PathPart, int] = defaultdict(int)
    names: dict[str, int] = defaultdict(int)
    while (step_back := through[at]) is not None:
        src, _, took, part, owner = step_back
        parts[part] += took
        if owner >= 0:
            names[_name(rank, owner)] += took
        at = src
    parts.pop(PathPart.NOTHING, None)
    by_name = sorted(names.items(), key=lambda each: (-each[1], each[0]))
    by_part = dict(sorted(parts.items(), key=lambda each: -each[1]))
    return GpuPath(step, length, by_part, tuple(by_name))


def _in_order(
    edges: Sequence[tuple[int, int, int, PathPart, int]], times: Sequence[int]
) -> list[tuple[int, int, int, PathPart, int]]:
    """Returns edges so that all that lead to a moment come before those that leave it.

    Moments at one time are ordered by their edges; those on a circle of no length are left out.
    """
    leaving: dict[int, list[tuple[int, int, int, PathPart, int]]] = defaultdict(list)
    missing = [0] * len(times)
    for edge in edges:
        leaving[edge[0]].append(edge)
        missing[edge[1]] += 1
    ready = [at for at in range(len(times)) if not missing[at]]
    found = []
    while ready:
        for edge in leaving[ready.pop()]:
            found.append(edge)
            missing[edge[1]] -= 1
            if not missing[edge[1]]:
                ready.append(edge[1])
    return found


def _name(rank: GpuRank, owner: int) -> str:
    num_calls = len(rank.calls)
    if owner < num_calls:
        return rank.names[int(rank.calls.name[owner])]
    return rank.names[int(rank.operations.name[owner - num_calls])]
