"""PyTorch's runtime takes the CSV of every schedule whose microbatches flow one way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings

from serried.pipeline import ENTRIES, Request, Schedule, generate, to_csv
from tests.pipeline.strategies import schedules as drawn

schedules = pytest.importorskip("torch.distributed.pipelining.schedules")
ONE_WAY = sorted(set(ENTRIES) - {"chimera", "dualpipe"})


class Stage:
    """Is as much of a stage as a schedule looks at before it runs."""

    has_backward = True
    submod = None
    group = None
    device = "cpu"

    def __init__(self, index: int, num_stages: int, num_ranks: int) -> None:
        self.stage_index, self.num_stages = index, num_stages
        self.group_rank, self.group_size = 0, num_ranks
        self.is_first, self.is_last = index == 0, index == num_stages - 1
        self.stage_index_to_group_rank: dict[int, int] = {}


def runtime_of(schedule: Schedule) -> Any:
    num_stages = schedule.placement.num_stages
    return schedules._PipelineScheduleRuntime(
        [
            Stage(stage, num_stages, schedule.num_ranks)
            for _, stage in schedule.placement.stages_of(0)
        ],
        n_microbatches=schedule.num_microbatches,
    )


@settings(deadline=None)
@given(drawn())
def test_pytorch_s_runtime_takes_whatever_is_drawn(case: tuple[Schedule, Request]) -> None:
    schedule, _ = case
    assume(schedule.name in ONE_WAY)
    runtime = runtime_of(schedule)
    order = {
        rank: [schedules._Action.from_str(text) for text in schedule.texts(rank)]
        for rank in range(schedule.num_ranks)
    }
    runtime._prepare_schedule_with_comms(order)
    lowered = runtime.pipeline_order_with_comms
    for rank in range(schedule.num_ranks):
        computed = [str(action) for action in lowered[rank] if action.is_compute_op]
        assert computed == schedule.texts(rank)


@pytest.mark.parametrize("name", ONE_WAY)
def test_pytorch_loads_our_csv_and_lowers_it_to_messages(name: str, tmp_path: Path) -> None:
    schedule = generate(name, Request(2, 4))
    path = tmp_path / "plan.csv"
    path.write_text(to_csv(schedule), encoding="utf-8")
    runtime = runtime_of(schedule)
    runtime._load_csv(str(path))
    assert runtime.stage_index_to_group_rank == dict(enumerate(schedule.placement.rank_of[0]))
    lowered = runtime.pipeline_order_with_comms
    for rank in range(2):
        computed = [str(action) for action in lowered[rank] if action.is_compute_op]
        assert computed == schedule.texts(rank)
