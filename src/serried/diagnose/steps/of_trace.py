"""The steps of a Trace, whichever tool wrote it, as the table that stragglers are judged by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE, ActionKind, Spans
from serried.diagnose.steps.table import Alike, JobSteps, Whole
from serried.trace.measure.ranks.slowest import NOTHING, evidence_of, stages_held
from serried.trace.measure.ranks.spent import DATA, Spent, data_rows, time_spent
from serried.trace.measure.warm_up import warm_up_of
from serried.trace.model.trace import Trace


def steps_of_trace(trace: Trace, steps: NDArray[np.int32]) -> JobSteps | None:
    """Returns ``steps``, complete ones, without those of the warm-up; None where nobody computed.

    Left out is the first one recorded, too, where others are enough: when it began is not known.
    """
    job = all_steps_of_trace(trace, steps)
    if job is None:
        return None
    job = job.rows(first_usual(job.spent), len(job))
    return replace(job, alike=tuple(compared_in(trace, job, each) for each in job.alike))


def compared_in(trace: Trace, job: JobSteps, alike: Alike) -> Alike:
    """Returns by what ranks can be compared in the rows of ``job``."""
    evidence = NOTHING if trace.waits_inside else evidence_of(trace, job.spent.of([*alike.places]))
    return replace(alike, evidence=evidence)


def all_steps_of_trace(trace: Trace, steps: NDArray[np.int32]) -> JobSteps | None:
    """Returns ``steps``, complete ones; None where nobody computed in them."""
    is_counted = np.isin(trace.spans.kind, sorted(COMPUTE)) & np.isin(trace.spans.step, steps)
    compute = trace.spans.where(is_counted)
    ranks = np.unique(compute.rank).astype(np.int64)
    if not len(ranks) or not len(steps):
        return None
    mine = np.isin(trace.spans.rank, ranks)
    spans = trace.spans.where(mine)
    spent = time_spent(spans, steps, ranks, data_rows(trace)[mine])
    return JobSteps(
        ranks=ranks,
        steps=steps.astype(np.int64),
        began_ns=_begins(spans, steps) + trace.base_ns,
        spent=spent,
        alike=alike_of(trace, compute, ranks, spent),
        hosts={rank: host.name for host in trace.hosts for rank in host.ranks},
        has_pipeline=trace.has_pipeline,
        has_data=DATA in trace.names,
    )


def first_usual(spent: Spent) -> int:
    """Returns the first row that counts: behind the warm-up, and behind the first where many are.

    Nothing tells when the first step of a recording began.
    """
    lengths = spent.period.mean(axis=1)
    first = warm_up_of(lengths)
    return max(first, 1) if len(lengths) > 4 else first


def alike_of(trace: Trace, compute: Spans, ranks: Whole, spent: Spent) -> tuple[Alike, ...]:
    """Returns the ranks by the stages that they computed for in ``compute``."""
    held: dict[tuple[int, ...], list[int]] = {}
    for place, stages in enumerate(stages_held(compute, ranks)):
        held.setdefault(stages, []).append(place)
    return tuple(
        Alike(
            stages,
            tuple(places),
            NOTHING if trace.waits_inside else evidence_of(trace, spent.of(places)),
        )
        for stages, places in held.items()
    )


def _begins(spans: Spans, steps: NDArray[np.int32]) -> Whole:
    """Returns when the first span of each step began on any rank, on the trace's clock."""
    begun = np.full(len(steps), np.iinfo(np.int64).max)
    known = np.isin(spans.step, steps) & (spans.kind != ActionKind.SPAN)
    np.minimum.at(begun, np.searchsorted(steps, spans.step[known]), spans.start_ns[known])
    return begun
