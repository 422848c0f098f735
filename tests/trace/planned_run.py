"""A small recorded run with the plan of its step beside it, and what its collectives moved."""

from __future__ import annotations

from pathlib import Path

from serried.action import ActionKind
from serried.plan.sharded_step import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, Moved
from serried.plan.step_plan import StagePlan, StepPlan, write_step_plan
from serried.trace.model.record import file_name, read_rank_record
from serried.trace.model.traffic import CollectiveMove, TrafficWriter
from tests.trace.recorded_run import Run

RUN = Run(pp=1, dp=2, num_microbatches=2)
BOTH = (0, 1)
GATHER = Moved(ALL_GATHER, ("shard",), 2, 32_832)
REDUCE = Moved(REDUCE_SCATTER, ("shard",), 2, 13_440)
ALONE = Moved(ALL_REDUCE, ("replicate",), 1, 6_720)
GROUPS = {"data": (BOTH,), "shard": (BOTH,), "replicate": ((0,), (1,))}
PLAN = StepPlan(2, GROUPS, (StagePlan(BOTH, (GATHER, REDUCE, ALONE)),))


def write_planned_run(folder: Path, *, short: int | None = None) -> Path:
    """Writes records, traffic and plan; rank 1 gathers too little in step ``short``."""
    RUN.write(folder)
    write_step_plan(folder, PLAN)
    for rank in BOTH:
        path = folder / file_name(rank)
        steps = read_rank_record(path).spans.step.tolist()
        traffic = TrafficWriter(path)
        for step in range(RUN.num_steps):
            less = 8 if (rank, step) == (1, short) else 0
            moves = [
                CollectiveMove(ActionKind.ALL_GATHER, BOTH, GATHER.size_bytes - less),
                CollectiveMove(ActionKind.REDUCE_SCATTER, BOTH, REDUCE.size_bytes),
            ]
            traffic.add(steps.index(step) + 1, moves)
        traffic.close()
    return folder
