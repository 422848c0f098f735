"""Alignment: the clocks of a run's hosts brought onto one, by what crossed between them.

    pings          asked and answered over the job's own groups, at start, end and between
    messages       a send begins before its receive ends
    order          where a log has no messages: F of stage s ends before F of s+1 begins,
                   B of stage s+1 before B of s

Each pair of hosts with bounds from both sides gets a line (``clock_fit``); the hosts are joined
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

from serried.span import Spans
from serried.trace.clock_fit import Bounds, ClockLine, fit_clock
from serried.trace.merge import HostClock, Trace
from serried.trace.pairs import hand_overs, pair_messages

Times = NDArray[np.int64]
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

    def __len__(self) -> int:
        return len(self.left_ns)


def aligned(trace: Trace, pings: Crossings | None = None) -> Trace:
    """Returns ``trace`` with the spans of all hosts on the first host's clock.

    ``pings`` are in the hosts' wall times less ``trace.base_ns``, as the spans are.
    """
    if len(trace.hosts) < 2:
        return replace(trace, clocks=(HostClock(trace.hosts[0].name, "own", 0.0, 0.0, 0.0),))
    host = _host_of_rank(trace)
    sources = [("pings", pings)] if pings is not None and len(pings) else []
    messages = _messages(trace.spans, host)
    sources += [("messages", messages)] if len(messages) else []
    if not sources or not _reaches_all(_joined(*(each for _, each in sources)), len(trace.hosts)):
        orders = _orders(trace, host)
        sources += [("order", orders)] if len(orders) else []
    lines = _lines([crossings for _, crossings in sources])
    to_first = _to_first(lines, len(trace.hosts))
    clocks, spans = [], trace.spans
    window = np.array([trace.spans.start_ns.min(), trace.spans.end_ns.max()])
    start, end = spans.start_ns.copy(), spans.end_ns.copy()
    for number, each in enumerate(trace.hosts):
        line = to_first[number]
        if line is None:
            clocks.append(HostClock(each.name, "wall", 0.0, 0.0, None))
            continue
        mine = host[spans.rank] == number
        start[mine] += np.rint(line.offset_at(start[mine])).astype(np.int64)
        end[mine] += np.rint(line.offset_at(end[mine])).astype(np.int64)
        worst = max(line.uncertainty_ns(int(at)) for at in window)
        source = "+".join(name for name, _ in sources) if number else "own"
        middle = float(line.offset_at(window).mean())
        known = worst if math.isfinite(worst) else None
        clocks.append(HostClock(each.name, source, middle, line.drift, known if number else 0.0))
    first_ns = int(start.min())
    moved = replace(spans, start_ns=start - first_ns, end_ns=np.maximum(end, start) - first_ns)
    return replace(trace, spans=moved, base_ns=trace.base_ns + first_ns, clocks=tuple(clocks))


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

    Where a computation's span holds its wait, only its end is known to follow.
    """
    spans = trace.spans
    before, after = hand_overs(spans, _pipeline_of_rank(trace))
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
    names = Crossings.__dataclass_fields__
    return Crossings(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _reaches_all(crossings: Crossings, num_hosts: int) -> bool:
    """Tells whether crossings, both ways, join every host to the first."""
    ways = set(zip(crossings.from_host.tolist(), crossings.to_host.tolist(), strict=True))
    reached, edge = {0}, [0]
    while edge:
        here = edge.pop()
        more = {b for a, b in ways if a == here and (b, a) in ways} - reached
        reached |= more
        edge += more
    return len(reached) == num_hosts


# ----------------------------------------------------------------------- lines


def _lines(sources: Sequence[Crossings]) -> dict[Pair, ClockLine]:
    """Returns the line of every pair of hosts that has bounds from both sides."""
    if not sources:
        return {}
    whole = _joined(*sources)
    pairs = {
        (min(a, b), max(a, b))
        for a, b in zip(whole.from_host.tolist(), whole.to_host.tolist(), strict=True)
    }
    lines = {}
    for low, high in sorted(pairs):
        up = (whole.from_host == low) & (whole.to_host == high)
        down = (whole.from_host == high) & (whole.to_host == low)
        line = fit_clock(
            Bounds(whole.arrived_ns[up], whole.left_ns[up] - whole.arrived_ns[up]),
            Bounds(whole.left_ns[down], whole.arrived_ns[down] - whole.left_ns[down]),
        )
        if line is not None:
            lines[low, high] = line
    return lines


def _to_first(lines: dict[Pair, ClockLine], num_hosts: int) -> list[ClockLine | None]:
    """Returns each host's line to the first, over the pairs whose uncertainties add up least."""
    found: list[ClockLine | None] = [None] * num_hosts
    pushed = count()  # of equal costs the first found wins: lines have no order
    waiting = [(0.0, next(pushed), 0, ClockLine(0, 0, 0, 0, 0, 0))]
    while waiting:
        cost, _, here, line = heapq.heappop(waiting)
        if found[here] is not None:
            continue
        found[here] = line
        for there, step in _neighbours(lines, here):
            if found[there] is None:
                more = step.uncertainty_ns(step.at_ns) ** 2
                heapq.heappush(waiting, (cost + more, next(pushed), there, _after(line, step)))
    return found


def _neighbours(lines: dict[Pair, ClockLine], here: int) -> Iterator[tuple[int, ClockLine]]:
    """Yields the hosts next to ``here`` with the line that turns their clock into its."""
    for (low, high), line in lines.items():
        if low == here:
            yield high, line
        elif high == here:
            yield low, _reversed(line)


def _reversed(line: ClockLine) -> ClockLine:
    """Returns the line from A's clock to B's of the one from B's to A's."""
    return replace(
        line,
        at_ns=line.at_ns + round(line.offset_ns),
        offset_ns=-line.offset_ns,
        drift=1 / (1 + line.drift) - 1,
    )


def _after(first: ClockLine, second: ClockLine) -> ClockLine:
    """Returns the line that goes through ``second`` and then through ``first``."""
    there = second.at_ns + round(second.offset_ns)
    away = there - first.at_ns
    return ClockLine(
        at_ns=second.at_ns,
        offset_ns=second.offset_ns + first.offset_ns + first.drift * away,
        drift=(1 + first.drift) * (1 + second.drift) - 1,
        offset_variance=second.offset_variance
        + first.offset_variance
        + first.drift_variance * float(away) ** 2,
        drift_variance=first.drift_variance + second.drift_variance,
        bound_ns=first.bound_ns + second.bound_ns,
    )
