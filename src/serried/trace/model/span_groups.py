"""What spans carry of a traffic file: the group that their collectives ran over, and bytes.

    traffic    span 4  ALL_GATHER  0,1,2,3   4096          SpanGroup(ALL_GATHER, (0, 1, 2, 3), 2)
               span 4  ALL_GATHER  0,1,2,3   1024    ──>   span 4: 5120 bytes of that group
               span 5  ALL_REDUCE  0,4        512          SpanGroup(ALL_REDUCE, (0, 4))

A run has few of these groups and many spans, so that a span holds a number and a trace the groups.
What a span made of collectives of several kinds or groups moved is added up, and has no group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from serried.action import ActionKind
from serried.errors import InputError, listed
from serried.trace.model.traffic import MoveTable, moves_in, no_moves

_LISTED = 8


@dataclass(frozen=True)
class SpanGroup:
    """Describes the collectives of a span: their kind, their ranks, and how many they are.

    >>> print(SpanGroup(ActionKind.ALL_REDUCE, (0, 4)))
    0, 4
    """

    kind: ActionKind
    """ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE, BROADCAST or ALL_TO_ALL."""
    ranks: tuple[int, ...]
    """The global ranks of the group."""
    count: int = 1

    def __str__(self) -> str:
        return str(listed(self.ranks, limit=_LISTED))


@dataclass(frozen=True, eq=False)
class _Told:
    """Holds what was told of some spans, each once, ascending."""

    span: NDArray[np.int64]
    size_bytes: NDArray[np.int64]
    group: NDArray[np.int32]


class SpanTraffic:
    """Reads a rank's traffic beside its spans, piece by piece, so that its length costs no memory.

    ``numbers`` says the number of each group; one that it lacks is the next.
    """

    def __init__(self, path: object, file: BinaryIO, numbers: Mapping[SpanGroup, int]) -> None:
        self.numbers = dict(numbers)
        self._path = path
        self._ranks: list[tuple[int, ...]] = []
        self._pieces = moves_in(path, file, self._ranks)
        self._waiting: list[MoveTable] = []
        self._last = 0

    def columns(self, first: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Returns bytes and group of ``count`` spans from ``first`` on, -1 for what is not told.

        Spans are asked for in order. Raises InputError for a damaged file.
        """
        size_bytes, group = np.full(count, -1, dtype=np.int64), np.full(count, -1, dtype=np.int32)
        told = self._told(self._before(first + count))
        mine = told.span >= first
        size_bytes[told.span[mine] - first] = told.size_bytes[mine]
        group[told.span[mine] - first] = told.group[mine]
        return size_bytes, group

    def read_all(self) -> None:
        """Reads to the end, so that all groups have their numbers."""
        for piece in self._ascending():
            self._waiting.append(piece)
            self._told(self._taken(int(piece["span"][-1]) - 1))
        self._told(self._taken(self._last))

    def _before(self, span: int) -> MoveTable:
        """Returns the moves of the spans before ``span`` that were not asked for before."""
        while not self._waiting or int(self._waiting[-1]["span"][-1]) <= span:
            piece = next(self._ascending(), None)
            if piece is None:
                break
            self._waiting.append(piece)
        return self._taken(span)

    def _taken(self, last: int) -> MoveTable:
        """Takes what waits of the spans up to the one that the file numbers ``last``, from 1."""
        whole = np.concatenate([no_moves(), *self._waiting])
        end = int(np.searchsorted(whole["span"], last, "right"))
        self._waiting = [whole[end:]] if end < len(whole) else []
        return whole[:end]

    def _ascending(self) -> Iterator[MoveTable]:
        for piece in self._pieces:
            if not len(piece):
                continue
            spans = piece["span"].astype(np.int64)
            if (np.diff(spans, prepend=self._last) < 0).any():
                raise InputError(
                    "{path} is damaged: its collectives are not in the order of spans",
                    path=self._path,
                )
            self._last = int(spans[-1])
            yield piece

    def _told(self, moves: MoveTable) -> _Told:
        """Adds up the moves of each span; those of several kinds or groups have no group."""
        spans = moves["span"].astype(np.int64)
        first = np.flatnonzero(np.diff(spans, prepend=-1))
        if not len(first):
            return _Told(spans, spans, np.zeros(0, dtype=np.int32))
        kind_and_group = moves["kind"].astype(np.int64) << 16 | moves["group"]
        lowest = np.minimum.reduceat(kind_and_group, first)
        is_one = lowest == np.maximum.reduceat(kind_and_group, first)
        count = np.diff(first, append=len(spans))
        group = np.full(len(first), -1, dtype=np.int32)
        # Many spans have the same group, which is looked up once.
        alike, of = np.unique(np.stack([lowest, count])[:, is_one], axis=1, return_inverse=True)
        numbers = np.array([self._number(*pair) for pair in alike.T.tolist()], dtype=np.int32)
        group[is_one] = numbers[of.ravel()]
        size_bytes = np.add.reduceat(moves["size"].astype(np.int64), first)
        return _Told(spans[first] - 1, size_bytes, group)

    def _number(self, kind_and_group: int, count: int) -> int:
        ranks = self._ranks[(kind_and_group & 0xFFFF) - 1]
        group = SpanGroup(ActionKind(kind_and_group >> 16), ranks, count)
        return self.numbers.setdefault(group, len(self.numbers))
