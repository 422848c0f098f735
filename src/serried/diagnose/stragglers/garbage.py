"""Garbage collections that were recorded: on whom all others wait while Python collects.

rank 0   [F][gc....][B] | [F][B]             what the longest collection of each step took is
rank 1   [F][B]........ | [F][gc....][B]     the most it can cost; steps without one tell how
period   +++++          | +++++              much longer it made them
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.steps.table import JobSteps
from serried.diagnose.stragglers.naming import ranks_at
from serried.diagnose.stragglers.pauses import COLLECT_TOGETHER
from serried.diagnose.stragglers.slow import SlowSpell
from serried.finding import said
from serried.trace.measure.ranks.garbage import collecting_ns
from serried.trace.model.trace import Trace
from serried.units import duration_text

WORTH = 0.02
"""The least share of all steps that collections must cost to be told."""
_MOSTLY = 0.8
"""What part of the time one rank must have to be named for it, or of the ranks must collect in the
same steps to do so together."""
_LEAST_USUAL = 3
"""Steps without a collection from which on they tell how long one usually takes."""
_EXPLAINS = 0.6
"""The part of a slow rank's lag that its collections must be to explain it."""

Table = NDArray[np.float64]


@dataclass(frozen=True)
class Garbage:
    """Holds what ranks spent on collections, by row and rank, in nanoseconds."""

    ns: Table
    job: JobSteps

    @classmethod
    def of(cls, trace: Trace, job: JobSteps) -> Garbage | None:
        """Returns the collections of a trace; None where none was recorded."""
        found = collecting_ns(trace, job.steps, job.ranks)
        return None if found is None or not found.any() else cls(found, job)

    @property
    def held(self) -> Table:
        """The longest of each row, which the others wait for."""
        return np.asarray(self.ns.max(axis=1))

    @property
    def cost(self) -> float:
        """What they cost of all steps: the time by which steps with one are longer, at most all."""
        period = self.job.period_ns
        most = float(self.held.sum() / period.sum())
        has_one = self.held > 0
        # Who collects behind its last message holds up the others' next step.
        is_touched = has_one | np.append(False, has_one[:-1])
        if (~is_touched).sum() < _LEAST_USUAL:
            return most
        longer = period[is_touched] - np.median(period[~is_touched])
        return min(most, max(0.0, float(longer.sum() / period.sum())))

    @property
    def named(self) -> int | None:
        """The place of the rank that has nearly all of what holds others up; None without."""
        if len(self.job.ranks) < 2:
            return None
        of_ranks = np.bincount(self.ns.argmax(axis=1), self.held, minlength=len(self.job.ranks))
        at = int(np.argmax(of_ranks))
        return at if of_ranks[at] >= _MOSTLY * of_ranks.sum() and not self._is_together else None

    @property
    def _is_together(self) -> bool:
        """Whether ranks collect in the same steps."""
        share = (self.ns[self.held > 0] > 0).mean(axis=1)
        return bool(np.median(share) >= _MOSTLY)

    def explains(self, spell: SlowSpell) -> bool:
        """Tells whether a slow spell is the collections of its rank."""
        places = np.searchsorted(self.job.ranks, spell.ranks)
        mine = self.ns[spell.first : spell.last][:, places].mean()
        return bool(mine >= _EXPLAINS * spell.lag_ns)

    def causes(self) -> Iterator[Cause]:
        """Yields that collections make the job slow, of one rank or of all."""
        cost = self.cost
        if cost < WORTH:
            return
        job, held, at = self.job, self.held, self.named
        ranks = () if at is None else (int(job.ranks[at]),)
        values = {
            "count": int((held > 0).sum()),
            "total": len(job),
            "length": duration_text(float(np.median(held[held > 0]))),
            "cost": cost,
        }
        if at is not None:
            verdict = said(
                "{who} collects Python's garbage and keeps all others waiting: {length} in {count} "
                "of {total} steps, {cost:.1%} of the time in all",
                who=ranks_at(job, ranks),
                **values,
            )
        elif self._is_together:
            verdict = said(
                "all ranks collect Python's garbage in the same steps: {length} in {count} of "
                "{total} steps, {cost:.1%} of the time in all",
                **values,
            )
        else:
            verdict = said(
                "one rank or another collects Python's garbage while all others wait: {length} in "
                "{count} of {total} steps, {cost:.1%} of the time in all",
                **values,
            )
        yield Cause(
            CauseClass.STRAGGLER,
            "garbage_collection",
            ranks,
            verdict,
            confidence=0.9,
            chain=(
                said(
                    "recorded as Python began and ended to collect, on {num} of {all} ranks; the "
                    "first of these steps: {steps}",
                    num=int(self.ns.any(axis=0).sum()),
                    all=len(job.ranks),
                    steps=", ".join(map(str, job.steps[held > 0][:4].tolist())),
                ),
            ),
            cures=COLLECT_TOGETHER,
            cost=cost,
        )
