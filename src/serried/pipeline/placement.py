"""Placement: which rank holds each stage, for every direction in which microbatches flow.

    loop, p = 4, v = 2        zigzag, p = 4, v = 2        both ways, p = 4
    rank 0  stages 0 4        rank 0  stages 0 7          rank 0  0 of direction 0, 3 of 1
    rank 1  stages 1 5        rank 1  stages 1 6          rank 1  1 of direction 0, 2 of 1
    rank 2  stages 2 6        rank 2  stages 2 5          rank 2  2 of direction 0, 1 of 1
    rank 3  stages 3 7        rank 3  stages 3 4          rank 3  3 of direction 0, 0 of 1

Loop is Megatron's interleaving (arXiv 2104.04473); zigzag is the V of ZB-V (2401.10241) and,
with more turns, the waves of Hanayo (2308.15762); both ways keeps two copies of each stage
(Chimera 2107.06925, DualPipe 2412.19437).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.errors import InputError
from serried.pipeline.packed import MAX_STAGES


@dataclass(frozen=True, eq=False)
class StagePlacement:
    """Holds ``rank_of[direction, stage]``."""

    rank_of: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.num_stages > MAX_STAGES:
            raise InputError(
                "{stages} stages are more than the {most} that one schedule can have",
                stages=self.num_stages,
                most=MAX_STAGES,
            )

    @property
    def num_directions(self) -> int:
        """How many ways microbatches flow: 1, or 2 where every stage has two ranks."""
        return int(self.rank_of.shape[0])

    @property
    def num_stages(self) -> int:
        """How many stages the model is cut into."""
        return int(self.rank_of.shape[1])

    @property
    def num_ranks(self) -> int:
        """How many ranks hold stages."""
        return int(self.rank_of.max()) + 1

    @property
    def stages_per_rank(self) -> int:
        """How many stages the fullest rank holds, counting both directions."""
        return int(np.bincount(self.rank_of.ravel()).max())

    def stages_of(self, rank: int) -> list[tuple[int, int]]:
        """Returns the (direction, stage) pairs on ``rank``.

        >>> zigzag(4, 2).stages_of(1)
        [(0, 1), (0, 6)]
        """
        found = np.argwhere(self.rank_of == rank)
        return [(int(direction), int(stage)) for direction, stage in found]


def loop(num_ranks: int, chunks: int = 1) -> StagePlacement:
    """Places stage s on rank s mod p."""
    return StagePlacement((np.arange(num_ranks * chunks) % num_ranks)[None, :])


def zigzag(num_ranks: int, chunks: int = 2) -> StagePlacement:
    """Places the stages down the ranks and up again, ``chunks`` times.

    >>> zigzag(3, 4).rank_of.tolist()
    [[0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0]]
    """
    turn, step = np.divmod(np.arange(num_ranks * chunks), num_ranks)
    return StagePlacement(np.where(turn % 2 == 0, step, num_ranks - 1 - step)[None, :])


def both_ways(num_ranks: int) -> StagePlacement:
    """Places stage s on rank s for one direction and on rank p-1-s for the other."""
    down = np.arange(num_ranks)
    return StagePlacement(np.stack([down, down[::-1]]))
