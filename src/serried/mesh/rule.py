"""The named rules that derive groups from the groups along axes.

axis groups         [0 8 16 24]  [1 9 17 25]                      of "data"
Chunks(2)           [0 8] [16 24]  [1 9] [17 25]                  ZeRO-1, partial DP
Level(2, 2)         [0 16] [8 24]  [1 17] [9 25]                  across the chunks
First()             [0]  [1]                                      position embeddings
Ends()              [0 24]  [1 25]                                tied embeddings
Pairs()             [0 8] [1 9] [8 16] … [24 0] [25 1]            stage to next stage
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
from typing import Protocol

import numpy as np

from serried.mesh.groups import Groups
from serried.mesh.mesh import Mesh, Ranks


class Rule(Protocol):
    """Derives groups from a table of axis groups, shape (groups, size)."""

    def __call__(self, table: Ranks, /) -> Groups: ...

    def rows(self, row: int, num_rows: int, /) -> range | None:
        """Returns which rows the groups of row ``row``'s members come from; None for all."""


class EachRow:
    """Is a rule that looks at one axis group at a time."""

    def rows(self, row: int, num_rows: int, /) -> range | None:
        """Returns the row itself."""
        return range(row, row + 1)


class AllRows:
    """Is a rule that needs every axis group to say one rank's groups."""

    def rows(self, row: int, num_rows: int, /) -> range | None:
        """Returns None: all of them."""
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


@dataclass(frozen=True)
class Pick(EachRow):
    """Puts the members of each group in the order of ``places``."""

    places: tuple[int, ...]

    def __call__(self, table: Ranks, /) -> Groups:
        return Groups.even(table[:, list(self.places)])


@dataclass(frozen=True)
class Slices(EachRow):
    """Takes (start, stop, step) slices of every group, all groups' first slices first."""

    slices: tuple[tuple[int, int, int], ...]

    def __call__(self, table: Ranks, /) -> Groups:
        return Groups.joined([Groups.even(table[:, slice(*each)]) for each in self.slices])


@dataclass(frozen=True)
class Pairs(EachRow):
    """Pairs each member with the next of its group, the last with the first; by first rank."""

    def __call__(self, table: Ranks, /) -> Groups:
        pairs = np.stack([table, np.roll(table, -1, axis=1)], axis=2).reshape(-1, 2)
        return Groups.even(pairs[np.argsort(pairs[:, 0], kind="stable")])


@dataclass(frozen=True)
class Strips(AllRows):
    """Counts ``count`` runs of ``size`` ranks on from each group's first, wherever it ends."""

    count: int
    size: int

    def __call__(self, table: Ranks, /) -> Groups:
        steps = np.arange(self.count * self.size, dtype=np.int32)
        return Groups.even((table[:, :1] + steps).reshape(-1, self.size))


@dataclass(frozen=True)
class Held(AllRows):
    """Makes ``rule``'s groups and keeps those that some rank holds: the last made with it.

    Where groups overlap a rank's variable is overwritten, so earlier ones are lost to it.
    """

    rule: Rule

    def __call__(self, table: Ranks, /) -> Groups:
        made = self.rule(table).table
        ranks = np.sort(table.reshape(-1))
        owner = np.full(int(max(made.max(), ranks.max())) + 1, -1, dtype=np.int32)
        # Where a rank stands several times numpy keeps the last of the values assigned to it.
        owner[made.reshape(-1)] = np.repeat(np.arange(len(made), dtype=np.int32), made.shape[1])
        held, places = np.unique(owner[ranks], return_index=True)
        in_rank_order = held[np.argsort(places)]
        return Groups.even(made[in_rank_order[in_rank_order >= 0]])


@dataclass(frozen=True)
class Runs:
    """Joins each run of ``length`` groups, end to end, in the order they stand."""

    length: int

    def __call__(self, table: Ranks, /) -> Groups:
        return Groups.even(table.reshape(-1, table.shape[1] * self.length))

    def rows(self, row: int, num_rows: int, /) -> range | None:
        """Returns the run that ``row`` is in."""
        first = row // self.length * self.length
        return range(first, first + self.length)


@dataclass(frozen=True)
class Braid(AllRows):
    """Joins group g with those ``step``, 2 ``step`` … after it, ``width`` in all.

    One joined group is made per ``width`` groups there are, counted from the first, so a
    ``step`` that does not fit makes groups overlap and leaves ranks out.
    """

    width: int
    step: int

    def __call__(self, table: Ranks, /) -> Groups:
        starts = np.arange(len(table) // self.width)
        rows = starts[:, None] + np.arange(self.width) * self.step
        return Groups.even(table[rows].reshape(len(starts), -1))


@dataclass(frozen=True)
class Leading:
    """Keeps the first ``count`` groups; the rest are never made."""

    count: int

    def __call__(self, table: Ranks, /) -> Groups:
        return Groups.even(table[: self.count])

    def rows(self, row: int, num_rows: int, /) -> range | None:
        """Returns the row itself, or nothing for a row that is not kept."""
        return range(row, row + 1) if row < self.count else range(0)


@dataclass(frozen=True)
class ByFirst(EachRow):
    """Stands the groups in the order of their first members."""

    def __call__(self, table: Ranks, /) -> Groups:
        return Groups.even(table[np.argsort(table[:, 0], kind="stable")])


@dataclass(frozen=True)
class ByLowest(EachRow):
    """Stands the groups in the order of their lowest members, as ranks from 0 on find them."""

    def __call__(self, table: Ranks, /) -> Groups:
        return Groups.even(table[np.argsort(table.min(axis=1), kind="stable")])


@dataclass(frozen=True)
class Windows:
    """Cuts all ranks, whatever the axes, into windows of ``size``; the last may be ragged."""

    size: int

    def __call__(self, table: Ranks, /) -> Groups:
        ranks = np.sort(table.reshape(-1))
        bounds = np.append(np.arange(0, len(ranks), self.size), len(ranks)).astype(np.int64)
        return Groups(ranks, bounds)

    def rows(self, row: int, num_rows: int, /) -> range | None:
        """Returns None: a window may cross any axis."""
        return None

    def around(self, rank: int, mesh: Mesh) -> list[int]:
        """Returns the window that holds ``rank``, by arithmetic."""
        first = mesh.offset + (rank - mesh.offset) // self.size * self.size
        return list(range(first, min(first + self.size, mesh.offset + mesh.num_ranks)))


@dataclass(frozen=True)
class Chain:
    """Applies one rule after another; all but the last make groups of one size."""

    rules: tuple[Rule, ...]

    def __call__(self, table: Ranks, /) -> Groups:
        groups = Groups.even(table)
        for rule in self.rules:
            groups = rule(groups.table)
        return groups

    def rows(self, row: int, num_rows: int, /) -> range | None:
        """Returns the row itself where each rule looks at one row, else None."""
        one = range(row, row + 1)
        rows = [rule.rows(row, num_rows) for rule in self.rules]
        if any(each is not None and not each for each in rows):
            return range(0)
        return one if all(each == one for each in rows) else None
