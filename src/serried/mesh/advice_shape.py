"""Advice on shapes: groups that are ragged, overlap, miss ranks, are alone, double or odd."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby

import numpy as np

from serried.errors import listed
from serried.finding import Finding, Sentence, said
from serried.mesh.compare import shown, signature
from serried.mesh.groups import Groups
from serried.mesh.kind import FixedKind
from serried.mesh.layers import LayerSplit
from serried.mesh.layout import Layout
from serried.mesh.rule import Chain, Ends, First, RingPairs, Rule, Windows


def ragged(layout: Layout) -> Iterator[Finding]:
    """Yields a finding for kinds whose groups differ in size."""
    names = [n for n in _odd_kinds(layout) if len(set(_sizes(layout, n))) > 1]
    if names:
        parts = (
            said("{name} ({sizes})", name=name, sizes=listed(_sizes(layout, name)))
            for name in names
        )
        evidence = said(
            "groups differ in size: {kinds}; what counts on equal groups hangs or averages wrongly",
            kinds=listed(parts),
        )
        cure = _even_windows(layout, names)
        yield Finding("ragged", (evidence,), groups=tuple(names), cure=cure)


def _sizes(layout: Layout, name: str) -> list[int]:
    """Returns the different sizes of a kind's groups, the largest first."""
    sizes = layout.groups(name).sizes
    low, high = int(sizes.min()), int(sizes.max())
    return [high] if low == high else sorted(set(sizes.tolist()), reverse=True)


def _even_windows(layout: Layout, names: list[str]) -> Sentence:
    rule = layout.kind(names[0]).rule
    world = layout.world_size
    if isinstance(rule, Windows):
        low, high = max(1, rule.size // 4), rule.size * 4
        fits = [n for n in range(low, min(world, high) + 1) if world % n == 0]
        return said("windows that divide {world} ranks: {fits}", world=world, fits=listed(fits))
    return said("choose sizes that are powers of two; they divide evenly")


def overlapping(layout: Layout) -> Iterator[Finding]:
    """Yields a finding for kinds in which a rank stands in several groups."""
    for name in _odd_kinds(layout):
        groups = layout.groups(name)
        counts = _memberships(groups, layout.world_size)
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
        if not _has(kind.rule, (First, Ends)) and not isinstance(kind, FixedKind):
            left = np.flatnonzero(_memberships(layout.groups(name), layout.world_size) == 0)
            if len(left):
                missing[tuple(left.tolist())].append(name)
    for ranks, names in list(missing.items())[:3]:
        evidence = said(
            "{count} of {world} ranks are in no group of {kinds}: {ranks}",
            count=len(ranks),
            world=layout.world_size,
            kinds=listed(names, limit=6),
            ranks=spans(ranks),
        )
        cure = said("choose sizes that divide the world, or keep these ranks out of such calls")
        yield Finding("uncovered", (evidence,), ranks, tuple(names), cure)


def alone(layout: Layout) -> Iterator[Finding]:
    """Yields one finding for all kinds of groups of one rank."""
    names = [n for n in _listed_kinds(layout) if _sizes(layout, n) == [1]]
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
    if layout.habits.shares_equal:
        return
    same: dict[bytes, list[str]] = defaultdict(list)
    for name in _listed_kinds(layout):
        if _sizes(layout, name)[:1] > [1]:
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
        sizes = _sizes(layout, name)
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
        each = layout.world_size // size
        below, above = each * (size - 1), each * (size + 1)
        return said("worlds with an even dp: {below} and {above}", below=below, above=above)
    return said("{dim} of {below} or {above}", dim=dim, below=size - 1, above=size + 1)


def layers_by_depth(layout: Layout, split: LayerSplit | None) -> Iterator[Finding]:
    """Yields a finding where pipeline positions hold unequal layers, or none."""
    if split is None:
        return
    pp, counts = len(split.held), split.counts
    empty = [position for position, count in enumerate(counts) if not count]
    if empty and not split.is_asked:
        evidence = said(
            "pp={pp} is deeper than {layers} layers reach: positions {positions} hold none",
            pp=pp,
            layers=split.num_layers,
            positions=spans(empty),
        )
        cure = said("pp of at most {layers}", layers=split.num_layers)
        yield Finding("layers_few", (evidence,), groups=("pp",), cure=cure)
    elif not split.is_asked and len({len(chunk) for held in split.held for chunk in held}) > 1:
        yield _uneven(layout, split)


def _uneven(layout: Layout, split: LayerSplit) -> Finding:
    stages = len(split.held) * split.num_chunks
    widths = [len(chunk) for held in split.held for chunk in held]
    evidence = [
        said(
            "{layers} layers over {stages} stages leave {least} or {most} layers each; "
            "the longest sets the pace of all",
            layers=split.num_layers,
            stages=stages,
            least=min(widths),
            most=max(widths),
        )
    ]
    if layout.habits.divides_layers:
        evidence.append(
            said(
                "{framework} refuses that unless the first and last stage are given their own size",
                framework=layout.framework,
            )
        )
    near = [split.num_layers // stages * stages, (split.num_layers // stages + 1) * stages]
    cure = said(
        "layers that divide: {layers}; pp that divides {count} layers: {fits}",
        layers=listed(n for n in near if n),
        count=split.num_layers,
        fits=listed(n for n in range(1, split.num_layers + 1) if split.num_layers % n == 0),
    )
    return Finding("layers_uneven", tuple(evidence), groups=("pp",), cure=cure)


def _listed_kinds(layout: Layout) -> list[str]:
    """Returns the kinds that stand for themselves: neither twins nor without groups."""
    return [k.name for k in layout.kinds if not k.twin_of and len(layout.groups(k.name))]


def _odd_kinds(layout: Layout) -> list[str]:
    """Returns the listed kinds that may overlap, be ragged, or leave ranks out."""
    return [name for name in _listed_kinds(layout) if not layout.is_partition(name)]


def _memberships(groups: Groups, world_size: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Returns in how many groups each rank stands, shape (world_size,)."""
    inside = groups.members[groups.members < world_size]
    return np.bincount(inside, minlength=world_size)


def _most_memberships(layout: Layout) -> int:
    """Returns how many groups the busiest rank is in, over all kinds but twins."""
    listed_kinds, odd = _listed_kinds(layout), _odd_kinds(layout)
    counts = np.zeros(layout.world_size, dtype=np.intp)
    for name in odd:
        counts += _memberships(layout.groups(name), layout.world_size)
    return int(counts.max(initial=0)) + len(listed_kinds) - len(odd)


def _has(rule: Rule | None, kinds: tuple[type, ...]) -> bool:
    rules = rule.rules if isinstance(rule, Chain) else (rule,)
    return any(isinstance(each, kinds) for each in rules)


def spans(ranks: tuple[int, ...] | list[int], limit: int = 6) -> str:
    """Returns ranks as text, runs drawn together.

    >>> spans([0, 1, 2, 5, 8, 9])
    '0-2, 5, 8-9'
    """
    runs = [[r for _, r in run] for _, run in groupby(enumerate(ranks), lambda at: at[1] - at[0])]
    words = (f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
    return listed(words, limit=limit)
