"""Groups: the process groups of one kind over all ranks, kept as two arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

import numpy as np

from serried.errors import listed
from serried.mesh.mesh import Ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray

PART_RANKS = 1 << 16
"""About how many ranks ``in_parts`` makes Python numbers of at once; groups stay whole."""

MEMBERS_SHOWN = 16
"""Ranks of a group that ``shown`` writes out."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Holds the groups of one kind: members end to end, and where each group starts.

    Group ``g`` is ``members[bounds[g]:bounds[g + 1]]``. Sizes may differ (a ragged last
    window), and a rank may be in no group or, where a framework does so, in several.

    >>> groups = Groups.of([[0, 1, 2], [3, 4]])
    >>> len(groups), groups[1].tolist(), groups.containing(4)
    (2, [3, 4], [1])
    """

    members: Ranks
    bounds: NDArray[np.int64]

    @classmethod
    def even(cls, table: Ranks) -> Groups:
        """Wraps a table of equal groups, shape (groups, size)."""
        num_groups, size = table.shape
        bounds = np.arange(num_groups + 1, dtype=np.int64) * size
        return cls(np.ascontiguousarray(table).reshape(-1), bounds)

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> Groups:
        """Wraps lists of ranks, which may differ in length."""
        members = np.array([rank for ranks in lists for rank in ranks], dtype=np.int32)
        bounds = np.cumsum([0, *(len(ranks) for ranks in lists)], dtype=np.int64)
        return cls(members, bounds)

    @classmethod
    def joined(cls, parts: Sequence[Groups]) -> Groups:
        """Stands the groups of several parts behind one another.

        >>> Groups.joined([Groups.of([[0, 1]]), Groups.of([[2], [3]])]).lists()
        [[0, 1], [2], [3]]
        """
        sizes = np.concatenate([[0], *(part.sizes for part in parts)])
        members = np.concatenate([part.members for part in parts])
        return cls(members, np.cumsum(sizes, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, group: int) -> Ranks:
        return self.members[self.bounds[group] : self.bounds[group + 1]]

    def lists(self) -> list[list[int]]:
        """Returns the groups as lists of ranks."""
        members, bounds = self.members.tolist(), self.bounds.tolist()
        return [members[a:b] for a, b in pairwise(bounds)]

    def in_parts(self) -> Iterator[list[list[int]]]:
        """Yields the groups as lists, so many at a time as hold about PART_RANKS ranks."""
        start, count = 0, len(self)
        while start < count:
            beyond = int(np.searchsorted(self.bounds, self.bounds[start] + PART_RANKS))
            stop = min(max(start + 1, beyond), count)
            first, last = self.bounds[start], self.bounds[stop]
            yield Groups(self.members[first:last], self.bounds[start : stop + 1] - first).lists()
            start = stop

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many ranks each group has."""
        return np.diff(self.bounds)

    @property
    def different_sizes(self) -> list[int]:
        """The sizes that there are, the largest first."""
        if not len(self):
            return []
        low, high = int(self.sizes.min()), int(self.sizes.max())
        return [high] if low == high else sorted(set(self.sizes.tolist()), reverse=True)

    @cached_property
    def is_ascending(self) -> bool:
        """Whether the ranks of every group ascend, as nearly all frameworks list them."""
        falls = np.diff(self.members) < 0
        # From the last rank of a group to the first of the next is no fall within a group.
        falls[self.bounds[1:-1] - 1] = False
        return not falls.any()

    @property
    def ascending(self) -> Groups:
        """The groups as torch makes them of these lists: the members of each sorted.

        >>> Groups.of([[3, 1], [0, 2]]).ascending.lists()
        [[1, 3], [0, 2]]
        """
        if self.is_ascending:
            return self
        number = np.repeat(np.arange(len(self)), self.sizes)
        return Groups(self.members[np.lexsort((self.members, number))], self.bounds)

    @property
    def table(self) -> Ranks:
        """The groups as an array (groups, size); they must be of one size."""
        return self.members.reshape(len(self), -1)

    def containing(self, rank: int) -> list[int]:
        """Returns the numbers of the groups that ``rank`` is in, usually one, each once.

        A list may hold a rank twice: DeepSpeed pairs a lone stage with itself.

        >>> Groups.of([[0, 0], [1, 1]]).containing(1)
        [1]
        """
        places = np.flatnonzero(self.members == rank)
        found = np.searchsorted(self.bounds, places, side="right") - 1
        return list(dict.fromkeys(found.tolist()))

    def index(self, world_size: int) -> Ranks:
        """Returns the first group of each rank, shape (world_size,); -1 where it has none."""
        owner = np.full(world_size, -1, dtype=np.int32)
        numbers = np.repeat(np.arange(len(self), dtype=np.int32), self.sizes)
        inside = self.members < world_size
        # Written from the last group to the first, so that the first of several stays.
        owner[self.members[inside][::-1]] = numbers[inside][::-1]
        return owner

    def memberships(self, world_size: int) -> NDArray[np.intp]:
        """Returns in how many groups each rank stands, shape (world_size,).

        >>> Groups.of([[0, 1], [1, 2]]).memberships(4)
        array([1, 2, 1, 0])
        """
        return np.bincount(self.members[self.members < world_size], minlength=world_size)


def signature(groups: Groups) -> bytes:
    """Returns bytes that are equal for kinds whose groups hold the same ranks.

    >>> signature(Groups.of([[2, 3], [1, 0]])) == signature(Groups.of([[0, 1], [2, 3]]))
    True
    """
    # With members sorted in each group, and groups by their first member, kinds of the same ranks
    # come out the same, byte for byte.
    members = groups.members
    if not groups.is_ascending:
        owner = np.repeat(np.arange(len(groups)), groups.sizes)
        members = members[np.lexsort((members, owner))]
    firsts, sizes = members[groups.bounds[:-1]], groups.sizes
    if (np.diff(firsts) < 0).any():
        members = members[np.argsort(np.repeat(firsts, sizes), kind="stable")]
        sizes = sizes[np.argsort(firsts, kind="stable")]
    return members.tobytes() + b"|" + sizes.tobytes()


def shown(ranks: Sequence[int], limit: int = MEMBERS_SHOWN) -> str:
    """Returns the ranks of a group as text.

    >>> shown([0, 2]), shown([0, 1, 2], limit=2)
    ('[0 2]', '[0 1 …]')
    """
    words = " ".join(map(str, ranks[:limit]))
    return f"[{words} …]" if len(ranks) > limit else f"[{words}]"


def runs_shown(ranks: Sequence[int], limit: int = 6) -> str:
    """Returns ranks as text, runs drawn together.

    >>> runs_shown([0, 1, 2, 5, 8, 9])
    '0-2, 5, 8-9'
    """
    # Within a run the rank and its place ascend together, so their difference stays the same.
    numbered = groupby(enumerate(ranks), lambda at: at[1] - at[0])
    runs = [[rank for _, rank in run] for _, run in numbered]
    words = (f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
    return listed(words, limit=limit)
