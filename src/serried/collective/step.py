"""Steps of a collective: which position sends which blocks to which, to reduce or to copy.

    a step of a ring all-reduce, 4 ranks        from   to   first  count   reduces
                                                   0    1       0      1       yes
    0 ──0──> 1 ──1──> 2 ──2──> 3                   1    2       1      1       yes
    ^                          │                   2    3       2      1       yes
    └────────────3─────────────┘                   3    0       3      1       yes

A buffer is cut into ``num_blocks`` blocks. A move carries blocks ``first``, ``first + stride``,
… , ``count`` of them, modulo ``num_blocks``. All moves of a step happen at once: what is sent is
what its sender held before the step. Positions from the group's size on are the switches of its
nodes. Steps are made when they are asked for, so that a ring of 16,384 ranks is no burden.

Run backwards, with each copy turned into a reduction, an all-gather is a reduce-scatter and a
broadcast is a reduce: a block that reaches every rank by a tree comes back along it. So most
algorithms are written once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Work:
    """Holds what is computed in a step, a row each: a position uses a block for its queries.

    Collectives of attention have it; others move blocks only.
    """

    position: Integers
    query: Integers
    """Number of a block of queries, which stays where it is."""
    key: Integers
    """The block of keys, of values or of both that the queries meet."""
    is_half: NDArray[np.bool_]
    """Whether half of the products lie above the diagonal and are left out."""

    def pairs(self, num_positions: int) -> NDArray[np.float64]:
        """Returns how many pairs of blocks each position computes, a diagonal one as a half.

        >>> both = np.array([0, 0])
        >>> Work(both, np.array([0, 1]), both, np.array([True, False])).pairs(2).tolist()
        [1.5, 0.0]
        """
        pairs = np.zeros(num_positions)
        np.add.at(pairs, self.position, np.where(self.is_half, 0.5, 1.0))
        return pairs


@dataclass(frozen=True, eq=False)
class CollectiveStep:
    """Holds the moves of one step as columns of equal length."""

    source: Integers
    target: Integers
    first: Integers
    count: Integers
    reduces: NDArray[np.bool_]
    """Whether the receiver adds what comes to what it has; else it takes it as it is."""
    stride: int = 1
    """From one block of a move to its next."""
    work: Work | None = None

    @classmethod
    def of(
        cls,
        source: ArrayLike,
        target: ArrayLike,
        first: ArrayLike,
        *,
        count: ArrayLike = 1,
        reduces: ArrayLike = False,
        stride: int = 1,
        work: Work | None = None,
    ) -> CollectiveStep:
        """Returns a step of columns; a single number stands for a column of it.

        >>> len(CollectiveStep.of([0, 1], [1, 0], [0, 1]))
        2
        """
        columns = [np.asarray(column, dtype=np.int64) for column in (source, target, first, count)]
        begin, end, block, many = np.broadcast_arrays(*columns)
        adds = np.broadcast_to(np.asarray(reduces, dtype=np.bool_), begin.shape)
        return cls(begin, end, block, many, adds, stride, work)

    def __len__(self) -> int:
        """Returns how many moves the step has."""
        return len(self.source)

    def backwards(self) -> CollectiveStep:
        """Returns the step that undoes this one: what was copied there is reduced here."""
        return replace(self, source=self.target, target=self.source, reduces=~self.reduces)

    def turned(self) -> CollectiveStep:
        """Returns the step with its ends exchanged, copies still copies."""
        return replace(self, source=self.target, target=self.source)

    def rows(self, num_blocks: int) -> tuple[Integers, Integers]:
        """Returns the moves block by block: the move of each row, and its block."""
        move = np.repeat(np.arange(len(self)), self.count)
        before = np.cumsum(self.count) - self.count
        nth = np.arange(len(move)) - before[move]
        return move, (self.first[move] + nth * self.stride) % num_blocks


@dataclass(frozen=True)
class CollectiveSteps(Sequence[CollectiveStep]):
    """Holds so many steps, each made when it is asked for.

    >>> there = CollectiveSteps(2, lambda k: CollectiveStep.of([k], [k + 1], [0]))
    >>> [int(step.source[0]) for step in there.backwards()]
    [2, 1]
    """

    number: int
    make: Callable[[int], CollectiveStep]
    pattern: Callable[[int], Hashable] = lambda index: None
    """Steps of an equal one send as many blocks between the same positions; None: no other."""

    @classmethod
    def listed(cls, steps: Sequence[CollectiveStep]) -> CollectiveSteps:
        """Returns steps that are made already."""
        return cls(len(steps), steps.__getitem__)

    def __len__(self) -> int:
        return self.number

    @overload
    def __getitem__(self, index: int) -> CollectiveStep: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[CollectiveStep]: ...
    def __getitem__(self, index: int | slice) -> CollectiveStep | Sequence[CollectiveStep]:
        """Returns one step, or a list of some."""
        if isinstance(index, slice):
            return [self.make(k) for k in range(*index.indices(self.number))]
        if not -self.number <= index < self.number:
            raise IndexError(index)
        return self.make(index % self.number)

    def __iter__(self) -> Iterator[CollectiveStep]:
        return map(self.make, range(self.number))

    def backwards(self) -> CollectiveSteps:
        """Returns the steps from the last to the first, each backwards."""
        return self._from_the_last("backwards", CollectiveStep.backwards)

    def turned(self) -> CollectiveSteps:
        """Returns the steps from the last to the first, each with its ends exchanged."""
        return self._from_the_last("turned", CollectiveStep.turned)

    def then(self, after: CollectiveSteps) -> CollectiveSteps:
        """Returns these steps and ``after`` them those."""
        first = self.number
        return CollectiveSteps(
            first + after.number,
            lambda k: self.make(k) if k < first else after.make(k - first),
            lambda k: self.pattern(k) if k < first else after.pattern(k - first),
        )

    def _from_the_last(
        self, how: str, turn: Callable[[CollectiveStep], CollectiveStep]
    ) -> CollectiveSteps:
        last = self.number - 1

        def pattern(index: int) -> Hashable:
            forwards = self.pattern(last - index)
            return None if forwards is None else (how, forwards)

        return CollectiveSteps(self.number, lambda k: turn(self.make(last - k)), pattern)
