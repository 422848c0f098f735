"""The stragglers of a Trace: slow ranks first, then stages, data, and what concerns everybody.

One model of the job stands behind this and the verdict of ``serried trace stats``: who is slow,
which stage, and what a step was spent on are asked of the same modules of ``trace.measure``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.steps.of_trace import steps_of_trace
from serried.diagnose.steps.table import JobSteps
from serried.diagnose.stragglers.cost import Costing
from serried.diagnose.stragglers.course import Course
from serried.diagnose.stragglers.garbage import Garbage
from serried.diagnose.stragglers.lengths import length_causes
from serried.diagnose.stragglers.links import link_causes
from serried.diagnose.stragglers.meetings import Meetings
from serried.diagnose.stragglers.naming import ranks_at
from serried.diagnose.stragglers.pauses import pause_causes
from serried.diagnose.stragglers.slow import slow_spells
from serried.diagnose.stragglers.told import spell_causes
from serried.diagnose.stragglers.turns import turn_causes
from serried.errors import listed
from serried.finding import said
from serried.trace.measure.ranks.period import step_periods
from serried.trace.measure.ranks.slow_stage import SlowStage, slow_stage
from serried.trace.measure.ranks.slowest import paces
from serried.trace.measure.statistics import measure
from serried.trace.measure.verdict import WORTH_SAYING
from serried.trace.measure.what_if import what_if
from serried.trace.model.trace import Trace
from serried.units import duration_text

_MOST_ASKED = 64
"""The most ranks of which shares of the slowdown are asked, by a replay for each."""


def trace_causes(trace: Trace) -> Iterator[Cause]:
    """Yields who and what makes a run slower than it could be, slow ranks first."""
    stats = measure(trace)
    steps = np.array([each.step for each in stats.steps], dtype=np.int32)
    job = steps_of_trace(trace, steps)
    if job is None:
        return
    costing, meetings = Costing.of(trace, steps), Meetings.of(trace)
    garbage = Garbage.of(trace, job)
    collecting = list(garbage.causes()) if garbage is not None else []
    yield from collecting
    spells = [
        each
        for each in slow_spells(job)
        if not collecting or garbage is None or not garbage.explains(each)
    ]
    yield from spell_causes(job, spells, costing or meetings)
    told = {rank for spell in spells for rank in spell.ranks}
    told |= {rank for cause in collecting for rank in cause.ranks or ()}
    late = list[Cause]()
    if all(cause.ranks for cause in collecting):
        late += pause_causes(job, told)
    others = list(link_causes(trace, job, costing))
    if not spells:
        others += length_causes(trace, steps, costing)
    yield from others
    counted = np.array([each.step for each in stats.counted], dtype=np.int32)
    stage = None
    if trace.has_pipeline and not trace.waits_inside:
        stage = slow_stage(trace, counted, paces(trace, steps))
    if stage is not None and not told & {*stage.ranks}:
        yield _of_stage(job, stage, costing)
    if not trace.has_pipeline and not told:
        yield from _of_data(trace, steps)
    if not (told or collecting or others or stage is not None):
        late = _late_by_turns(trace, job, late)
    yield from late


def _late_by_turns(trace: Trace, job: JobSteps, pauses: list[Cause]) -> list[Cause]:
    """Returns what tells more of who is late now and then: pauses, or a replay of all that varies.

    Pauses at even intervals are garbage collections, and those of one rank name it.
    """
    course = Course.of(trace, job.steps)
    turns = [] if course is None else list(turn_causes(job, course))
    named = {rank for each in turns for rank in each.ranks or ()}
    if any(each.kind == "garbage_collection" or {*(each.ranks or ())} - named for each in pauses):
        return pauses
    most = max((each.cost or 0.0 for each in pauses), default=0.0)
    return turns if any((each.cost or 0.0) > most for each in turns) else pauses


def _of_stage(job: JobSteps, stage: SlowStage, costing: Costing | None) -> Cause:
    period = float(np.median(job.period_ns))
    saved = 0.0
    chain = [
        said(
            "it computes {time} a step, the other stages {others}",
            time=duration_text(stage.compute_ns),
            others=duration_text(stage.others_ns),
        )
    ]
    is_last = max(stage.stages) == max(max(each.stages) for each in job.alike)
    if costing is not None:
        saved = costing.without_stage(stage.ranks)
        if costing.replay.ranks.size <= _MOST_ASKED:
            found = what_if(costing.replay)
            if is_last and found.last_stage_share is not None:
                chain.append(
                    said(
                        "replayed with ideal durations the steps are {slowdown:.3f} times as long "
                        "as they could be (S); the last stage explains {share:.1%} of that (M_S), "
                        "the slowest 3% of ranks {workers:.1%} (M_W)",
                        slowdown=found.slowdown,
                        share=found.last_stage_share,
                        workers=found.slowest_share or 0.0,
                    )
                )
    # Without a replay: a stage that all others wait for in every microbatch costs what it has more.
    cost = saved if saved > 0 else (stage.compute_ns - stage.others_ns) / period
    return Cause(
        CauseClass.STRAGGLER,
        "uneven_stage",
        stage.ranks,
        said(
            "stage {stages} ({who}) computes {slower:.1%} longer than the other stages and costs "
            "{cost:.1%} of each step: it has more to do, as the last stage has the loss"
            if is_last
            else "stage {stages} ({who}) computes {slower:.1%} longer than the other stages and "
            "costs {cost:.1%} of each step: it has more to do, or its device is slower",
            stages=listed(stage.stages, limit=4),
            who=ranks_at(job, stage.ranks),
            slower=stage.slower,
            cost=cost,
        ),
        confidence=0.8,
        chain=tuple(chain),
        cures=(
            said(
                "give this stage fewer layers (Megatron: --decoder-last-pipeline-num-layers, or "
                "--account-for-loss-in-pipeline-split)"
                if is_last
                else "cut the layers anew so that stages take equal time, or look at its device"
            ),
        ),
        cost=cost,
    )


def _of_data(trace: Trace, steps: np.ndarray[tuple[int], np.dtype[np.int32]]) -> Iterator[Cause]:
    periods = step_periods(trace, steps)
    if periods is None:
        return
    mean = periods.mean
    share = mean.share("data")
    if share < WORTH_SAYING:
        return
    yield Cause(
        CauseClass.DATA,
        "data_loading",
        (),
        said(
            "loading data takes {share:.1%} of each step of {step} on all ranks alike",
            share=share,
            step=duration_text(mean.period_ns),
        ),
        confidence=0.85,
        chain=(
            said(
                "{time} of each step no rank does anything else, the mean of {count} ranks",
                time=duration_text(mean.data_ns),
                count=len(periods.ranks),
            ),
        ),
        cures=(
            said(
                "give the loader more workers (num_workers), prefetch and pin memory; put the data "
                "set on faster storage, or prepare it beforehand"
            ),
        ),
        cost=share,
    )
