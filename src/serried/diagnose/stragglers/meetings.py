"""What it costs that ranks do not come to their exchanges together, where all meet in each of them.

    rank 0   |  own 9  |.....|  own 12     |        each exchange begins for all when the last has
    rank 1   |  own 14       |  own 10  |..|        come: 14 + 12, and 13 less in each if ...

Between two exchanges each rank works on its own, as long as from the end of one to the beginning of
the next. Were a slow rank as quick as its like, another would come last, for their work varies too:
what the others wait for it is more than it costs.

Ranks are compared by times of their own clocks alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.action import EXCHANGES
from serried.trace.model.trace import Trace

Table = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Meetings:
    """Holds what each rank did between exchanges that all take part in; times in nanoseconds."""

    own: Table
    """A row for each exchange but the first, a column for each rank."""
    steps: NDArray[np.int64]
    """The step of each row."""
    ranks: tuple[int, ...]
    lasted: float
    """From the first exchange to the last."""

    @classmethod
    def of(cls, trace: Trace) -> Meetings | None:
        """Returns the exchanges of a run; None where not all ranks take part in all of them."""
        wide = [size for size in trace.job.sizes.values() if size > 1]
        rows = np.flatnonzero(np.isin(trace.spans.kind, sorted(EXCHANGES)))
        spans = trace.spans.where(rows)
        ranks = np.unique(spans.rank)
        if trace.has_pipeline or len(wide) != 1 or len(ranks) < 2 or len(ranks) != wide[0]:
            return None
        order = np.lexsort((spans.start_ns, spans.rank))
        count, rest = divmod(len(order), len(ranks))
        if rest or count < 2 or any(np.bincount(np.searchsorted(ranks, spans.rank)) != count):
            return None
        begins, ends, kinds, steps = (
            column[order].reshape(len(ranks), count).T
            for column in (spans.start_ns, spans.end_ns, spans.kind, spans.step)
        )
        if np.any(kinds != kinds[:, :1]) or np.any(steps != steps[:, :1]):
            return None
        own = np.maximum(begins[1:] - ends[:-1], 0).astype(np.float64)
        lasted = float(np.median(begins[-1] - ends[0]))
        return cls(own, steps[1:, 0].astype(np.int64), tuple(ranks.tolist()), lasted)

    def without_ranks(self, ranks: Sequence[int], first: int, last: int) -> float:
        """Returns the seconds of a step saved where ``ranks`` are as quick as their like.

        It is the mean of the steps from ``first`` to ``last``. Each keeps how its work varies.
        """
        during = (self.steps >= first) & (self.steps <= last)
        slow = np.isin(self.ranks, list(ranks))
        own = self.own[during]
        if not len(own) or slow.all():
            return 0.0
        usual = float(np.median(own[:, ~slow].sum(axis=0)))
        cured = np.where(slow, own * np.minimum(1.0, usual / own.sum(axis=0).clip(1.0)), own)
        saved = own.max(axis=1).sum() - cured.max(axis=1).sum()
        return float(saved) / 1e9 / len(np.unique(self.steps[during]))
