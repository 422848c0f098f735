"""Traffic: what each kind of group exchanged, how fast, and how long its ranks waited in it.

A group is called as the layout calls its kind, else as the program described it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from serried.mesh import Layout
from serried.trace.gpu.activity import CollectiveCall
from serried.trace.gpu.meetings import Meeting, sizes_of
from serried.trace.model.group_traffic import GroupKinds, GroupTraffic

_UNTOLD = frozenset({"", "undefined", "default_pg"})
_NODE = 8
"""Ranks that are taken for neighbours where a profile does not name their hosts."""


def group_traffic(
    found: Sequence[Meeting],
    world_size: int,
    layout: Layout | None = None,
    hosts: Mapping[int, str] | None = None,
) -> list[GroupTraffic]:
    """Returns what kinds of groups exchanged, the longest transfer and wait together first.

    ``hosts`` says where ranks are, as far as that is known.
    """
    kinds = GroupKinds(layout)
    together: dict[tuple[str, str, int, int], list[tuple[Meeting, int]]] = defaultdict(list)
    for meeting, size in zip(found, sizes_of(found).tolist(), strict=True):
        call = meeting.call
        members = call.num_ranks if call else 0
        nodes = _num_nodes(call, hosts or {})
        together[_name(call, kinds, world_size), meeting.operation, members, nodes].append(
            (meeting, size)
        )
    rows = [_traffic(key, each) for key, each in together.items()]
    return sorted(rows, key=lambda row: -(row.transfer_ns + row.wait_ns))


def _traffic(key: tuple[str, str, int, int], found: Sequence[tuple[Meeting, int]]) -> GroupTraffic:
    sizes = [size for _, size in found]
    return GroupTraffic(
        *key,
        count=len(found),
        size_bytes=sum(sizes) if min(sizes) >= 0 else None,
        transfer_ns=sum(each.transfer_ns for each, _ in found),
        wait_ns=sum(sum(each.took_ns) / len(each.ranks) - each.transfer_ns for each, _ in found),
        is_whole=all(each.is_whole for each, _ in found),
    )


def _name(call: CollectiveCall | None, kinds: GroupKinds, world_size: int) -> str:
    """Returns the name of a group; "" where the profile does not record any."""
    if call is None:
        return ""
    if kind := kinds.of(call.ranks):
        return kind
    if call.purpose not in _UNTOLD:
        return call.purpose
    return "world" if call.num_ranks == world_size else f"group {call.group}"


def _num_nodes(call: CollectiveCall | None, hosts: Mapping[int, str]) -> int:
    if call is None or not call.ranks:
        return 0
    known = [hosts.get(rank, "") for rank in call.ranks]
    return len({*known}) if all(known) else len({rank // _NODE for rank in call.ranks})
