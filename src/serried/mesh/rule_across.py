"""The named rules that look across the groups along axes; ``rule`` holds those that do not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from serried.mesh.groups import Groups
from serried.mesh.mesh import Mesh, Ranks
from serried.mesh.rule import Pick, Rule, Shape


@dataclass(frozen=True)
class Strips:
    """Counts ``count`` runs of ``size`` ranks on from each group's first, wherever it ends."""

    count: int
    size: int

    @property
    def alone(self) -> Self:
        """The rule itself."""
        return self

    def __call__(self, table: Ranks, /) -> Groups:
        """Returns the runs, group after group."""
        steps = np.arange(self.count * self.size, dtype=np.int32)
        return Groups.even((table[:, :1] + steps).reshape(-1, self.size))

    def reach(self, shape: Shape) -> int:
        """Returns how many rows of consecutive ranks a row's runs reach into beyond its own."""
        return (self.count * self.size - 1) // shape[1]

    def rows(self, row: int, shape: Shape, /) -> tuple[range, ...] | None:
        """Returns None: where axis groups are not runs of ranks, any may reach here."""
        return None

    def number(self, row: int, shape: Shape, /) -> int | None:
        """Returns None: all rows tell it."""
        return None


@dataclass(frozen=True)
class Held:
    """Makes runs of ranks and keeps those that some rank holds: the last made with it.

    Where groups overlap a rank's variable is overwritten, so earlier ones are lost to it.
    The axis groups are runs of ranks that stand side by side, as tensor groups are.
    """

    rule: Strips

    @property
    def alone(self) -> Self:
        """The rule itself."""
        return self

    def __call__(self, table: Ranks, /) -> Groups:
        """Returns the runs that are held, in the order of the ranks that hold them."""
        made = self.rule(table).table
        ranks = np.sort(table.reshape(-1))
        first = int(ranks[0])
        owner = np.full(int(max(made.max(), ranks[-1])) + 1 - first, -1, dtype=np.int32)
        # Where a rank stands several times numpy keeps the last of the values assigned to it.
        owner[made.reshape(-1) - first] = np.repeat(
            np.arange(len(made), dtype=np.int32), made.shape[1]
        )
        held, places = np.unique(owner[ranks - first], return_index=True)
        in_rank_order = held[np.argsort(places)]
        return Groups.even(made[in_rank_order[in_rank_order >= 0]])

    def rows(self, row: int, shape: Shape, /) -> tuple[range, ...] | None:
        """Returns the rows whose runs reach here, and those that may have overwritten them."""
        reach = self.rule.reach(shape) + 1
        return (range(max(0, row - 2 * reach), min(shape[0], row + reach + 1)),)

    def number(self, row: int, shape: Shape, /) -> int | None:
        """Returns None: all rows tell it."""
        return None


@dataclass(frozen=True)
class Runs:
    """Joins each run of ``length`` groups, end to end, in the order they stand."""

    length: int

    @property
    def alone(self) -> Self:
        """The rule itself."""
        return self

    def __call__(self, table: Ranks, /) -> Groups:
        """Returns the joined groups."""
        return Groups.even(table.reshape(-1, table.shape[1] * self.length))

    def rows(self, row: int, shape: Shape, /) -> tuple[range, ...] | None:
        """Returns the run that ``row`` is in."""
        first = row // self.length * self.length
        return (range(first, first + self.length),)

    def number(self, row: int, shape: Shape, /) -> int | None:
        """Returns the number of the run."""
        return row // self.length


@dataclass(frozen=True)
class Braid:
    """Joins group g with those ``step``, 2 ``step`` … after it, ``width`` in all.

    One joined group is made per ``width`` groups there are, counted from the first, so a
    ``step`` that does not fit makes groups overlap and leaves ranks out.
    """

    width: int
    step: int

    @property
    def alone(self) -> Braid:
        """The braid of the rows of one group, which then stand side by side."""
        return replace(self, step=1)

    def __call__(self, table: Ranks, /) -> Groups:
        """Returns the joined groups."""
        starts = np.arange(len(table) // self.width)
        rows = starts[:, None] + np.arange(self.width) * self.step
        return Groups.even(table[rows].reshape(len(starts), -1))

    def rows(self, row: int, shape: Shape, /) -> tuple[range, ...] | None:
        """Returns the rows of each group that ``row`` is joined into."""
        length = (self.width - 1) * self.step + 1
        starts = range(row - length + 1, row + 1, self.step)
        count = shape[0] // self.width
        return tuple(range(g, g + length, self.step) for g in starts if 0 <= g < count)

    def number(self, row: int, shape: Shape, /) -> int | None:
        """Returns None: a row may be joined into several groups."""
        return None


@dataclass(frozen=True)
class Leading:
    """Keeps the first ``count`` groups; the rest are never made."""

    count: int

    @property
    def alone(self) -> Self:
        """The rule itself."""
        return self

    def __call__(self, table: Ranks, /) -> Groups:
        """Returns the groups that are kept."""
        return Groups.even(table[: self.count])

    def rows(self, row: int, shape: Shape, /) -> tuple[range, ...] | None:
        """Returns the row itself, or nothing for a row that is not kept."""
        return (range(row, row + 1),) if row < self.count else ()

    def number(self, row: int, shape: Shape, /) -> int | None:
        """Returns the row's own number."""
        return row


@dataclass(frozen=True)
class Windows:
    """Cuts all ranks, whatever the axes, into windows of ``size``; the last may be ragged."""

    size: int

    @property
    def alone(self) -> Self:
        """The rule itself."""
        return self

    def __call__(self, table: Ranks, /) -> Groups:
        """Returns the windows."""
        ranks = np.sort(table.reshape(-1))
        bounds = np.append(np.arange(0, len(ranks), self.size), len(ranks)).astype(np.int64)
        return Groups(ranks, bounds)

    def rows(self, row: int, shape: Shape, /) -> tuple[range, ...] | None:
        """Returns None: a window may cross any axis."""
        return None

    def number(self, row: int, shape: Shape, /) -> int | None:
        """Returns None: the rank tells it, not its row."""
        return None

    def around(self, rank: int, mesh: Mesh) -> tuple[int, list[int]]:
        """Returns the number of the window that holds ``rank``, and its ranks, by arithmetic."""
        number = (rank - mesh.offset) // self.size
        first = mesh.offset + number * self.size
        return number, list(range(first, min(first + self.size, mesh.offset + mesh.num_ranks)))


@dataclass(frozen=True)
class Chain:
    """Applies one rule after another; all but the last make groups of one size."""

    rules: tuple[Rule, ...]

    @property
    def alone(self) -> Chain:
        """The same rules, each for the rows of one rank alone."""
        return Chain(tuple(rule.alone for rule in self.rules))

    def __call__(self, table: Ranks, /) -> Groups:
        """Returns what the last rule makes."""
        groups = Groups.even(table)
        for rule in self.rules:
            groups = rule(groups.table)
        return groups

    def rows(self, row: int, shape: Shape, /) -> tuple[range, ...] | None:
        """Returns the rows of the one rule that looks across them, while rows still stand."""
        own = (range(row, row + 1),)
        found: tuple[range, ...] = own
        for i, rule in enumerate(self.rules):
            near = rule.rows(row, shape)
            if near is None or (near and near != own and not self._stand(i)):
                return None
            if not near:
                return ()
            found = near if near != own else found
        return found

    def _stand(self, place: int) -> bool:
        """Tells whether the rules before ``place`` leave the rows where they are."""
        return all(isinstance(rule, Leading | Pick) for rule in self.rules[:place])

    def number(self, row: int, shape: Shape, /) -> int | None:
        """Returns None: rules may number groups anew, one after the other."""
        return None
