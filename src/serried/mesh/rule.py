"""The named rules that derive groups from the groups along axes.

axis groups             [0 8 16 24]  [1 9 17 25]                      of "data"
Chunks(2)               [0 8] [16 24]  [1 9] [17 25]                  ZeRO-1, partial DP
Level(2, 2)             [0 16] [8 24]  [1 17] [9 25]                  across the chunks
First()                 [0]  [1]                                      position embeddings
Ends()                  [0 24]  [1 25]                                tied embeddings
Strides(2)              [0 16] [8 24]  [1 17] [9 25]                  shards across contexts
RingPairs()             [0 8] [8 16] [16 24] [24 0]  [1 9] …          stage to next stage
Pick((0, 2, 1, 3))      [0 16 8 24]  [1 17 9 25]                      interleaved windows
Slices(…)               [0 8] [1 9]  [16 24] [17 25]                  2-D rings, slice by slice
JoinRuns(2)             [0 8 16 24 1 9 17 25]                         distributed optimizer
JoinStrided(2, 1)       [0 8 16 24 1 9 17 25]                         every ``step``-th group joined
Leading(1)              [0 8 16 24]                                   groups never made
RankWindows(32)         [0 … 31] [32 … 63] [64 … 79]                  nettest, last one ragged

A rule reads a table of axis groups, a row each. To tell the groups of one rank in a world of a
million, only the rows that those groups are made of are computed: ``rows_needed`` names them.
"""

from __future__ import annotations

from typing import Final, Protocol, Self

import numpy as np

from serried.mesh.groups import Groups
from serried.mesh.mesh import Mesh, Ranks

Shape = tuple[int, int]
"""How many axis groups there are, and how many ranks each has."""


class Rule(Protocol):
    """Derives groups from a table of axis groups, shape (groups, size).

    ``on_rows_needed`` is the rule to apply to a table of only the rows that ``rows_needed`` names.
    """

    @property
    def on_rows_needed(self) -> Rule: ...

    def __call__(self, table: Ranks, /) -> Groups: ...

    def rows_needed(self, row: int, shape: Shape, /) -> tuple[range, ...] | None:
        """Returns the rows that groups of row ``row``'s members are made of; None for all.

        Each range makes whole groups by itself, in the order in which all rows make them.
        """

    def first_number(self, row: int, shape: Shape, /) -> int | None:
        """Returns the number of the first group that ``rows_needed`` makes.

        None where the number follows only from making all groups.
        """


class TableRule:
    """Looks across axis groups; by default it needs all of them for any group.

    A rule equals another of its class with the same settings.

    >>> Chunks(2) == Chunks(2), Chunks(2) == Strides(2), Level(2, stride=4)
    (True, False, Level(size=2, stride=4))
    """

    # Said once here: a frozen dataclass writes and compiles this code for each class anew, which
    # for the rules below took a twentieth of the time of a short command.
    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({settings})"

    @property
    def on_rows_needed(self) -> Self:
        return self

    def rows_needed(self, row: int, shape: Shape, /) -> tuple[range, ...] | None:
        """Returns None: any row may contribute."""
        return None

    def first_number(self, row: int, shape: Shape, /) -> int | None:
        """Returns None: the number follows only from making all groups."""
        return None


class RowRule(TableRule):
    """Looks at one axis group at a time; by default it makes one group of each."""

    def rows_needed(self, row: int, shape: Shape, /) -> tuple[range, ...] | None:
        """Returns the row itself."""
        return (range(row, row + 1),)

    def first_number(self, row: int, shape: Shape, /) -> int | None:
        """Returns the row's own number."""
        return row


class SortedRowRule(RowRule):
    """Looks at one axis group at a time, but puts the groups in an order of its own."""

    def first_number(self, row: int, shape: Shape, /) -> int | None:
        """Returns None: where a group stands depends on the others."""
        return None


class First(RowRule):
    """Keeps the first member of each group."""

    def __call__(self, table: Ranks, /) -> Groups:
        return Groups.even(table[:, :1])


class Ends(RowRule):
    """Keeps the first and the last member of each group; one where they are the same."""

    def __call__(self, table: Ranks, /) -> Groups:
        size = table.shape[1]
        return Groups.even(table[:, :1] if size == 1 else table[:, [0, size - 1]])


class Chunks(RowRule):
    """Cuts each group into runs of ``size`` members; the last run may be shorter."""

    def __init__(self, size: int) -> None:
        self.size: Final = size

    def __call__(self, table: Ranks, /) -> Groups:
        num_rows, length = table.shape
        if length % self.size == 0:
            return Groups.even(table.reshape(-1, self.size))
        full, left = divmod(length, self.size)
        sizes = np.tile(np.array([self.size] * full + [left]), num_rows)
        bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return Groups(np.ascontiguousarray(table).reshape(-1), bounds)

    def first_number(self, row: int, shape: Shape, /) -> int | None:
        return row * -(-shape[1] // self.size)


class Level(RowRule):
    """Reshapes each group to (outer, ``size``, ``stride``) and groups along ``size``.

    Hierarchies are levels: sizes 2, 2, 4 of a group of 16 are Level(2, 1), Level(2, 2)
    and Level(4, 4). ``size * stride`` must divide the group.
    """

    def __init__(self, size: int, stride: int) -> None:
        self.size: Final = size
        self.stride: Final = stride

    def __call__(self, table: Ranks, /) -> Groups:
        cube = table.reshape(len(table), -1, self.size, self.stride)
        return Groups.even(cube.swapaxes(2, 3).reshape(-1, self.size))

    def first_number(self, row: int, shape: Shape, /) -> int | None:
        return row * (shape[1] // self.size)


class Pick(RowRule):
    """Puts the members of each group in the order of ``places``; places left out are dropped."""

    def __init__(self, places: tuple[int, ...]) -> None:
        self.places: Final = places

    def __call__(self, table: Ranks, /) -> Groups:
        return Groups.even(table[:, list(self.places)])


class Slices(SortedRowRule):
    """Takes (start, stop, step) slices of every group, all groups' first slices first."""

    def __init__(self, slices: tuple[tuple[int, int, int], ...]) -> None:
        self.slices: Final = slices

    def __call__(self, table: Ranks, /) -> Groups:
        return Groups.joined([Groups.even(table[:, slice(*bounds)]) for bounds in self.slices])


class Strides(RowRule):
    """Takes every ``step``-th member of each group; where they do not divide, groups differ."""

    def __init__(self, step: int) -> None:
        self.step: Final = step

    def __call__(self, table: Ranks, /) -> Groups:
        num_rows, length = table.shape
        # With 5 members and step 2 the parts are places 0 2 4 and 1 3.
        parts = [range(first, length, self.step) for first in range(min(self.step, length))]
        order = [place for part in parts for place in part]
        sizes = np.tile(np.array([len(part) for part in parts]), num_rows)
        bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return Groups(np.ascontiguousarray(table[:, order]).reshape(-1), bounds)

    def first_number(self, row: int, shape: Shape, /) -> int | None:
        return row * min(self.step, shape[1])


class RingPairs(RowRule):
    """Pairs each member with the next of its group, the last with the first.

    ``back`` turns the ring: with 1 each member's pair is the one with the member before it.
    """

    def __init__(self, back: int = 0) -> None:
        self.back: Final = back

    def __call__(self, table: Ranks, /) -> Groups:
        ones, others = np.roll(table, self.back, axis=1), np.roll(table, self.back - 1, axis=1)
        return Groups.even(np.stack([ones, others], axis=2).reshape(-1, 2))

    def first_number(self, row: int, shape: Shape, /) -> int | None:
        return row * shape[1]


class ByFirst(SortedRowRule):
    """Orders the groups by their first members."""

    def __call__(self, table: Ranks, /) -> Groups:
        return Groups.even(table[np.argsort(table[:, 0], kind="stable")])


class ByLowest(SortedRowRule):
    """Orders the groups by their lowest members, as ranks counted from 0 come upon them."""

    def __call__(self, table: Ranks, /) -> Groups:
        return Groups.even(table[np.argsort(table.min(axis=1), kind="stable")])


class Leading(RowRule):
    """Keeps the first ``count`` groups; the rest are never made."""

    def __init__(self, count: int) -> None:
        self.count: Final = count

    def __call__(self, table: Ranks, /) -> Groups:
        return Groups.even(table[: self.count])

    def rows_needed(self, row: int, shape: Shape, /) -> tuple[range, ...] | None:
        """Returns the row itself, or nothing for a row that is not kept."""
        return (range(row, row + 1),) if row < self.count else ()


class JoinRuns(TableRule):
    """Joins each run of ``length`` groups, end to end, in the order they stand.

    >>> JoinRuns(2)(np.arange(8).reshape(4, 2)).lists()
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    """

    def __init__(self, length: int) -> None:
        self.length: Final = length

    def __call__(self, table: Ranks, /) -> Groups:
        return Groups.even(table.reshape(-1, table.shape[1] * self.length))

    def rows_needed(self, row: int, shape: Shape, /) -> tuple[range, ...] | None:
        """Returns the run that ``row`` is in."""
        first = row // self.length * self.length
        return (range(first, first + self.length),)

    def first_number(self, row: int, shape: Shape, /) -> int | None:
        return row // self.length


class JoinStrided(TableRule):
    """Joins group g with those ``step``, 2 ``step`` … after it, ``width`` in all.

    One joined group is made per ``width`` groups there are, counted from the first, so a
    ``step`` that does not fit makes groups overlap and leaves ranks out. Of groups a … h:

        width 2, step 4      a+e  b+f  c+g  d+h       each once
        width 2, step 2      a+c  b+d  c+e  d+f       c and d twice, g and h in none
    """

    def __init__(self, width: int, step: int) -> None:
        self.width: Final = width
        self.step: Final = step

    @property
    def on_rows_needed(self) -> JoinStrided:
        """The same with step 1: rows cut out for one joined group stand side by side."""
        return JoinStrided(self.width, step=1)

    def __call__(self, table: Ranks, /) -> Groups:
        starts = np.arange(len(table) // self.width)
        rows = starts[:, None] + np.arange(self.width) * self.step
        return Groups.even(table[rows].reshape(len(starts), -1))

    def rows_needed(self, row: int, shape: Shape, /) -> tuple[range, ...] | None:
        """Returns, for each joined group that holds ``row``, the rows that it joins."""
        # The row stands first in one joined group, second in the one that starts a step before, …
        length = (self.width - 1) * self.step + 1
        starts = range(row - length + 1, row + 1, self.step)
        count = shape[0] // self.width
        return tuple(range(g, g + length, self.step) for g in starts if 0 <= g < count)


class RankWindows(TableRule):
    """Cuts all ranks, whatever the axes, into windows of ``size``; the last may be ragged."""

    def __init__(self, size: int) -> None:
        self.size: Final = size

    def __call__(self, table: Ranks, /) -> Groups:
        ranks = np.sort(table.reshape(-1))
        bounds = np.append(np.arange(0, len(ranks), self.size), len(ranks)).astype(np.int64)
        return Groups(ranks, bounds)

    def around(self, rank: int, mesh: Mesh) -> tuple[int, list[int]]:
        """Returns the number of the window that holds ``rank``, and its ranks, by arithmetic."""
        number = (rank - mesh.offset) // self.size
        first = mesh.offset + number * self.size
        return number, list(range(first, min(first + self.size, mesh.offset + mesh.num_ranks)))


class Chain(TableRule):
    """Applies one rule after another; all but the last make groups of one size."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules: Final = rules

    @property
    def on_rows_needed(self) -> Chain:
        """The same rules, each for the rows that are needed."""
        return Chain(tuple(rule.on_rows_needed for rule in self.rules))

    def __call__(self, table: Ranks, /) -> Groups:
        groups = Groups.even(table)
        for rule in self.rules:
            groups = rule(groups.table)
        return groups

    def rows_needed(self, row: int, shape: Shape, /) -> tuple[range, ...] | None:
        """Returns the rows of the one rule that looks across them, while rows still stand."""
        # ``row`` counts rows of the first table. A later rule sees the rows that the rules before
        # it made, so what it names means these rows only if they left them where they were; two
        # rules that look across rows cannot be told apart from here, so all rows are needed.
        own = (range(row, row + 1),)
        found: tuple[range, ...] = own
        for i, rule in enumerate(self.rules):
            near = rule.rows_needed(row, shape)
            if near is None or (near and near != own and not self._leaves_rows(i)):
                return None
            if not near:
                return ()
            found = near if near != own else found
        return found

    def _leaves_rows(self, place: int) -> bool:
        """Tells whether the rules before ``place`` leave the rows where they are."""
        return all(isinstance(rule, Leading | Pick) for rule in self.rules[:place])
