"""Advice on nearness: groups with much traffic that leave their NVLink domain, and half nodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from serried.errors import listed
from serried.finding import Finding, Sentence, said
from serried.mesh.compare import shown
from serried.mesh.domain import Domain
from serried.mesh.groups import Groups
from serried.mesh.kind import GroupKind
from serried.mesh.layout import Layout
from serried.mesh.placement import Placement

TRAFFIC = {
    "tp": said("tensor traffic, several times a layer, then crosses the slower network"),
    "ep": said("expert traffic, two all-to-alls a layer, then crosses the slower network"),
}


def across(layout: Layout, domain: Domain) -> Iterator[Finding]:
    """Yields tensor and expert groups that leave their NVLink domain."""
    for dim, why in TRAFFIC.items():
        kind = layout.kind(layout.dims[dim]) if dim in layout.dims else None
        if kind is None:
            continue
        groups = layout.groups(kind.name)
        crossing = _crossing(groups, domain)
        if len(crossing):
            first = groups[int(crossing[0])].tolist()
            evidence = said(
                "{count} of {total} {kind} groups spread over several {domain}, such as {ranks}",
                count=len(crossing),
                total=len(groups),
                kind=kind.name,
                domain=domain.name,
                ranks=shown(first, 8),
            )
            cure = _cure(layout, kind, dim, first, domain)
            yield Finding(f"{dim}_across", (evidence, why), tuple(first), (kind.name,), cure)


def _crossing(groups: Groups, domain: Domain) -> NDArray[np.int64]:
    return np.flatnonzero(domain.placement.nodes_of(groups) > 1)


def _cure(layout: Layout, kind: GroupKind, dim: str, group: list[int], domain: Domain) -> Sentence:
    """Returns the sizes that would stay inside, or the axes that stand in between."""
    apart = abs(group[1] - group[0])
    fits = _fits(layout.world_size, apart, len(group), domain)
    if dim == "ep" and layout.sizes.get("etp", 1) > 1 and apart > 1:
        return said(
            "{dim} that stays inside: {fits}; etp=1 would set expert ranks side by side",
            dim=dim,
            fits=listed(fits),
        )
    between = _faster(layout, kind)
    if fits == [1] and between:
        return said(
            "let {axes} vary before {others} in the order; they stand {apart} ranks apart",
            axes=listed(kind.axes) or dim,
            others=listed(between),
            apart=apart,
        )
    return said("{dim} that stays inside: {fits}", dim=dim, fits=listed(fits))


def _fits(world_size: int, apart: int, size: int, domain: Domain) -> list[int]:
    """Returns the group sizes below ``size`` that fit a domain, members ``apart`` ranks apart."""
    steps, rest = divmod(domain.num_ranks, apart)
    if rest or not steps:
        return [1]
    return [n for n in range(1, size) if steps % n == 0 and world_size % (n * apart) == 0] or [1]


def _faster(layout: Layout, kind: GroupKind) -> list[str]:
    """Returns the axes that vary faster than those of ``kind`` and are split."""
    mesh = layout.meshes.get(kind.mesh)
    if mesh is None or not kind.axes:
        return []
    last = max(mesh.axes.index(axis) for axis in kind.axes)
    return [axis for axis in mesh.axes[last + 1 :] if mesh.sizes[axis] > 1]


def wide_context(layout: Layout, domain: Domain) -> Iterator[Finding]:
    """Yields a finding where context and tensor ranks together leave the NVLink domain."""
    cp, tp = layout.sizes.get("cp", 1), layout.sizes.get("tp", 1)
    kinds = [layout.kind(layout.dims[dim]) for dim in ("tp", "cp") if dim in layout.dims]
    if cp == 1 or len(kinds) < 2 or len({kind.mesh for kind in kinds}) > 1:
        return
    if any(kind.rule or kind.mesh not in layout.meshes for kind in kinds):
        return
    axes = {axis for kind in kinds for axis in kind.axes}
    groups = Groups.even(layout.meshes[kinds[0].mesh].groups(*axes))
    crossing = _crossing(groups, domain)
    if not len(crossing):
        return
    first = groups[int(crossing[0])].tolist()
    evidence = said(
        "cp x tp = {cp} x {tp} spreads over several {domain}, such as {ranks}, so context traffic "
        "of every attention layer crosses the slower network",
        cp=cp,
        tp=tp,
        domain=domain.name,
        ranks=shown(first, 8),
    )
    yield Finding(
        "cp_tp_wide",
        (evidence,),
        tuple(first),
        tuple(kind.name for kind in kinds),
        _narrower(layout, kinds, cp * tp, domain),
    )


def _narrower(layout: Layout, kinds: list[GroupKind], width: int, domain: Domain) -> Sentence:
    if width > domain.num_ranks:
        return said("cp x tp of at most {ranks} stays inside", ranks=domain.num_ranks)
    between = [axis for axis in _faster(layout, kinds[1]) if axis not in kinds[0].axes]
    if between:
        return said("let cp vary before {others} in the order", others=listed(between))
    fits = [n for n in range(1, domain.num_ranks + 1) if domain.num_ranks % n == 0]
    return said("cp x tp that divides a domain: {fits}", fits=listed(fits))


def half_node(layout: Layout, placement: Placement) -> Iterator[Finding]:
    """Yields a finding where the last of nodes that are alike is filled in part."""
    if placement.node_gpus:
        return
    per_node = placement.ranks_per_node
    nodes, left = divmod(layout.world_size, per_node)
    if nodes and left:
        evidence = said(
            "the last node holds {left} of {per_node} ranks; launchers start the same number on "
            "each, and its idle GPUs are paid for",
            left=left,
            per_node=per_node,
        )
        cure = said(
            "worlds that fill nodes: {below} and {above}",
            below=nodes * per_node,
            above=(nodes + 1) * per_node,
        )
        ranks = tuple(placement.ranks_on(nodes))
        yield Finding("half_node", (evidence,), ranks, cure=cure)
