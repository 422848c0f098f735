"""A measured step: what one pipeline recorded in one step, as a simulation has it, beside plans.

    place 0   |--0F0--|-0F1-|     |---0B0---|     starts and ends as recorded, from the first
    place 1           |--1F0--|---1B0---|         computation on; inputs as the actions need them

Nothing is simulated: the times are the recorded ones, in nanoseconds, a million of them in a unit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.action import ActionKind, Spans
from serried.errors import InputError
from serried.pipeline import Costs, Schedule, Simulation
from serried.pipeline.dependencies import Positions, dependencies
from serried.pipeline.packed import Codes, stage_of, work
from serried.pipeline.placement import StagePlacement
from serried.pipeline.simulate import Tail
from serried.pipeline.timing import Ticks, Timing
from serried.trace.model.recorded_order import (
    RecordedOrder,
    pipeline_ranks,
    recorded_order,
    whole_pipeline,
)
from serried.trace.model.trace import Trace

NAME = "measured"
NS_PER_UNIT = 1_000_000
"""A unit of its time is a millisecond."""

Times = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MeasuredStep:
    """Holds one recorded step of one pipeline."""

    step: int
    ranks: NDArray[np.int64]
    """The global rank at each place of the pipeline."""
    simulation: Simulation
    """The step's times; the optimizer takes none, and messages are not told from other delays."""


def measured_step(trace: Trace, step: int, *, pipeline: int | None = None) -> MeasuredStep:
    """Returns a step as ``pipeline`` recorded it; from 0, its first computation, on.

    Without a number it is the first pipeline all of whose ranks have a file.

    Raises InputError for a step in which some rank of it computed nothing, for overlapped pairs,
    for stages that ran on two of its ranks, and for computations of one rank beside one another.
    """
    world = trace.job.world_size
    if pipeline is None:
        ranks = whole_pipeline(trace.layout, world, trace.ranks)
    else:
        ranks = pipeline_ranks(trace.layout, world)[pipeline]
    mine = trace.spans.where((trace.spans.step == step) & np.isin(trace.spans.rank, ranks))
    order = recorded_order(mine, step, ranks)
    if order is None:
        raise InputError(
            "step {step} of {run} cannot stand beside a plan: some rank of the pipeline {ranks} "
            "computed nothing in it, or ran pairs whose backwards were not recorded",
            step=step,
            run=trace.run,
            ranks=", ".join(map(str, ranks.tolist())),
        )
    times = [_times(mine, rank, codes, step) for rank, codes in _places(order)]
    schedule = Schedule.of(NAME, _placement(order, step), order.num_microbatches, order.codes)
    start, end = (np.concatenate(columns) for columns in zip(*times, strict=True))
    return MeasuredStep(step, ranks, _simulation(schedule, start - start.min(), end - start.min()))


def _places(order: RecordedOrder) -> list[tuple[int, Codes]]:
    return list(zip(order.ranks.tolist(), order.codes, strict=True))


def _times(spans: Spans, rank: int, codes: Codes, step: int) -> tuple[Times, Times]:
    """Returns when each action of a rank began and ended, of one in pieces the first and last."""
    mine = spans.where(spans.rank == rank)
    stage, microbatch = mine.stage.astype(np.int64), mine.microbatch.astype(np.int64)
    code = mine.kind + work(ActionKind.F, stage, microbatch) - int(ActionKind.F)
    order = np.argsort(codes)
    place = order[np.minimum(np.searchsorted(codes, code, sorter=order), len(codes) - 1)]
    is_known = codes[place] == code
    start = np.full(len(codes), np.iinfo(np.int64).max)
    end = np.full(len(codes), np.iinfo(np.int64).min)
    np.minimum.at(start, place[is_known], mine.start_ns[is_known])
    np.maximum.at(end, place[is_known], mine.end_ns[is_known])
    if (start[1:] < end[:-1]).any():
        raise InputError(
            "rank {rank} ran computations of step {step} beside one another, so they cannot "
            "stand in one row",
            rank=rank,
            step=step,
        )
    return start, end


def _placement(order: RecordedOrder, step: int) -> StagePlacement:
    rank_of = np.full(order.num_stages, -1)
    for place, codes in enumerate(order.codes):
        stages = np.unique(stage_of(codes))
        if (rank_of[stages] >= 0).any():
            raise InputError(
                "stage {stage} ran on two ranks of one pipeline in step {step}; what flows both "
                "ways cannot be shown as measured",
                stage=int(stages[rank_of[stages] >= 0][0]),
                step=step,
            )
        rank_of[stages] = place
    if (rank_of < 0).any():
        raise InputError(
            "stage {stage} computed nothing in step {step}",
            stage=int(np.flatnonzero(rank_of < 0)[0]),
            step=step,
        )
    return StagePlacement(rank_of[None, :])


def _simulation(schedule: Schedule, start: Times, end: Times) -> Simulation:
    needs = dependencies(schedule, Positions.of(schedule))
    none = np.zeros_like(start)
    timing = Timing(Ticks(NS_PER_UNIT), end - start, travel=none, early=none, held=none)
    done = end[schedule.first[1:] - 1]
    source = np.where(needs.is_remote, needs.producer, -1)
    return Simulation(schedule, Costs(), timing, start, end, source, Tail((), done, done, done))
