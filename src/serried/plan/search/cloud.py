"""All layouts that a search kept, by step and memory: the cloud behind its few best.

used │            · ·  ·
     │  o  · ··  · ·        · fits, and takes at most three times the quickest step
     │   \\_o  · · ··        o none is better in both (``SearchResult.pareto``)
     └────────────── step
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from serried.plan.request import PlanRequest
from serried.plan.search.search import SearchResult
from serried.plan.search.space import COLUMNS, Whole
from serried.plan.search.weigh import Real

SLOWEST = 3.0
"""Steps beyond so many times the quickest are left out: they tell nothing."""
MOST = 4000
"""Layouts that are kept at most, evenly thinned."""


@dataclass(frozen=True, eq=False)
class Cloud:
    """Holds layouts that fit as columns, one row each."""

    manners: tuple[PlanRequest, ...]
    """Schedule, ZeRO stage and recompute of the rows, by their numbers in ``manner``."""
    manner: Whole
    rows: Mapping[str, Whole]
    """Columns of ``COLUMNS``; the order is that of its manner's in ``orders``."""
    orders: tuple[tuple[str, ...], ...]
    """Orders of axes that the rows of each manner number."""
    step: Real
    """Seconds."""
    in_use: Real
    """Bytes of the fullest rank."""

    def __len__(self) -> int:
        return len(self.step)


def cloud_of(found: SearchResult) -> Cloud:
    """Returns what fits and is not far too slow, evenly thinned; nothing where nothing fits."""
    step = np.concatenate([each.step for each in found.manners])
    used = np.concatenate([each.in_use for each in found.manners])
    counts = [len(each.step) for each in found.manners]
    manner = np.repeat(np.arange(len(counts)), counts)
    kept = np.zeros(0, np.int64)
    if found.pareto:
        fits = (used <= found.pareto[0].limit) & np.isfinite(step)
        kept = np.flatnonzero(fits & (step <= SLOWEST * found.pareto[0].step_s))
        kept = kept[:: max(1, -(-len(kept) // MOST))]
    rows = {name: np.concatenate([each.rows[name] for each in found.manners]) for name in COLUMNS}
    return Cloud(
        tuple(each.asked for each in found.manners),
        manner[kept],
        {name: column[kept] for name, column in rows.items()},
        tuple(each.orders for each in found.manners),
        step[kept],
        used[kept],
    )
