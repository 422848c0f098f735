"""The named rules that derive groups from the groups along axes.

axis groups         [0 8 16 24]  [1 9 17 25]                      of "data"
Chunks(2)           [0 8] [16 24]  [1 9] [17 25]                  ZeRO-1, partial DP
Level(2, 2)         [0 16] [8 24]  [1 17] [9 25]                  across the chunks
First()             [0]  [1]                                      position embeddings
Ends()              [0 24]  [1 25]                                tied embeddings
Strides(2)          [0 16] [8 24]  [1 17] [9 25]                  shards across contexts
Ring()              [0 8] [8 16] [16 24] [24 0]  [1 9] …          stage to next stage
Runs(2)             [0 8 16 24 1 9 17 25]                         distributed optimizer
Leading(1)          [0 8 16 24]                                   groups never made
Pick((0, 2, 1, 3))  [0 16 8 24]  [1 17 9 25]                      interleaved windows
Slices(…)           [0 8] [1 9]  [16 24] [17 25]                  2-D rings, slice by slice
Strips(2, 3)        [0 1 2] [3 4 5]  [1 2 3] [4 5 6]              counted on from the first
Braid(2, 1)         [0 8 16 24 1 9 17 25]                         every other group joined
Windows(32)         [0 … 31] [32 … 63] [64 … 79]                  nettest, last one ragged
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from serried.mesh.groups import Groups
from serried.mesh.mesh import Ranks

Shape = tuple[int, int]
"""How many axis groups there are, and how many ranks each has."""


class Rule(Protocol):
    """Derives groups from a table of axis groups, shape (groups, size).

    ``alone`` is the rule for the rows that ``rows`` names, cut out of the table.
    """

    @property
    def alone(self) -> Rule: ...

    def __call__(self, table: Ranks, /) -> Groups: ...

    def rows(self, row: int, shape: Shape, /) -> tuple[range, ...] | None:
        """Returns the rows that groups of row ``row``'s members are made of; None for all.

        Each range makes whole groups by itself, in the order in which all rows make them.
        """

    def number(self, row: int, shape: Shape, /) -> int | None:
        """Returns the number of the first group of ``rows``; None where all groups tell it."""


class EachRow:
    """Is a rule that looks at one axis group at a time, and makes one group of it."""

    @property
    def alone(self) -> Self:
        """The rule itself."""
        return self

    def rows(self, row: int, shape: Shape, /) -> tuple[range, ...] | None:
        """Returns the row itself."""
        return (range(row, row + 1),)

    def number(self, row: int, shape: Shape, /) -> int | None:
        """Returns the row's own number."""
        return row


class Sorted(EachRow):
    """Is a rule that looks at one axis group at a time, but numbers groups in its own way."""

    def number(self, row: int, shape: Shape, /) -> int | None:
        """Returns None: the other groups tell it."""
        return None


@dataclass(frozen=True)
class First(EachRow):
    """Keeps the first member of each group."""

    def __call__(self, table: Ranks, /) -> Groups:
        return Groups.even(table[:, :1])


@dataclass(frozen=True)
class Ends(EachRow):
    """Keeps the first and the last member of each group; one where they are the same."""

    def __call__(self, table: Ranks, /) -> Groups:
        size = table.shape[1]
        return Groups.even(table[:, :1] if size == 1 else table[:, [0, size - 1]])


@dataclass(frozen=True)
class Chunks(EachRow):
    """Cuts each group into runs of ``size`` members; the last run may be shorter."""

    size: int

    def __call__(self, table: Ranks, /) -> Groups:
        num_rows, length = table.shape
        if length % self.size == 0:
            return Groups.even(table.reshape(-1, self.size))
        full, left = divmod(length, self.size)
        sizes = np.tile(np.array([self.size] * full + [left]), num_rows)
        bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return Groups(np.ascontiguousarray(table).reshape(-1), bounds)

    def number(self, row: int, shape: Shape, /) -> int | None:
        """Returns the number of the row's first run."""
        return row * -(-shape[1] // self.size)


@dataclass(frozen=True)
class Level(EachRow):
    """Reshapes each group to (outer, ``size``, ``stride``) and groups along ``size``.

    Hierarchies are levels: sizes 2, 2, 4 of a group of 16 are Level(2, 1), Level(2, 2)
    and Level(4, 4). ``size * stride`` must divide the group.
    """

    size: int
    stride: int

    def __call__(self, table: Ranks, /) -> Groups:
        cube = table.reshape(len(table), -1, self.size, self.stride)
        return Groups.even(cube.swapaxes(2, 3).reshape(-1, self.size))

    def number(self, row: int, shape: Shape, /) -> int | None:
        """Returns the number of the row's first group."""
        return row * (shape[1] // self.size)


@dataclass(frozen=True)
class Pick(EachRow):
    """Puts the members of each group in the order of ``places``."""

    places: tuple[int, ...]

    def __call__(self, table: Ranks, /) -> Groups:
        return Groups.even(table[:, list(self.places)])


@dataclass(frozen=True)
class Slices(Sorted):
    """Takes (start, stop, step) slices of every group, all groups' first slices first."""

    slices: tuple[tuple[int, int, int], ...]

    def __call__(self, table: Ranks, /) -> Groups:
        return Groups.joined([Groups.even(table[:, slice(*each)]) for each in self.slices])


@dataclass(frozen=True)
class Strides(EachRow):
    """Takes every ``step``-th member of each group; where they do not divide, groups differ."""

    step: int

    def __call__(self, table: Ranks, /) -> Groups:
        num_rows, length = table.shape
        parts = [range(first, length, self.step) for first in range(min(self.step, length))]
        order = [place for part in parts for place in part]
        sizes = np.tile(np.array([len(part) for part in parts]), num_rows)
        bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return Groups(np.ascontiguousarray(table[:, order]).reshape(-1), bounds)

    def number(self, row: int, shape: Shape, /) -> int | None:
        """Returns the number of the row's first group."""
        return row * min(self.step, shape[1])


@dataclass(frozen=True)
class Ring(EachRow):
    """Pairs each member with the next of its group, the last with the first.

    ``back`` turns the ring: with 1 each member's pair is the one with the member before it.
    """

    back: int = 0

    def __call__(self, table: Ranks, /) -> Groups:
        ones, others = np.roll(table, self.back, axis=1), np.roll(table, self.back - 1, axis=1)
        return Groups.even(np.stack([ones, others], axis=2).reshape(-1, 2))

    def number(self, row: int, shape: Shape, /) -> int | None:
        """Returns the number of the row's first pair."""
        return row * shape[1]


@dataclass(frozen=True)
class ByFirst(Sorted):
    """Stands the groups in the order of their first members."""

    def __call__(self, table: Ranks, /) -> Groups:
        return Groups.even(table[np.argsort(table[:, 0], kind="stable")])


@dataclass(frozen=True)
class ByLowest(Sorted):
    """Stands the groups in the order of their lowest members, as ranks from 0 on find them."""

    def __call__(self, table: Ranks, /) -> Groups:
        return Groups.even(table[np.argsort(table.min(axis=1), kind="stable")])
