"""Advice: what of a layout costs days when nobody looks, each with its reason and its cure.

    tp 16 on nodes of 8 GPUs     tensor traffic of every layer leaves the node     tp 8
    nettest 32 of 80 ranks       groups of 32, 32 and 16                           16, 20, 40

Findings of the framework's own rules come with the layout; here follow those that hold for any
framework. One finding sums up all the groups it concerns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain

import numpy as np

from serried.errors import listed
from serried.finding import Finding, Sentence, said
from serried.mesh.domain import Domain, domain_of
from serried.mesh.groups import Groups, runs_shown, shown, signature
from serried.mesh.kind import FixedKind, GroupKind
from serried.mesh.layers import LayerSplit, layers_by_depth
from serried.mesh.layout import Layout
from serried.mesh.placement import Placement
from serried.mesh.rule import Chain, Ends, First, RankWindows, RingPairs, Rule

BY_REQUEST = frozenset({"half_node", "alone", "doubled", "odd"})
"""Kinds of findings that cost memory or thought; all others slow, hang or mislead a job."""


def advise(
    layout: Layout,
    placement: Placement,
    *,
    nvlink_domain: int | None = None,
    layers: LayerSplit | None = None,
    only_important: bool = False,
) -> list[Finding]:
    """Returns what a user should know of a layout on its nodes, the important first.

    ``nvlink_domain`` is in GPUs, a node when None; ``only_important`` spares the work for
    the rest. Raises InputError where the domain does not fit.

    >>> from serried.mesh import GroupKind, Mesh
    >>> mesh = Mesh({"dp": 2, "tp": 16})
    >>> kinds = (GroupKind("dp", ("dp",)), GroupKind("tp", ("tp",)))
    >>> dims = {"dp": "dp", "tp": "tp"}
    >>> layout = Layout("custom", "1", 32, dict(mesh.sizes), "tp-dp", {"dense": mesh}, kinds, dims)
    >>> [finding.kind for finding in advise(layout, Placement(32))]
    ['tp_across']
    """
    domain = domain_of(placement, nvlink_domain)
    found = chain(
        across(layout, domain),
        wide_context(layout, domain),
        overlapping(layout),
        outside(layout),
        uncovered(layout),
        ragged(layout),
        layers_by_depth(layout, layers),
    )
    rest = chain(
        half_node(layout, placement),
        odd(layout),
        alone(layout),
        doubled(layout),
    )
    fresh = found if only_important else chain(found, rest)
    return [*layout.findings, *(finding for finding in fresh if not _is_said(finding, layout))]


def is_important(finding: Finding) -> bool:
    """Tells whether a finding is to be shown without being asked for."""
    return finding.kind not in BY_REQUEST


def _is_said(finding: Finding, layout: Layout) -> bool:
    """Tells whether the framework's own findings say the same, of all its kinds or in general."""
    told = [other.groups for other in layout.findings if other.kind == finding.kind]
    return () in told or (bool(told) and set(finding.groups) <= set().union(*told))


# ----------------------------------------------- nearness: what leaves its NVLink domain or node

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
        crossing = domain.left_by(groups)
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


def _cure(layout: Layout, kind: GroupKind, dim: str, group: list[int], domain: Domain) -> Sentence:
    """Returns the sizes that would stay inside, or the axes that stand in between."""
    apart = abs(group[1] - group[0])
    fits = domain.sizes_inside(len(group), apart=apart)
    if dim == "ep" and layout.sizes.get("etp", 1) > 1 and apart > 1:
        return said(
            "{dim} that stays inside: {fits}; etp=1 would set expert ranks side by side",
            dim=dim,
            fits=listed(fits),
        )
    between = _faster(layout, kind)
    # No size fits, so the order is at fault: with dp faster than tp, two tp ranks are dp ranks
    # apart.
    if fits == [1] and between:
        return said(
            "let {axes} vary before {others} in the order; they stand {apart} ranks apart",
            axes=listed(kind.axes) or dim,
            others=listed(between),
            apart=apart,
        )
    return said("{dim} that stays inside: {fits}", dim=dim, fits=listed(fits))


def _faster(layout: Layout, kind: GroupKind) -> list[str]:
    """Returns the axes that vary faster than those of ``kind`` and are split."""
    mesh = layout.meshes.get(kind.mesh)
    if mesh is None or not kind.axes:
        return []
    last = max(mesh.axes.index(axis) for axis in kind.axes)
    return [axis for axis in mesh.axes[last + 1 :] if mesh.sizes[axis] > 1]


def wide_context(layout: Layout, domain: Domain) -> Iterator[Finding]:
    """Yields a finding where context and tensor ranks together leave the NVLink domain."""
    # Both share every attention layer; without rules, on one mesh, they make groups together.
    cp, tp = layout.sizes.get("cp", 1), layout.sizes.get("tp", 1)
    kinds = [layout.kind(layout.dims[dim]) for dim in ("tp", "cp") if dim in layout.dims]
    if cp == 1 or len(kinds) < 2 or len({kind.mesh for kind in kinds}) > 1:
        return
    if any(kind.rule or kind.mesh not in layout.meshes for kind in kinds):
        return
    axes = {axis for kind in kinds for axis in kind.axes}
    groups = Groups.even(layout.meshes[kinds[0].mesh].groups(*axes))
    crossing = domain.left_by(groups)
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
    # No order helps where both are wider than the domain; else axes between the two spread them
    # out; else their width does not divide the domain.
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


# ----------------------------------------------- shape: what is ragged, overlaps, misses ranks


def ragged(layout: Layout) -> Iterator[Finding]:
    """Yields a finding for kinds whose groups differ in size."""
    names = [n for n in _odd_kinds(layout) if len(layout.groups(n).different_sizes) > 1]
    if names:
        parts = (
            said("{name} ({sizes})", name=name, sizes=listed(layout.groups(name).different_sizes))
            for name in names
        )
        evidence = said(
            "groups differ in size: {kinds}; what counts on equal groups hangs or averages wrongly",
            kinds=listed(parts),
        )
        cure = _even_windows(layout, names)
        yield Finding("ragged", (evidence,), groups=tuple(names), cure=cure)


def _even_windows(layout: Layout, names: list[str]) -> Sentence:
    rule = layout.kind(names[0]).rule
    world = layout.world_size
    if isinstance(rule, RankWindows):
        low, high = max(1, rule.size // 4), rule.size * 4
        fits = [n for n in range(low, min(world, high) + 1) if world % n == 0]
        return said("windows that divide {world} ranks: {fits}", world=world, fits=listed(fits))
    return said("choose sizes that are powers of two; they divide evenly")


def overlapping(layout: Layout) -> Iterator[Finding]:
    """Yields a finding for kinds in which a rank stands in several groups."""
    for name in _odd_kinds(layout):
        groups = layout.groups(name)
        counts = groups.memberships(layout.world_size)
        # Pairs along a ring overlap on purpose: a rank has one with each neighbour.
        if counts.max(initial=0) > 1 and not _has(layout.kind(name).rule, (RingPairs,)):
            rank = int(counts.argmax())
            both = listed(shown(groups[g].tolist(), 8) for g in groups.containing(rank)[:2])
            evidence = said(
                "{count} ranks stand in several {kind} groups, such as rank {rank} in {both}; "
                "they hang when two members enter them in different orders",
                count=int((counts > 1).sum()),
                kind=name,
                rank=rank,
                both=both,
            )
            cure = said("enter them in one order on every rank, or choose sizes that part them")
            ranks = tuple(np.flatnonzero(counts > 1).tolist())
            yield Finding("overlap", (evidence,), ranks, (name,), cure)


def outside(layout: Layout) -> Iterator[Finding]:
    """Yields a finding for kinds that name ranks beyond the world."""
    world = layout.world_size
    names = [n for n in _odd_kinds(layout) if layout.groups(n).members.max(initial=0) >= world]
    if names:
        evidence = said(
            "{kinds} name ranks beyond the last, {last}; new_group refuses them",
            kinds=listed(names),
            last=world - 1,
        )
        cure = said("choose sizes whose product is the world of {world}", world=world)
        yield Finding("out_of_range", (evidence,), groups=tuple(names), cure=cure)


def uncovered(layout: Layout) -> Iterator[Finding]:
    """Yields a finding for kinds that leave ranks without a group, unless that is their purpose."""
    missing: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name in _odd_kinds(layout):
        kind = layout.kind(name)
        # Groups of first and last ranks (embeddings) and listed groups leave ranks out on purpose.
        if not _has(kind.rule, (First, Ends)) and not isinstance(kind, FixedKind):
            left = np.flatnonzero(layout.groups(name).memberships(layout.world_size) == 0)
            if len(left):
                missing[tuple(left.tolist())].append(name)
    # Kinds that leave out the same ranks share a finding, for they have the same cause.
    for ranks, names in list(missing.items())[:3]:
        evidence = said(
            "{count} of {world} ranks are in no group of {kinds}: {ranks}",
            count=len(ranks),
            world=layout.world_size,
            kinds=listed(names, limit=6),
            ranks=runs_shown(ranks),
        )
        cure = said("choose sizes that divide the world, or keep these ranks out of such calls")
        yield Finding("uncovered", (evidence,), ranks, tuple(names), cure)


def alone(layout: Layout) -> Iterator[Finding]:
    """Yields one finding for all kinds of groups of one rank."""
    names = [n for n in _listed_kinds(layout) if layout.groups(n).different_sizes == [1]]
    if names:
        evidence = said(
            "{count} kinds have groups of one rank, communicators that carry nothing: {kinds}",
            count=len(names),
            kinds=listed(names),
        )
        cure = said(
            "none is needed while communicators are made at first use; "
            "init_process_group(device_id=…) makes all of them at the start"
        )
        yield Finding("alone", (evidence,), groups=tuple(names), cure=cure)


def doubled(layout: Layout) -> Iterator[Finding]:
    """Yields one finding for all kinds over the same ranks, with the count for each rank."""
    if layout.conventions.shares_equal:
        return
    # Kinds of single ranks are told elsewhere (``alone``); twins are meant to be double.
    same: dict[bytes, list[str]] = defaultdict(list)
    for name in _listed_kinds(layout):
        if layout.groups(name).different_sizes[:1] > [1]:
            same[signature(layout.groups(name))].append(name)
    sets = [names for names in same.values() if len(names) > 1]
    twins = [kind.name for kind in layout.kinds if kind.twin_of]
    if not sets and not twins:
        return
    total = _most_memberships(layout)
    extra = sum(len(names) - 1 for names in sets)
    evidence = said(
        "a rank makes {total} communicators over {different} different sets of ranks: {same}",
        total=total + len(twins),
        different=total - extra,
        same=listed((" = ".join(names) for names in sets), limit=6) or listed(twins),
    )
    named = tuple(dict.fromkeys([*(name for names in sets for name in names), *twins]))
    yield Finding("doubled", (evidence,), groups=named, cure=_fewer(twins))


def _fewer(twins: list[str]) -> Sentence:
    if twins:
        return said(
            "{count} are gloo twins, which create_gloo_process_groups=false leaves out",
            count=len(twins),
        )
    return said("hand one group to both uses, where the framework takes groups as arguments")


def odd(layout: Layout) -> Iterator[Finding]:
    """Yields a finding for each dimension whose groups have an odd number of ranks above one."""
    for dim, name in layout.dims.items():
        sizes = layout.groups(name).different_sizes
        # Kinds of several sizes are told by ragged.
        if len(sizes) == 1 and sizes[0] > 1 and sizes[0] % 2:
            size = sizes[0]
            evidence = said(
                "{kind} groups have {size} ranks, an odd number: collectives by halves and pairs "
                "do not come out even, nor do batches that are powers of two",
                kind=name,
                size=size,
            )
            yield Finding("odd", (evidence,), groups=(name,), cure=_even(layout, dim, size))


def _even(layout: Layout, dim: str, size: int) -> Sentence:
    if dim == "dp":
        others = layout.world_size // size
        below, above = others * (size - 1), others * (size + 1)
        return said("worlds with an even dp: {below} and {above}", below=below, above=above)
    return said("{dim} of {below} or {above}", dim=dim, below=size - 1, above=size + 1)


def _listed_kinds(layout: Layout) -> list[str]:
    """Returns the kinds that stand for themselves: neither twins nor without groups."""
    return [k.name for k in layout.kinds if not k.twin_of and len(layout.groups(k.name))]


def _odd_kinds(layout: Layout) -> list[str]:
    """Returns the listed kinds that may overlap, be ragged, or leave ranks out."""
    return [name for name in _listed_kinds(layout) if not layout.is_partition(name)]


def _most_memberships(layout: Layout) -> int:
    """Returns how many groups the busiest rank is in, over all kinds but twins."""
    listed_kinds, odd = _listed_kinds(layout), _odd_kinds(layout)
    counts = np.zeros(layout.world_size, dtype=np.intp)
    for name in odd:
        counts += layout.groups(name).memberships(layout.world_size)
    return int(counts.max(initial=0)) + len(listed_kinds) - len(odd)


def _has(rule: Rule | None, kinds: tuple[type, ...]) -> bool:
    rules = rule.rules if isinstance(rule, Chain) else (rule,)
    return any(isinstance(one, kinds) for one in rules)
