"""The period of a job without a pipeline: what each rank's steps were spent on, all of it.

    |data|  F  |   B  ..exposed..|optimizer|..|data|  F  | …
    |<------------- period -------------->|

    period = data + compute + exposed communication + optimizer + not recorded

*Data* is the loading of batches, spans named ``data``: what the loader's own processes do meanwhile
costs nothing and is none of it. *Compute* is forwards and backwards without the waits inside them,
and *exposed communication* what the rank was held up by: collectives, messages, reductions behind
no computation. *Not recorded* lies before the rank's first span of a step, where an unrecorded
loader's time is, or between its spans. The parts are means over the same steps and add up to the
period, whatever overlaps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE
from serried.trace.measure.ranks.spent import Spent, data_rows, time_spent
from serried.trace.measure.warm_up import warm_up_of
from serried.trace.model.trace import Trace

PARTS = ("data", "compute", "communication", "optimizer", "before", "gaps")
"""What a period is made of; the last two are what was not recorded."""
_COMPUTING = ("forward", "backward", "weight")


@dataclass(frozen=True)
class RankPeriod:
    """Says what one rank's period was spent on: nanoseconds, means over the same steps."""

    rank: int
    period_ns: float
    data_ns: float
    compute_ns: float
    communication_ns: float
    optimizer_ns: float
    before_ns: float
    """Not recorded, before its first span of a step."""
    gaps_ns: float
    """Not recorded, between its spans."""

    @property
    def unrecorded_ns(self) -> float:
        """All that was not recorded."""
        return self.before_ns + self.gaps_ns

    def share(self, part: str) -> float:
        """Returns one of ``PARTS`` over the period."""
        return float(getattr(self, f"{part}_ns")) / self.period_ns if self.period_ns else 0.0


@dataclass(frozen=True)
class StepPeriods:
    """Holds the periods of all ranks of a job that has no pipeline."""

    ranks: tuple[RankPeriod, ...]
    """Ascending."""
    steps: tuple[int, ...]
    """Those that means are of."""
    has_data: bool
    """Whether the loading of data was recorded."""

    @property
    def mean(self) -> RankPeriod:
        """The mean of all ranks, under the number -1."""
        return RankPeriod(-1, *(self._mean_of(part) for part in ("period", *PARTS)))

    @property
    def loader(self) -> RankPeriod | None:
        """The rank that spends most on loading data; None where that was not recorded."""
        return max(self.ranks, key=lambda each: each.data_ns) if self.has_data else None

    def _mean_of(self, part: str) -> float:
        return float(np.mean([getattr(each, f"{part}_ns") for each in self.ranks]))


def step_periods(trace: Trace, steps: NDArray[np.int32]) -> StepPeriods | None:
    """Returns what ``steps``, complete ones, were spent on; None without any.

    Left out, where others remain, are a step whose predecessor was not recorded, for when it began
    is not known, and the leading ones of a warm-up.
    """
    ranks = np.unique(trace.spans.rank[np.isin(trace.spans.kind, sorted(COMPUTE))])
    if not len(steps) or not len(ranks):
        return None
    loads = data_rows(trace)
    mine = np.isin(trace.spans.rank, ranks)
    follows = np.isin(steps - 1, trace.spans.step)
    counted = steps[follows] if follows.any() else steps
    spans, is_load = trace.spans.where(mine), loads[mine]
    spent = time_spent(spans, counted, ranks.astype(np.int64), is_load)
    usual = warm_up_of(spent.period.mean(axis=1))
    means = _means(spent, usual)
    columns = zip(*(means[name].tolist() for name in ("period", *PARTS)), strict=True)
    return StepPeriods(
        ranks=tuple(
            RankPeriod(rank, *parts) for rank, parts in zip(ranks.tolist(), columns, strict=True)
        ),
        steps=tuple(counted[usual:].tolist()),
        has_data=bool(loads.any()),
    )


def _means(spent: Spent, first: int) -> dict[str, NDArray[np.float64]]:
    """Returns the mean of each part over the steps from ``first`` on, one number a rank."""
    tables = {
        "period": spent.period,
        "data": spent.parts["data"],
        "compute": np.sum([spent.parts[name] for name in _COMPUTING], axis=0),
        "communication": spent.waits,
        "optimizer": spent.parts["optimizer"],
        "before": spent.parts["before"],
        "gaps": spent.parts["gaps"],
    }
    return {name: table[first:].mean(axis=0) for name, table in tables.items()}
