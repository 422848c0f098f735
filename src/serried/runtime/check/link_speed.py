"""How fast the links of each rank are beside their like, from what a check measured.

    link 3 -> 7   1.1 GB/s, median of links between nodes 1.2   ->  0.92 of rank 3's sends,
                                                                    0.92 of rank 7's receives

Links between nodes are compared with each other, links inside nodes likewise. A rank's best link
tells of its end, its worst one of the path.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Speeds = NDArray[np.float64]
"""One value a rank: 1 for a link as fast as the median of its like; NaN without a link."""


@dataclass(frozen=True, eq=False)
class MeasuredLinks:
    """Holds links, one row each, and how long a message of one size took on them."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    is_across: NDArray[np.bool_]
    """Whether the link leads from one node to another."""
    time_us: NDArray[np.float64]


def rank_speeds(links: MeasuredLinks, world_size: int) -> dict[str, Speeds]:
    """Returns the best and the worst link of each rank by the end that it has of it.

    >>> links = MeasuredLinks(
    ...     np.array([0, 1, 2]), np.array([1, 2, 0]), np.array([True] * 3), np.array([5, 5, 20.0])
    ... )
    >>> rank_speeds(links, 3)["best_send"].tolist()
    [1.0, 1.0, 0.25]
    """
    if not len(links.source):
        return {}
    speed = 1 / links.time_us
    for alike in (links.is_across, ~links.is_across):
        if alike.any():
            speed[alike] /= np.median(speed[alike])
    # fmax and fmin pass over NaN, which is what a rank without such a link has.
    return {
        f"{word}_{act}": _of_ranks(pick, rank, speed, links.is_across, world_size)
        for word, pick in (("best", np.fmax), ("worst", np.fmin))
        for act, rank in (("send", links.source), ("receive", links.target))
    }


def _of_ranks(
    pick: np.ufunc,
    rank: NDArray[np.int64],
    speed: Speeds,
    is_across: NDArray[np.bool_],
    world_size: int,
) -> Speeds:
    """Returns the picked speed of each rank's links between nodes, else of those inside.

    Where a rank has links between nodes they tell of it; those inside would hide a slow card.
    """
    across, inside = np.full(world_size, np.nan), np.full(world_size, np.nan)
    pick.at(across, rank[is_across], speed[is_across])
    pick.at(inside, rank[~is_across], speed[~is_across])
    return np.where(np.isnan(across), inside, across)
