"""Schedule: every rank's list of actions, in the order in which the rank runs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from serried.action import Action
from serried.pipeline.packed import (
    JOINED,
    Codes,
    Numbers,
    direction_of,
    is_joined,
    kind_of,
    microbatch_of,
    stage_of,
    texts,
    unpack,
)
from serried.pipeline.placement import StagePlacement


@dataclass(frozen=True, eq=False)
class Schedule:
    """Holds the lists of all ranks end to end as packed codes; reads as a list of lists.

    ``code[first[r]:first[r + 1]]`` are the actions of rank r. ``num_microbatches`` are those
    of the whole step; where they flow both ways each direction has half and numbers them from 0.

    >>> from serried.pipeline.schedules.gpipe import gpipe
    >>> [[str(action) for action in actions] for actions in gpipe(2, 1)]
    [['0F0', '0B0'], ['1F0', '1B0']]
    """

    name: str
    placement: StagePlacement
    num_microbatches: int
    first: Numbers
    code: Codes
    group: int | None = None
    """Microbatches that run through a chunk before the next chunk does, where it has groups."""

    @classmethod
    def of(
        cls,
        name: str,
        placement: StagePlacement,
        num_microbatches: int,
        ranks: Sequence[Codes],
        *,
        group: int | None = None,
    ) -> Schedule:
        """Joins one list of codes per rank."""
        first = np.concatenate([[0], np.cumsum([len(codes) for codes in ranks])])
        return cls(name, placement, num_microbatches, first, np.concatenate(ranks), group)

    @property
    def num_ranks(self) -> int:
        """How many ranks run it."""
        return len(self.first) - 1

    @property
    def microbatches_each_way(self) -> int:
        """How many microbatches flow in one direction."""
        return self.num_microbatches // self.placement.num_directions

    @cached_property
    def kind(self) -> Numbers:
        """The kind of every entry, as numbers of ActionKind."""
        return kind_of(self.code)

    @cached_property
    def stage(self) -> Numbers:
        """The stage of every entry."""
        return stage_of(self.code)

    @cached_property
    def microbatch(self) -> Numbers:
        """The microbatch of every entry."""
        return microbatch_of(self.code)

    @cached_property
    def direction(self) -> Numbers:
        """The direction of every entry."""
        return direction_of(self.code)

    @cached_property
    def joined(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Marks the forward of every overlapped pair; its backward is the next entry."""
        return is_joined(self.code)

    @cached_property
    def rank(self) -> Numbers:
        """The rank of every entry."""
        return np.repeat(np.arange(self.num_ranks), np.diff(self.first))

    def __len__(self) -> int:
        return self.num_ranks

    def __getitem__(self, rank: int) -> list[Action]:
        if not -self.num_ranks <= rank < self.num_ranks:
            raise IndexError(rank)
        rank %= self.num_ranks
        codes = self.code[self.first[rank] : self.first[rank + 1]]
        return unpack(codes, num_directions=self.placement.num_directions)

    def __iter__(self) -> Iterator[list[Action]]:
        for rank in range(self.num_ranks):
            yield self[rank]

    def texts(self, rank: int) -> list[str]:
        """Returns the actions of a rank as text, which is quicker than ``str`` of each."""
        codes = self.code[self.first[rank] : self.first[rank + 1]]
        return texts(codes, num_directions=self.placement.num_directions)

    def action(self, entry: int) -> Action:
        """Returns the action of one entry, of a pair the half that the entry is."""
        code = self.code[entry : entry + 1] & ~np.int64(JOINED)
        return unpack(code, num_directions=self.placement.num_directions)[0]
