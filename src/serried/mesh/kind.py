"""Group kinds: a name, a set of axes of one mesh, and at most one named rule.

A rule takes the groups along the axes and derives others from their member lists:

    axis groups         [0 8 16 24]  [1 9 17 25]                      of "data"
    Chunks(2)           [0 8] [16 24]  [1 9] [17 25]                  ZeRO-1, partial DP
    Level(2, 2)         [0 16] [8 24]  [1 17] [9 25]                  across the chunks
    First()             [0]  [1]                                      position embeddings
    Ends()              [0 24]  [1 25]                                tied embeddings
    Runs(2)             [0 8 16 24 1 9 17 25]                         distributed optimizer
    Windows(32)         [0 … 31] [32 … 63] [64 … 79]                  nettest, last one ragged
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from serried.mesh.mesh import Mesh, Ranks


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
    def of(cls, lists: list[list[int]]) -> Groups:
        """Wraps lists of ranks, which may differ in length."""
        members = np.array([rank for ranks in lists for rank in ranks], dtype=np.int32)
        bounds = np.cumsum([0, *(len(ranks) for ranks in lists)], dtype=np.int64)
        return cls(members, bounds)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, group: int) -> Ranks:
        return self.members[self.bounds[group] : self.bounds[group + 1]]

    def lists(self) -> list[list[int]]:
        """Returns the groups as lists of ranks."""
        members, bounds = self.members.tolist(), self.bounds.tolist()
        return [members[a:b] for a, b in pairwise(bounds)]

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many ranks each group has."""
        return np.diff(self.bounds)

    def containing(self, rank: int) -> list[int]:
        """Returns the numbers of the groups that ``rank`` is in, usually one."""
        places = np.flatnonzero(self.members == rank)
        found = np.searchsorted(self.bounds, places, side="right") - 1
        return [int(group) for group in found]

    def index(self, world_size: int) -> Ranks:
        """Returns the first group of each rank, shape (world_size,); -1 where it has none."""
        owner = np.full(world_size, -1, dtype=np.int32)
        numbers = np.repeat(np.arange(len(self), dtype=np.int32), self.sizes)
        owner[self.members[::-1]] = numbers[::-1]
        return owner


class Rule(Protocol):
    """Derives groups from a table of axis groups, shape (groups, size)."""

    def __call__(self, table: Ranks, /) -> Groups: ...


@dataclass(frozen=True)
class First:
    """Keeps the first member of each group."""

    def __call__(self, table: Ranks, /) -> Groups:
        return Groups.even(table[:, :1])


@dataclass(frozen=True)
class Ends:
    """Keeps the first and the last member of each group; one where they are the same."""

    def __call__(self, table: Ranks, /) -> Groups:
        size = table.shape[1]
        return Groups.even(table[:, :1] if size == 1 else table[:, [0, size - 1]])


@dataclass(frozen=True)
class Chunks:
    """Cuts each group into runs of ``size`` members; the last run may be shorter."""

    size: int

    def __call__(self, table: Ranks, /) -> Groups:
        if table.shape[1] % self.size == 0:
            return Groups.even(table.reshape(-1, self.size))
        starts = range(0, table.shape[1], self.size)
        return Groups.of([row[a : a + self.size].tolist() for row in table for a in starts])


@dataclass(frozen=True)
class Level:
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
class Runs:
    """Joins each run of ``length`` groups, end to end, in the order they stand."""

    length: int

    def __call__(self, table: Ranks, /) -> Groups:
        return Groups.even(table.reshape(-1, table.shape[1] * self.length))


@dataclass(frozen=True)
class Windows:
    """Cuts all ranks, whatever the axes, into windows of ``size``; the last may be ragged."""

    size: int

    def __call__(self, table: Ranks, /) -> Groups:
        ranks = np.sort(table.reshape(-1))
        bounds = np.append(np.arange(0, len(ranks), self.size), len(ranks)).astype(np.int64)
        return Groups(ranks, bounds)


@dataclass(frozen=True)
class GroupKind:
    """Names the groups along ``axes`` of the mesh called ``mesh``, after one rule if any.

    ``name`` is the framework's own. ``twin_of`` marks a second communicator over the same
    ranks, as Megatron's gloo twins are; ``about`` says in a clause what travels in it.
    """

    name: str
    axes: tuple[str, ...]
    mesh: str = "dense"
    rule: Rule | None = None
    twin_of: str | None = None
    about: str = ""

    def groups(self, mesh: Mesh) -> Groups:
        """Returns the groups of this kind over ``mesh``."""
        table = mesh.groups(*self.axes)
        return self.rule(table) if self.rule else Groups.even(table)
