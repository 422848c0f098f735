"""Alignment: the clocks of a run's hosts brought onto one, by what crossed between them.

    pings          asked and answered over the job's own groups, at start, end and between
    messages       a send begins before its receive ends
    order          where a log has no messages: F of stage s ends before F of s+1 begins,
                   B of stage s+1 before B of s

Each pair of hosts with bounds from both sides gets a line (``fit``); the hosts are joined
to the first by the pairs that are surest, and every span is moved by its host's line. A host
that nothing ties to the others keeps its wall clock, and its uncertainty is not known.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from serried.action import Spans
from serried.finding import Finding, said
from serried.trace.clocks.fit import Bounds, fit_clock
from serried.trace.clocks.line import ClockLine
from serried.trace.model.pairs import pair_messages, whole_hand_overs
from serried.trace.model.trace import AlignedClock, Host, Trace
from serried.units import duration_text

Times = NDArray[np.int64]
READING_NS = 100
"""Clocks are said to agree no better than this: to read one takes a Python program some 60 ns."""
Window = tuple[int, int]
"""The first and the last moment of a host's spans."""
Pair = tuple[int, int]
"""Two hosts by number, the lower first; the line turns the higher's clock into the lower's."""


@dataclass(frozen=True, eq=False)
class Crossings:
    """Holds moments at which something left one host and was there on another.

    Each is in nanoseconds of its own host's clock; ``left`` is before ``arrived`` in truth.
    """

    from_host: NDArray[np.int64]
    to_host: NDArray[np.int64]
    left_ns: Times
    arrived_ns: Times
    findings: tuple[Finding, ...] = ()
    """What is to be said of the files they were read from."""

    def __len__(self) -> int:
        return len(self.left_ns)


def aligned(trace: Trace, pings: Crossings | None = None) -> Trace:
    """Returns ``trace`` with the spans of all hosts on the first host's clock.

    ``pings`` are in the hosts' wall times less ``trace.base_ns``, as the spans are.
    """
    lines, clocks = host_clocks(trace, pings)
    trace = trace.with_warnings(*clock_findings(trace, lines, pings))
    if len(trace.hosts) < 2:
        return replace(trace, clocks=clocks)
    host = _host_of_rank(trace)
    spans = trace.spans
    start, end = spans.start_ns.copy(), spans.end_ns.copy()
    for number, line in enumerate(lines):
        if line is not None:
            mine = host[spans.rank] == number
            start[mine], end[mine] = on_line(line, start[mine]), on_line(line, end[mine])
    first_ns = int(start.min())
    # Where a clock was set within a span, its end may come out before its start.
    moved = replace(spans, start_ns=start - first_ns, end_ns=np.maximum(end, start) - first_ns)
    return replace(trace, spans=moved, base_ns=trace.base_ns + first_ns, clocks=clocks)


def host_clocks(
    trace: Trace, pings: Crossings | None = None, windows: Sequence[Window] | None = None
) -> tuple[list[ClockLine | None], tuple[AlignedClock, ...]]:
    """Returns each host's line to the first, None where nothing ties it, and what to say of it.

    ``windows`` are from each host's first start to its last end, in its own time before
    alignment, where ``trace`` holds only some spans.
    """
    if len(trace.hosts) < 2:
        return [None], (AlignedClock(trace.hosts[0].name, "own", 0.0, 0.0, 0.0),)
    host = _host_of_rank(trace)
    sources = [("pings", pings)] if pings is not None and len(pings) else []
    messages = _messages(trace.spans, host)
    sources += [("messages", messages)] if len(messages) else []
    # Orders stand in where pings and messages leave a host untied to the first.
    if not sources or not _reaches_all(_joined(*(each for _, each in sources)), len(trace.hosts)):
        orders = _orders(trace, host)
        sources += [("order", orders)] if len(orders) else []
    ends = windows or _windows(trace.spans, host, len(trace.hosts))
    crossings = [each for _, each in sources]
    asked = pings if pings is not None and len(pings) else None
    unit = trace.resolution_ns
    lines = _to_first(_lines(crossings, asked, ends, unit), len(trace.hosts))
    source = "+".join(name for name, _ in sources)
    clocks = [
        _clock(each.name, line, "own" if number == 0 else source, window, max(READING_NS, unit))
        for number, (each, line, window) in enumerate(zip(trace.hosts, lines, ends, strict=True))
    ]
    return lines, tuple(clocks)


def clock_findings(
    trace: Trace, lines: Sequence[ClockLine | None], pings: Crossings | None = None
) -> tuple[Finding, ...]:
    """Returns what is to be said of the pings' files and of clocks that cannot be one line."""
    found = [*(() if pings is None else pings.findings)]
    for host, line in zip(trace.hosts, lines, strict=True):
        # An infinite bound is how `fit_clock` says that bounds contradict each other at one moment.
        if line is not None and not np.isfinite(line.bound).all():
            contradiction = said(
                "messages of {host} contradict any clock: some arrived before they can have left; "
                "how far its times are off is not known",
                host=host.name,
            )
            found.append(Finding("clock", (contradiction,), host.ranks))
        if line is not None and line.jumps:
            found.append(_set(host, trace.hosts[0], line.jumps))
    return tuple(found)


def _set(host: Host, first: Host, jumps: Sequence[tuple[int, float]]) -> Finding:
    """Says that a clock was set; one that was set back shows some times twice, and jumps often."""
    (at_ns, step), *more = jumps
    evidence = said(
        "the clock of {host} was set, by up to {step} against that of {first}, between {at} and "
        "{last} after the first span; times near that are uncertain by as much"
        if more
        else "the clock of {host} was set back by {step} against that of {first}, about {at} after "
        "the first span; times near that are uncertain by as much"
        if step > 0
        else "the clock of {host} was set forward by {step} against that of {first}, about {at} "
        "after the first span; times near that are uncertain by as much",
        host=host.name,
        first=first.name,
        step=duration_text(max(abs(by) for _, by in jumps)),
        at=duration_text(max(at_ns, 0)),
        last=duration_text(max(jumps[-1][0], 0)),
    )
    return Finding("clock", (evidence,), host.ranks)


def on_line(line: ClockLine, at_ns: Times) -> Times:
    """Returns times of a host's clock on the first host's."""
    return line.moved(at_ns)


def _windows(spans: Spans, host: NDArray[np.int64], num_hosts: int) -> list[Window]:
    """Returns each host's first start and last end; the whole trace's for one without spans."""
    whole = int(spans.start_ns.min()), int(spans.end_ns.max())
    mine = [host[spans.rank] == number for number in range(num_hosts)]
    return [
        (int(spans.start_ns[each].min()), int(spans.end_ns[each].max())) if each.any() else whole
        for each in mine
    ]


def _clock(
    name: str, line: ClockLine | None, source: str, window: Window, least_ns: float
) -> AlignedClock:
    if line is None:
        return AlignedClock(name, "wall", 0.0, 0.0, None)
    # Nothing is stated more finely than stamps can tell, except of a clock against itself.
    told = (max(each, least_ns) for each in line.worst_between(*window))
    bound, symmetric = (0.0, 0.0) if source == "own" else told
    return AlignedClock(
        name,
        source,
        float(line.offset_at(np.array(window)).mean()),
        line.drift,
        bound if math.isfinite(bound) else None,
        symmetric if math.isfinite(bound) else None,
    )


# ----------------------------------------------------------------------- what crossed


def _host_of_rank(trace: Trace) -> NDArray[np.int64]:
    host = np.zeros(trace.job.world_size, dtype=np.int64)
    for number, each in enumerate(trace.hosts):
        host[list(each.ranks)] = number
    return host


def _pipeline_of_rank(trace: Trace) -> NDArray[np.int64] | None:
    """Returns the number of each rank's pipeline, None where the layout is not known."""
    if trace.layout is None or trace.layout.sizes.get("pp", 1) == 1:
        return None
    groups = np.array(trace.layout.groups(trace.layout.kind_of("pp")).lists())
    pipeline = np.zeros(trace.job.world_size, dtype=np.int64)
    pipeline[groups] = np.arange(len(groups))[:, None]
    return pipeline


def _messages(spans: Spans, host: NDArray[np.int64]) -> Crossings:
    """Returns the messages between hosts, by the start of the send and the end of the receive."""
    pairs = pair_messages(spans)
    return _between_hosts(
        host[spans.rank[pairs.sends]],
        host[spans.rank[pairs.receives]],
        spans.start_ns[pairs.sends],
        spans.end_ns[pairs.receives],
    )


def _orders(trace: Trace, host: NDArray[np.int64]) -> Crossings:
    """Returns hand-overs between hosts that no message shows, by the order of F and of B.

    A job in pieces hands over when its last piece ended, to the first of its taker's. Where a
    computation's span holds its wait, only its end is known to follow.
    """
    spans = trace.spans
    before, after = whole_hand_overs(spans, _pipeline_of_rank(trace))
    return _between_hosts(
        host[spans.rank[before]],
        host[spans.rank[after]],
        spans.end_ns[before],
        (spans.end_ns if trace.waits_inside else spans.start_ns)[after],
    )


def _between_hosts(
    from_host: NDArray[np.int64], to_host: NDArray[np.int64], left: Times, arrived: Times
) -> Crossings:
    apart = from_host != to_host
    return Crossings(from_host[apart], to_host[apart], left[apart], arrived[apart])


def _joined(*parts: Crossings) -> Crossings:
    return Crossings(
        np.concatenate([part.from_host for part in parts]),
        np.concatenate([part.to_host for part in parts]),
        np.concatenate([part.left_ns for part in parts]),
        np.concatenate([part.arrived_ns for part in parts]),
    )


def _reaches_all(crossings: Crossings, num_hosts: int) -> bool:
    """Tells whether crossings, both ways, join every host to the first."""
    ways = set(zip(crossings.from_host.tolist(), crossings.to_host.tolist(), strict=True))
    reached, edge = {0}, [0]
    while edge:
        here = edge.pop()
        # Crossings one way alone bound an offset from one side only: it could be any beyond that.
        more = {b for a, b in ways if a == here and (b, a) in ways} - reached
        reached |= more
        edge += more
    return len(reached) == num_hosts


# ----------------------------------------------------------------------- lines


def _lines(
    sources: Sequence[Crossings],
    pings: Crossings | None,
    windows: Sequence[Window],
    resolution_ns: int,
) -> dict[Pair, ClockLine]:
    """Returns the line of every pair of hosts that has bounds from both sides."""
    if not sources:
        return {}
    whole = _joined(*sources)
    pairs = {
        (min(a, b), max(a, b))
        for a, b in zip(whole.from_host.tolist(), whole.to_host.tolist(), strict=True)
    }
    lines = {}
    for pair in sorted(pairs):
        asked = None if pings is None else _bounds(pings, pair, resolution_ns)
        # The line is of the higher host's clock, so it has to hold over that host's window.
        line = fit_clock(*_bounds(whole, pair, resolution_ns), windows[pair[1]], asked)
        if line is not None:
            lines[pair] = line
    return lines


def _bounds(crossings: Crossings, pair: Pair, resolution_ns: int) -> tuple[Bounds, Bounds]:
    """Returns the lower and upper bounds of the offset between two hosts.

    A stamp that was cut or rounded is of any moment within what its writer tells, and a
    difference of two says no more; one of whole nanoseconds is taken as it stands.
    """
    coarse = resolution_ns if resolution_ns > 1 else 0
    low, high = pair
    up = (crossings.from_host == low) & (crossings.to_host == high)
    down = (crossings.from_host == high) & (crossings.to_host == low)
    arrived, left = crossings.arrived_ns, crossings.left_ns
    return (
        Bounds(arrived[up], left[up] - arrived[up] - coarse),
        Bounds(left[down], arrived[down] - left[down] + coarse),
    )


def _to_first(lines: dict[Pair, ClockLine], num_hosts: int) -> list[ClockLine | None]:
    """Returns each host's line to the first, over the pairs whose uncertainties add up least."""
    found: list[ClockLine | None] = [None] * num_hosts
    pushed = count()  # of equal costs the first found wins: lines have no order
    waiting = [(0.0, next(pushed), 0, ClockLine.same())]
    # Dijkstra's shortest paths from host 0, where a line is as long as its mean bound.
    while waiting:
        cost, _, here, line = heapq.heappop(waiting)
        if found[here] is not None:
            continue
        found[here] = line
        for there, step in _neighbours(lines, here):
            if found[there] is None:
                more = float(step.bound.mean())
                heapq.heappush(waiting, (cost + more, next(pushed), there, step.then(line)))
    return found


def _neighbours(lines: dict[Pair, ClockLine], here: int) -> Iterator[tuple[int, ClockLine]]:
    """Yields the hosts next to ``here`` with the line that turns their clock into its."""
    for (low, high), line in lines.items():
        if low == here:
            yield high, line
        elif high == here:
            yield low, line.reversed()
