"""Figures of ranks from the links of a ``serried.check/1`` document, whoever wrote or reads it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serried.runtime.check.link_speed import MeasuredLinks, Speeds, rank_speeds


def link_figures(links: Sequence[Mapping[str, Any]], world_size: int) -> dict[str, Speeds]:
    """Returns how fast each rank's links are beside their like, for the largest message.

    Raises LookupError, TypeError or ValueError for links that are none.
    """
    return rank_speeds(
        MeasuredLinks(
            source=_ranks(links, "from", world_size),
            target=_ranks(links, "to", world_size),
            is_across=np.array([bool(link["is_inter"]) for link in links], dtype=np.bool_),
            time_us=np.array([_largest_us(link["time_us"]) for link in links]),
        ),
        world_size,
    )


def figure_lists(figures: Mapping[str, Speeds]) -> dict[str, list[float | None]]:
    """Returns figures as JSON holds them: None for a rank of which nothing is known."""
    return {
        name: [None if math.isnan(value) else value for value in values.tolist()]
        for name, values in figures.items()
    }


def _ranks(links: Sequence[Mapping[str, Any]], end: str, world_size: int) -> NDArray[np.int64]:
    found = np.array([int(link[end]) for link in links], dtype=np.int64)
    if ((found < 0) | (found >= world_size)).any():
        raise ValueError(f"{end}={found.max()}")
    return found


def _largest_us(times: Mapping[str, Any]) -> float:
    # Keys of JSON are text, and as text '8' is more than '65536'.
    time = float(times[max(times, key=int)])
    # Put this way round, the condition refuses NaN as well.
    if not (0 < time < math.inf):
        raise ValueError(f"time_us={time}")
    return time
