"""The stragglers of a long recording: since when over all its steps, the rest in its last block."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from serried.diagnose.diagnosis import Cause
from serried.diagnose.steps.long_run import LongRun
from serried.diagnose.steps.table import JobSteps
from serried.diagnose.stragglers.cost import MOST_SPANS, Costing
from serried.diagnose.stragglers.of_trace import trace_causes
from serried.diagnose.stragglers.slow import SlowSpell, slow_spells
from serried.diagnose.stragglers.told import spell_causes

MOST_REPLAYED = 64
"""Steps that are replayed to tell what a slow rank costs."""


def long_run_causes(long: LongRun) -> Iterator[Cause]:
    """Yields who is slow, and since when; where nobody is, what the last block shows."""
    job = long.table()
    spells = slow_spells(job) if job is not None else []
    if job is None or not spells:
        yield from trace_causes(long.latest())
        return
    yield from spell_causes(job, spells, _costing(long, job, spells[0]))


def _costing(long: LongRun, job: JobSteps, spell: SlowSpell) -> Costing | None:
    """Returns what replays some steps in the middle of the costliest spell."""
    first, last = int(job.steps[spell.first]), int(job.steps[spell.last - 1]) + job.width - 1
    steps = long.steps[(long.steps >= first) & (long.steps <= last)]
    per_step = max(1, long.run.num_spans // max(1, len(long.steps)))
    count = min(len(steps), MOST_REPLAYED, max(1, MOST_SPANS // per_step))
    begin = (len(steps) - count) // 2
    chosen = steps[begin : begin + count]
    trace = long.trace(int(chosen[0]), int(chosen[-1]))
    return Costing.of(trace, chosen.astype(np.int32))
