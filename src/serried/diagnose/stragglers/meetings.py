"""What it costs that ranks do not come to their exchanges together, where all meet in each of them.

    rank 0   |  own 9  |.....|  own 12     |        each exchange begins for all when the last has
    rank 1   |  own 14       |  own 10  |..|        come: 14 + 12, and 13 less in each if ...

Between two exchanges each rank works on its own, as long as from the end of one to the beginning of
the next. Were a slow rank as quick as its like, another would come last, for their work varies too:
what the others wait for it is more than it costs. And where now this rank is last and now that one,
nobody is slow, and all wait all the same.

Ranks are compared by times of their own clocks alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.action import EXCHANGES
from serried.diagnose.diagnosis import Cause, CauseClass
from serried.finding import said
from serried.trace.model.trace import Trace
from serried.units import duration_text

WORTH_SAYING = 0.05
"""The share of a step that unequal work must cost for it to be told."""
LEAST_STEPS = 5
_NOBODYS = 1.3
"""A rank that is last this many times as often as the mean rank, and chance adds to it, may be
slow."""

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

    @property
    def scattered(self) -> float:
        """The share of the time that is lost since not all come at once, on the mean of each."""
        lost = self.own.max(axis=1) - self.own.mean(axis=1)
        return float(lost.sum()) / self.lasted if self.lasted > 0 else 0.0


def scatter_causes(meetings: Meetings) -> Iterator[Cause]:
    """Yields that ranks wait for one another by turns, where that costs much and nobody is slow."""
    cost, own = meetings.scattered, meetings.own
    lost = own.max(axis=1) - own.mean(axis=1)
    if cost < WORTH_SAYING or len(np.unique(meetings.steps)) < LEAST_STEPS:
        return
    # What is lost counts for who is last: exchanges to which all come at once have no last one.
    share = np.bincount(own.argmax(axis=1), weights=lost, minlength=own.shape[1]) / lost.sum()
    if share.max() > _NOBODYS / own.shape[1] + 1 / math.sqrt(np.count_nonzero(lost)):
        return
    yield Cause(
        CauseClass.STRAGGLER,
        "jitter",
        (),
        said(
            "no rank is slow, but at each exchange another one is last and all others wait for it: "
            "{cost:.1%} of each step",
            cost=cost,
        ),
        confidence=0.7,
        chain=(
            said(
                "by times of {count} exchanges; no rank makes more than {share:.0%} of that wait, "
                "and were all as quick as their mean, an exchange would begin {length} earlier",
                count=len(own),
                share=float(share.max()),
                length=duration_text(float(lost.mean())),
            ),
        ),
        cures=(
            said(
                "look for what disturbs every rank at times: other processes on the CPUs, unpinned "
                "threads, power limits, sequences of unequal length; serried.span names what a "
                "rank does in its own time"
            ),
        ),
        cost=cost,
    )
