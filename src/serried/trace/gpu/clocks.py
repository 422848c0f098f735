"""Clocks of several hosts, put onto one by the collectives that their ranks met in.

    host a   ├──── all_reduce ────┤                 no member ends before all have begun:
    host b        ├── the same ───┤                 lo = start_b - end_a,  hi = end_b - start_a
                                                    and all end about together

How far b's clock is ahead of a's lies between the largest ``lo`` and the smallest ``hi``, whatever
the network did; inside that the median difference of the ends is taken, for a collective's last
bytes reach all members within microseconds. Ranks of one host share its clock and are not moved;
where a profile does not name its host, each rank is taken for one of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from serried.trace.gpu.activity import GpuRank, GpuTrace
from serried.trace.gpu.meetings import Meeting, meetings

_TOGETHER = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"})
"""Collectives that no member leaves before all have come."""


@dataclass(frozen=True)
class GpuClock:
    """Says how a host's clock was moved, in ns."""

    host: str
    """What it is called; as its rank where it has no name."""
    ranks: tuple[int, ...]
    moved_ns: int
    within_ns: int | None
    """How far off it may be, whatever messages took; None for the first, which is not moved."""


@dataclass(frozen=True)
class GpuAlignment:
    """Holds how clocks were moved, and how many collectives contradict one another then."""

    clocks: tuple[GpuClock, ...]
    """Those of hosts that collectives tie to the first; the others keep their clock."""
    checked: int
    violations: int
    """Collectives that a member left before another had begun."""


def aligned_gpus(trace: GpuTrace) -> tuple[GpuTrace, GpuAlignment]:
    """Returns ``trace`` on the clock of its first rank's host."""
    met = [each for each in meetings(trace.ranks, trace.world_size) if each.operation in _TOGETHER]
    hosts: dict[str, list[int]] = defaultdict(list)
    for rank in trace.ranks:
        hosts[_host(rank)].append(rank.rank)
    host_of = {number: host for host, numbers in hosts.items() for number in numbers}
    clocks = _moves(met, host_of, hosts)
    moved = {number: clock.moved_ns for clock in clocks for number in clock.ranks}
    ranks = tuple(_later(rank, moved.get(rank.rank, 0)) for rank in trace.ranks)
    across = [each for each in met if len({host_of[rank] for rank in each.ranks}) > 1]
    bad = sum(_contradicts(each, moved) for each in across)
    return replace(trace, ranks=ranks), GpuAlignment(tuple(clocks), len(across), bad)


def _moves(
    met: Sequence[Meeting], host_of: dict[int, str], hosts: dict[str, list[int]]
) -> list[GpuClock]:
    """Returns the hosts that collectives tie to the first, each with its move."""
    ends: dict[tuple[str, str], list[tuple[int, int, int]]] = defaultdict(list)
    for meeting in met:
        stays = dict(
            zip(meeting.ranks, zip(meeting.start_ns, meeting.end_ns, strict=True), strict=True)
        )
        # One rank of a host speaks for it.
        speakers = {host_of[rank]: rank for rank in reversed(meeting.ranks)}
        for a, of_a in speakers.items():
            for b, of_b in speakers.items():
                if a != b:
                    (start_a, end_a), (start_b, end_b) = stays[of_a], stays[of_b]
                    ends[a, b].append((start_b - end_a, end_b - end_a, end_b - start_a))
    first = next(iter(hosts))
    known = {first: GpuClock(first, tuple(hosts[first]), 0, None)}
    waiting = [first]
    while waiting:
        near = waiting.pop(0)
        for (a, b), found in ends.items():
            if a == near and b not in known:
                known[b] = _clock(b, hosts[b], known[near], found)
                waiting.append(b)
    return [*known.values()]


def _clock(
    host: str, ranks: Sequence[int], near: GpuClock, found: Sequence[tuple[int, int, int]]
) -> GpuClock:
    table = np.array(found, dtype=np.int64)
    low, high = int(table[:, 0].max()), int(table[:, 2].min())
    ahead = int(np.median(table[:, 1]))
    # Bounds that contradict one another (a clock that drifts) hold nothing in.
    if low <= high:
        ahead = min(max(ahead, low), high)
    within = max(ahead - low, high - ahead, 0) + (near.within_ns or 0)
    return GpuClock(host, tuple(ranks), near.moved_ns - ahead, within)


def _contradicts(meeting: Meeting, moved: dict[int, int]) -> bool:
    by = [moved.get(rank, 0) for rank in meeting.ranks]
    starts = [at + each for at, each in zip(meeting.start_ns, by, strict=True)]
    ends = [at + each for at, each in zip(meeting.end_ns, by, strict=True)]
    return min(ends) < max(starts)


def _host(rank: GpuRank) -> str:
    return rank.host or f"rank {rank.rank}"


def _later(rank: GpuRank, by_ns: int) -> GpuRank:
    if not by_ns:
        return rank
    return replace(
        rank,
        operations=rank.operations.later(by_ns),
        calls=rank.calls.later(by_ns),
        steps=rank.steps.later(by_ns),
        syncs=rank.syncs.later(by_ns),
    )
