"""GroupTraffic: what one operation moved over the groups of one kind, and how fast.

    kind   operation    ranks  times      size   transfer      wait       busbw
    tp     all_reduce       2     96   16.8 MB     210 us   35.0 us     80 GB/s
    dp     all_gather       8     24   52.4 MB     3.1 ms   1.20 ms     15 GB/s

Transfer is the time of the last to come, who waited for nobody; where that is not known, it is the
least of those that are, which may hold a wait, and busbw is then at least what is told.
"""

from __future__ import annotations

from dataclasses import dataclass

from serried.collective.bus_factor import bus_factor
from serried.mesh import Layout


@dataclass(frozen=True)
class GroupTraffic:
    """Holds one operation over the groups of one kind; times are ns, summed over its meetings."""

    group: str
    operation: str
    """As nccl-tests and ``serried check`` call it: ``all_reduce``."""
    num_ranks: int
    """Members of one group; 0 where it is not recorded."""
    num_nodes: int
    """Nodes that a group spreads over; 0 where it is not recorded."""
    count: int
    size_bytes: int | None
    """All meetings together; None where a size is not recorded."""
    transfer_ns: int
    wait_ns: float
    """What a member waited for the last to come, a mean over members, summed over meetings."""
    is_whole: bool
    """Whether the transfer surely holds no wait: all members have files, and none computed
    meanwhile."""

    @property
    def busbw_bytes_per_s(self) -> float | None:
        """What a link carried while bytes went over it; None where sizes are not recorded."""
        if self.size_bytes is None or not self.transfer_ns or self.num_ranks < 2:
            return None
        return self.size_bytes / self.transfer_ns * 1e9 * bus_factor(self.operation, self.num_ranks)


class GroupKinds:
    """Says of which kind of a layout's groups some ranks are."""

    def __init__(self, layout: Layout | None) -> None:
        self._layout = layout
        self._known: dict[tuple[int, ...], str | None] = {}

    def of(self, ranks: tuple[int, ...]) -> str | None:
        """Returns the kind that has a group of just these ranks, its dimension first.

        None where there is none, or no layout.
        """
        if ranks not in self._known:
            self._known[ranks] = self._kind(ranks)
        return self._known[ranks]

    def _kind(self, ranks: tuple[int, ...]) -> str | None:
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
