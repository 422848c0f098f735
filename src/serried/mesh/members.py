"""Members: the ranks of one group, made by arithmetic when they are looked at."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

from serried.mesh.mesh import Mesh, Ranks

FEW = 64
"""Up to how many ranks of a slice are worked out one by one."""


@dataclass(frozen=True, eq=False, repr=False)
class Members(Sequence[int]):
    """Holds the ranks of some axis groups of a mesh, end to end, as a list would.

    A group may be as large as the world, and most who ask for it want its length, its ends or
    a few of its ranks.

    >>> ranks = Members(Mesh({"pp": 2, "dp": 2, "tp": 2}), range(1, 3), ("dp",))
    >>> len(ranks), ranks[-1], ranks[1:3], ranks
    (4, 6, [3, 4], [1, 3, 4, 6])
    """

    mesh: Mesh
    rows: range
    axes: tuple[str, ...]
    by: tuple[str, ...] = ()
    within: tuple[str, ...] = ()

    @cached_property
    def width(self) -> int:
        """How many ranks each axis group has."""
        return math.prod(self.mesh.sizes[axis] for axis in self.axes)

    @cached_property
    def array(self) -> Ranks:
        """All of them, in the order in which they are listed."""
        table = self.mesh.rows(self.rows, *self.axes, by=self.by, within=self.within)
        return table.reshape(-1)

    def __len__(self) -> int:
        return len(self.rows) * self.width

    @overload
    def __getitem__(self, at: int) -> int: ...

    @overload
    def __getitem__(self, at: slice) -> list[int]: ...

    def __getitem__(self, at: int | slice) -> int | list[int]:
        """Returns the rank at a place, or those of a slice as a list."""
        if isinstance(at, slice):
            places = range(*at.indices(len(self)))
            if len(places) > FEW:
                found: list[int] = self.array[at].tolist()
                return found
            return [self._at(place) for place in places]
        return self._at(range(len(self))[at])

    def _at(self, place: int) -> int:
        row, inside = divmod(place, self.width)
        return self.mesh.member(self.rows[row], inside, *self.axes, by=self.by, within=self.within)

    def __iter__(self) -> Iterator[int]:
        return iter(self.array.tolist())

    def __contains__(self, rank: object) -> bool:
        return bool((self.array == rank).any())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


def place_within(ranks: Sequence[int], rank: int) -> int:
    """Returns the rank within a group: its place among the sorted members.

    torch's new_group sorts them, whatever the order in which they are listed, and Paddle's too.

    >>> place_within([3, 1], 1), place_within([3, 1], 3)
    (0, 1)
    """
    if isinstance(ranks, Members):
        return int((ranks.array < rank).sum())
    return sum(other < rank for other in ranks)
