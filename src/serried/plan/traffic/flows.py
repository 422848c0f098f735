"""What a step sends over each link between ranks: the transfers of a plan on a layout's own groups.

    ring    0 -> 1 -> 2 -> 0      a rank sends to the next of its group (all_gather, all_reduce …)
    chain   0 -> 1 -> 2           activations there and gradients back (pp)
    all     each with each        an equal part to every other of the group (all_to_all)

Bytes are those of ``plan.traffic.transfers``, of a rank of the fullest stage, taken for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from serried.mesh import Groups, Layout, Placement
from serried.plan.traffic.transfers import Transfer

Pattern = Literal["ring", "chain", "all"]
_PATTERNS: dict[str, Pattern] = {"pp": "chain", "ep": "all"}
"""How groups of a dimension send, where not around a ring."""
_DIM = {"fsdp": "dp"}
"""Kinds whose groups are those of another dimension."""
_NAMES = {
    "embedding": ("embd", "embedding"),
    "expert_dp": ("expt_dp", "edp", "efsdp"),
    "fsdp": ("dp_shard",),
    "dp": ("dp_replicate",),
}
"""Kinds of groups that are no dimension, by what frameworks call them."""


@dataclass(frozen=True, eq=False)
class Flow:
    """Holds what the groups of one kind send in a step."""

    kind: str
    dim: str
    """The dimension of its groups, "" where they are of none."""
    collectives: tuple[str, ...]
    ranks: int
    pattern: Pattern
    link_bytes: float
    """What one link carries in a step: of a chain both ways, else one way."""
    next: NDArray[np.int32]
    """The rank that each one sends to, of ``all`` the next of its group; -1 for none."""
    within_bytes: float
    """What all ranks send in a step inside nodes."""
    across_bytes: float
    """The same between nodes."""


def flows_of(
    transfers: Sequence[Transfer], layout: Layout, placement: Placement
) -> tuple[Flow, ...]:
    """Returns a flow for each kind of the transfers, those left out of which the layout has none.

    >>> from serried.launch.request import LayoutRequest
    >>> from serried.plan.asked import plan_request
    >>> from serried.plan.traffic.transfers import step_transfers
    >>> asked = LayoutRequest.of({"world_size": 16, "tp": 2, "pp": 4})
    >>> told = {"model": "llama3-8b", "cluster": "h100", "sequence": "8192", "global_batch": "64"}
    >>> found = flows_of(step_transfers(plan_request(asked, told)), *asked.laid_out())
    >>> [(flow.kind, flow.pattern, flow.next[:5].tolist()) for flow in found][:2]
    [('tp', 'ring', [1, 0, 3, 2, 5]), ('pp', 'chain', [4, 5, 6, 7, 8])]
    """
    kinds = dict.fromkeys(each.kind for each in transfers)
    made = [_flow([each for each in transfers if each.kind == kind], layout) for kind in kinds]
    return tuple(_counted(flow, groups, placement) for flow, groups in filter(None, made))


def even_flows(
    kinds: Sequence[tuple[str, str]], layout: Layout, placement: Placement
) -> tuple[Flow, ...]:
    """Returns a flow for each kind, given as (dimension, kind): who sends to whom, all alike.

    Without a model nobody knows how much: each link carries 1.

    >>> from serried.launch.request import LayoutRequest
    >>> asked = LayoutRequest.of({"world_size": 16, "tp": 2, "pp": 4})
    >>> found = even_flows([("tp", "tp"), ("pp", "pp")], *asked.laid_out())
    >>> [(flow.kind, flow.pattern, flow.within_bytes, flow.across_bytes) for flow in found]
    [('tp', 'ring', 16.0, 0.0), ('pp', 'chain', 8.0, 4.0)]
    """
    made = [(_even(dim, layout.groups(kind), kind, layout), kind) for dim, kind in kinds]
    return tuple(
        _counted(flow, layout.groups(kind), placement) for flow, kind in made if flow.ranks > 1
    )


def _even(dim: str, groups: Groups, kind: str, layout: Layout) -> Flow:
    pattern: Pattern = _PATTERNS.get(dim, "ring")
    ranks = int(groups.sizes.max()) if len(groups) else 0
    follows = following(groups, layout.world_size, is_ring=pattern != "chain")
    return Flow(kind, dim, (), ranks, pattern, 1.0, follows, 0.0, 0.0)


def groups_of(flow: Flow, layout: Layout) -> Groups:
    """Returns the groups that a flow runs in."""
    kind = kind_of_transfer(flow, layout)
    assert kind is not None, f"no groups of {flow.kind}"
    return layout.groups(kind)


def _flow(transfers: Sequence[Transfer], layout: Layout) -> tuple[Flow, Groups] | None:
    first = transfers[0]
    dim = _DIM.get(first.kind, first.kind)
    kind = kind_of_transfer(first, layout)
    if kind is None:
        return None
    groups = layout.groups(kind)
    names = tuple(each.collective for each in transfers)
    pattern: Pattern = "chain" if dim == "pp" else "all" if names[0] == "all_to_all" else "ring"
    sent = sum(each.step_bytes for each in transfers)
    each = sent / (first.ranks - 1) if pattern == "all" else sent
    follows = following(groups, layout.world_size, is_ring=pattern != "chain")
    known = dim if dim in layout.dims else ""
    return Flow(first.kind, known, names, first.ranks, pattern, each, follows, 0.0, 0.0), groups


def kind_of_transfer(transfer: Transfer | Flow, layout: Layout) -> str | None:
    """Returns the layout's kind of groups that a transfer runs over: those of as many ranks."""
    dim = _DIM.get(transfer.kind, transfer.kind)
    names = [
        name for name in _NAMES.get(transfer.kind, ()) if any(name == k.name for k in layout.kinds)
    ]
    if dim in layout.dims:
        names += [layout.kind_of(dim, with_cp=True), layout.kind_of(dim)]
    for name in names:
        groups = layout.groups(name)
        if len(groups) and int(groups.sizes.max()) == transfer.ranks:
            return name
    return None


def following(groups: Groups, world_size: int, *, is_ring: bool) -> NDArray[np.int32]:
    """Returns the rank that comes after each one in its group, -1 for none.

    >>> following(Groups.of([[0, 2], [1, 3]]), 4, is_ring=False).tolist()
    [2, 3, -1, -1]
    """
    found = np.full(world_size, -1, np.int32)
    members, starts, ends = groups.members, groups.bounds[:-1], groups.bounds[1:]
    follows = np.roll(members, -1)
    follows[ends - 1] = members[starts] if is_ring else -1
    alone = np.repeat(groups.sizes == 1, groups.sizes)
    inside = (members < world_size) & (follows < world_size) & ~alone
    found[members[inside]] = follows[inside]
    return found


def _counted(flow: Flow, groups: Groups, placement: Placement) -> Flow:
    """Returns a flow with what all its ranks send inside nodes and between them."""
    ranks = np.arange(len(flow.next), dtype=np.int32)
    node = placement.nodes(ranks)
    if flow.pattern == "all":
        pairs, near = _pairs(groups, node)
        within, across = near * flow.link_bytes, (pairs - near) * flow.link_bytes
    else:
        sends = flow.next >= 0
        is_near = node[flow.next] == node
        within = float((sends & is_near).sum()) * flow.link_bytes
        across = float((sends & ~is_near).sum()) * flow.link_bytes
    return replace(flow, within_bytes=within, across_bytes=across)


def _pairs(groups: Groups, node: NDArray[np.int32]) -> tuple[float, float]:
    """Returns the ordered pairs of ranks within groups, and those of them on one node."""
    of = np.repeat(np.arange(len(groups)), groups.sizes)
    inside = groups.members < len(node)
    _, together = np.unique(
        np.stack([of[inside], node[groups.members[inside]]]), axis=1, return_counts=True
    )
    sizes = groups.sizes.astype(np.float64)
    return float((sizes * (sizes - 1)).sum()), float((together * (together - 1.0)).sum())
