"""Two layouts side by side: which group kinds hold the same ranks, and where they first part.

16 ranks, tp 2, pp 4        megatron dp    [0 2] [1 3] [4 6] …
                            internlm data  [0 8] [1 9] [2 10] …      parts at rank 0

Kinds are paired by the dimension they carry, then by equal names, then by equal groups. The
order in which groups are made does not count, for it changes no member.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from serried.errors import listed
from serried.finding import Sentence, said
from serried.mesh.groups import Groups, shown, signature
from serried.mesh.kind import holding
from serried.mesh.layout import Layout
from serried.mesh.mesh import Ranks

WORDS = {
    "dp": said("data"),
    "tp": said("tensor"),
    "pp": said("pipeline"),
    "cp": said("context"),
    "ep": said("expert"),
}
"""What the group of a dimension is called in a sentence."""


@dataclass(frozen=True)
class Pair:
    """Names one kind of each layout, or of one alone, and the first rank at which they part.

    ``dim`` is the dimension that both carry, "" where their names or groups paired them.
    ``ours`` and ``theirs`` are the groups of ``rank``; all three are empty where nothing parts.
    """

    left: str | None
    right: str | None
    dim: str = ""
    rank: int | None = None
    ours: list[Sequence[int]] = field(default_factory=list)
    theirs: list[Sequence[int]] = field(default_factory=list)
    is_reordered: bool = False
    """Tells that groups hold the same ranks in another order."""
    is_known: bool = False
    """Tells of a kind that one layout has alone: the other makes its groups by another name."""

    @property
    def is_same(self) -> bool:
        """Whether both layouts have the kind and its groups hold the same ranks."""
        return self.left is not None and self.right is not None and self.rank is None

    def sentence(self, left: str, right: str) -> Sentence | None:
        """Says where the layouts called ``left`` and ``right`` part; None where they do not."""
        if self.rank is None or self.left is None or self.right is None:
            return None
        return said(
            "rank {rank}'s {what} group is {ours} under {left} and {theirs} under {right}",
            rank=self.rank,
            what=WORDS.get(self.dim, self.left),
            ours=_shown(self.ours),
            left=said("{name} ({kind})", name=left, kind=self.left),
            theirs=_shown(self.theirs),
            right=said("{name} ({kind})", name=right, kind=self.right),
        )


@dataclass(frozen=True)
class Comparison:
    """Holds two layouts, their paired kinds, and the kinds that only one of them makes.

    Between two frameworks a kind that only one has is a matter of naming; within one
    framework it is a difference, unless the other makes the same groups for another kind.
    """

    left: Layout
    right: Layout
    pairs: tuple[Pair, ...]
    alone: tuple[Pair, ...]

    @property
    def is_same(self) -> bool:
        """Whether every rank has the same groups under both layouts."""
        if self.left.world_size != self.right.world_size:
            return False
        # Two frameworks name and make kinds of their own, so one alone says nothing; between two
        # versions of one framework it is a difference, unless the groups go by another name.
        is_one_framework = self.left.framework == self.right.framework
        if is_one_framework and not all(pair.is_known for pair in self.alone):
            return False
        return all(pair.is_same for pair in self.pairs)


def compare(left: Layout, right: Layout) -> Comparison:
    """Returns, kind by kind, whether two layouts give the same groups."""
    # A kind finds its partner by what it is for, then by its name, and by its groups last: those
    # may be alike by chance, as dp and dp_cp are where cp=1.
    dims = dict(_by_dimension(left, right))
    partner = {ours: theirs for ours, (theirs, _) in dims.items()}
    partner |= dict(_by_name(left, right, partner))
    partner |= dict(_by_groups(left, right, partner))
    pairs = [
        _compared(left, right, kind.name, partner[kind.name], dims.get(kind.name, ("", ""))[1])
        for kind in left.kinds
        if kind.name in partner
    ]
    alone = [Pair(n, None, is_known=_is_known(left, n, right)) for n in _free(left, partner)]
    free = _free(right, partner.values())
    alone += [Pair(None, n, is_known=_is_known(right, n, left)) for n in free]
    return Comparison(left, right, tuple(pairs), tuple(alone))


def _by_dimension(left: Layout, right: Layout) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yields the kinds that carry a dimension in both layouts; the data group with cp as well."""
    seen: set[str] = set()
    # A kind that carries two dimensions is paired for the first of them.
    for dim, name in left.dims.items():
        if dim in right.dims and not {name, right.dims[dim]} & seen:
            seen |= {name, right.dims[dim]}
            yield name, (right.dims[dim], dim)
    with_cp = (left.dp_with_cp, right.dp_with_cp)
    if with_cp[0] and with_cp[1] and not {*with_cp} & seen:
        yield with_cp[0], (with_cp[1], "dp")


def _by_name(left: Layout, right: Layout, partner: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    free = set(_free(right, partner.values()))
    yield from ((name, name) for name in _free(left, partner) if name in free)


def _by_groups(
    left: Layout, right: Layout, partner: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yields kinds of different names that hold the same groups of two ranks or more."""
    free = {n: right.groups(n) for n in _free(right, partner.values()) if not _is_twin(right, n)}
    for name in _free(left, partner):
        groups = left.groups(name)
        # Kinds of single ranks would all pair with one another, and twins with what they double.
        if int(groups.sizes.max(initial=0)) > 1 and not _is_twin(left, name):
            found = next((other for other in free if _are_equal(groups, free[other])), None)
            if found is not None:
                # A kind has one partner: the next one here with the same groups finds another, or
                # none.
                del free[found]
                yield name, found


def _is_twin(layout: Layout, name: str) -> bool:
    return layout.kind(name).twin_of is not None


def _is_known(layout: Layout, name: str, other: Layout) -> bool:
    """Tells whether a kind is of single ranks, or its groups are among those of ``other``."""
    groups = layout.groups(name)
    if int(groups.sizes.max(initial=0)) < 2:
        return True
    return any(_are_equal(groups, other.groups(kind.name)) for kind in other.kinds)


def _are_equal(ours: Groups, theirs: Groups) -> bool:
    return len(ours) == len(theirs) and signature(ours) == signature(theirs)


def _free(layout: Layout, taken: Collection[str]) -> list[str]:
    return [kind.name for kind in layout.kinds if kind.name not in taken]


def _compared(left: Layout, right: Layout, ours: str, theirs: str, dim: str) -> Pair:
    a, b = left.groups(ours), right.groups(theirs)
    rank = first_difference(a, b, max(left.world_size, right.world_size))
    if rank is None:
        return Pair(ours, theirs, dim, is_reordered=_order(a) != _order(b))
    return Pair(ours, theirs, dim, rank, holding(a, rank), holding(b, rank))


def first_difference(left: Groups, right: Groups, world_size: int) -> int | None:
    """Returns the first rank whose groups differ between two kinds, or None.

    >>> first_difference(Groups.of([[0, 1], [2, 3]]), Groups.of([[2, 3], [1, 0]]), 4) is None
    True
    >>> first_difference(Groups.of([[0, 1], [2, 3]]), Groups.of([[0, 1], [2], [3]]), 4)
    2
    """
    # Where each rank has one group at most, the lowest rank of a group names it: one array a side
    # is compared. Else the lists themselves are.
    if not (_is_plain(left, world_size) and _is_plain(right, world_size)):
        return _first_of_lists(left, right, world_size)
    lowest, others = _lowest(left, world_size), _lowest(right, world_size)
    differ = np.flatnonzero(lowest != others)
    if not len(differ):
        return None
    # A rank may part from its group's lowest, so the lowest ranks of such groups differ as well.
    known = np.concatenate([lowest[differ], others[differ]])
    return int(known[known >= 0].min())


def _is_plain(groups: Groups, world_size: int) -> bool:
    """Tells whether each rank stands in one group at most, and all are of the world."""
    if len(groups.members) and int(groups.members.max()) >= world_size:
        return False
    return bool((np.bincount(groups.members, minlength=world_size) <= 1).all())


def _lowest(groups: Groups, world_size: int) -> Ranks:
    """Returns the lowest rank of each rank's group, shape (world_size,); -1 without a group."""
    lowest = np.full(world_size, -1, dtype=np.int32)
    if len(groups.members):
        firsts = np.minimum.reduceat(groups.members, groups.bounds[:-1])
        lowest[groups.members] = np.repeat(firsts, groups.sizes)
    return lowest


def _first_of_lists(left: Groups, right: Groups, world_size: int) -> int | None:
    """Returns the first rank that differs where groups overlap or leave the world."""
    sides = [{tuple(sorted(ranks)) for ranks in side.lists()} for side in (left, right)]
    strays = [rank for ranks in sides[0] ^ sides[1] for rank in ranks]
    inside = [rank for rank in strays if rank < world_size]
    # A rank beyond the world is named only where no rank within it differs.
    return min(inside or strays, default=None)


def _order(groups: Groups) -> bytes:
    """Returns the members as they stand, groups by their lowest member."""
    firsts = np.minimum.reduceat(groups.members, groups.bounds[:-1])
    by_first = np.argsort(np.repeat(firsts, groups.sizes), kind="stable")
    return groups.members[by_first].tobytes()


def _shown(groups: list[Sequence[int]]) -> str:
    """Returns a rank's groups as text: ``[0 2]``, or ``[]`` without any."""
    return listed((shown(ranks) for ranks in groups), limit=len(groups)) or "[]"
