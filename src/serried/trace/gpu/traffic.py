"""Traffic: what each kind of group exchanged, how fast, and how long its ranks waited in it.

    group           operation    ranks  times      size   transfer  wait, mean       busbw
    tp              all_reduce       2     96   16.8 MB     210 us      35.0 us    80 GB/s
    dp              all_gather       8     24   52.4 MB     3.1 ms      1.20 ms    15 GB/s

A group is called as the layout calls its kind, else as the program described it. Transfer is the
time of the last to come, who waited for nobody; where members have no file it is the least of those
that do, which holds a wait, and busbw is then at least what is told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from serried.collective.bus_factor import bus_factor
from serried.mesh import Layout
from serried.trace.gpu.activity import CollectiveCall
from serried.trace.gpu.meetings import Meeting, sizes_of

_UNTOLD = frozenset({"", "undefined", "default_pg"})


@dataclass(frozen=True)
class GroupTraffic:
    """Holds one operation over the groups of one kind; times are ns, summed over its meetings."""

    group: str
    operation: str
    num_ranks: int
    """Members of one group; 0 where it is not recorded."""
    count: int
    size_bytes: int | None
    """All meetings together; None where a size is not recorded."""
    transfer_ns: int
    wait_ns: float
    """What a member waited for the last to come, a mean over members, summed over meetings."""
    is_whole: bool
    """Whether all members have files, so that transfer holds no wait."""

    @property
    def busbw_bytes_per_s(self) -> float | None:
        """What a link carried while bytes went over it; None where sizes are not recorded."""
        if self.size_bytes is None or not self.transfer_ns or self.num_ranks < 2:
            return None
        return self.size_bytes / self.transfer_ns * 1e9 * bus_factor(self.operation, self.num_ranks)


def group_traffic(
    found: Sequence[Meeting], world_size: int, layout: Layout | None = None
) -> list[GroupTraffic]:
    """Returns what kinds of groups exchanged, the longest transfer and wait together first."""
    names = _GroupNames(world_size, layout)
    together: dict[tuple[str, str, int], list[tuple[Meeting, int]]] = defaultdict(list)
    for meeting, size in zip(found, sizes_of(found).tolist(), strict=True):
        members = meeting.call.num_ranks if meeting.call else 0
        key = names.of(meeting.call), meeting.operation, members
        together[key].append((meeting, size))
    rows = [_traffic(key, each) for key, each in together.items()]
    return sorted(rows, key=lambda row: -(row.transfer_ns + row.wait_ns))


def _traffic(key: tuple[str, str, int], found: Sequence[tuple[Meeting, int]]) -> GroupTraffic:
    sizes = [size for _, size in found]
    return GroupTraffic(
        *key,
        count=len(found),
        size_bytes=sum(sizes) if min(sizes) >= 0 else None,
        transfer_ns=sum(each.transfer_ns for each, _ in found),
        wait_ns=sum(sum(each.took_ns) / len(each.ranks) - each.transfer_ns for each, _ in found),
        is_whole=all(each.is_whole for each, _ in found),
    )


class _GroupNames:
    """Says what a process group is called."""

    def __init__(self, world_size: int, layout: Layout | None) -> None:
        self._world_size = world_size
        self._layout = layout
        self._known: dict[tuple[int, ...], str | None] = {}

    def of(self, call: CollectiveCall | None) -> str:
        """Returns the name of a group; "" where the profile does not record any."""
        if call is None:
            return ""
        if call.ranks not in self._known:
            self._known[call.ranks] = self._kind(call.ranks)
        if kind := self._known[call.ranks]:
            return kind
        if call.purpose not in _UNTOLD:
            return call.purpose
        return "world" if call.num_ranks == self._world_size else f"group {call.group}"

    def _kind(self, ranks: tuple[int, ...]) -> str | None:
        """Returns the layout's kind that has a group of just these ranks, its dimension first."""
        if self._layout is None or not ranks or max(ranks) >= self._layout.world_size:
            return None
        members = sorted(ranks)
        kinds = {
            kind
            for kind, groups in self._layout.groups_of(ranks[0]).items()
            if any(sorted(group) == members for group in groups)
        }
        first = (kind for kind in self._layout.dims.values() if kind in kinds)
        return next(first, min(kinds, default=None))
