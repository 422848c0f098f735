"""What collectives of a run reached beside what a check measured and what the price of a plan is.

    dp   all_reduce   8 ranks   run 4.1 GB/s   check 4.4 GB/s   plan 45 GB/s

The check's rows are those of the nearest shape and size (``busbw``); the plan's price is the
quickest algorithm over a network known by name (``collective_price``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from serried.collective.networks import NetworkPreset
from serried.collective.placed_group import PlacedGroup
from serried.errors import InputError
from serried.plan.busbw import BusbwTable
from serried.plan.collective_price import CollectiveQuestion
from serried.trace.model.group_traffic import GroupTraffic


@dataclass(frozen=True)
class TrafficReference:
    """Holds what one operation over the groups of one kind reached, beside what it could."""

    row: GroupTraffic
    checked: float | None = None
    """Bytes a second that ``serried check`` measured; None where it did not."""
    planned: float | None = None
    """Bytes a second that a plan counts with; None where it has no price."""

    @property
    def share(self) -> float | None:
        """The part that the run reached of what was checked, else of what is planned."""
        reached, could = self.row.busbw_bytes_per_s, self.checked or self.planned
        return reached / could if reached and could else None


def with_references(
    rows: Iterable[GroupTraffic], checked: BusbwTable | None, planned: NetworkPreset | None
) -> list[TrafficReference]:
    """Returns ``rows`` beside both references, those first that reach the least share of theirs.

    Without a reference they stand as they did.
    """
    found = [
        TrafficReference(
            row,
            None if checked is None else _checked(row, checked),
            None if planned is None else _planned(row, planned),
        )
        for row in rows
    ]
    if checked is None and planned is None:
        return found
    return sorted(found, key=lambda each: (each.share is None, each.share or 0.0))


def _mean_bytes(row: GroupTraffic) -> int | None:
    """Returns the size of one of them; None where it, or who was in it, is not known."""
    if not row.size_bytes or not row.num_nodes or row.num_ranks < 2:
        return None
    return max(1, row.size_bytes // row.count)


def _checked(row: GroupTraffic, table: BusbwTable) -> float | None:
    if (size := _mean_bytes(row)) is None:
        return None
    shape = {"ranks": row.num_ranks, "nodes": row.num_nodes}
    try:
        return table.busbw(row.operation, **shape, size_bytes=size)
    except InputError:  # the table has no such operation, or none over such links
        return None


def _planned(row: GroupTraffic, network: NetworkPreset) -> float | None:
    if (size := _mean_bytes(row)) is None:
        return None
    nodes = tuple(rank * row.num_nodes // row.num_ranks for rank in range(row.num_ranks))
    group = PlacedGroup(tuple(range(row.num_ranks)), nodes)
    name = row.operation.replace("sendrecv", "send_receive").replace("_", "-")
    try:
        return CollectiveQuestion(name, group, size, network.networks()).priced().busbw
    except InputError:  # no collective of that name is priced
        return None
