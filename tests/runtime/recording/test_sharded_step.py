"""What real ranks gather and reduce under ZeRO is what was planned, in order and bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from serried.plan.recorded_step import beside, first_difference, rank_steps, weight_moves
from serried.plan.step_plan import read_step_plan
from serried.runtime.job.planned import planned_step, step_plan, weight_groups
from serried.runtime.job.settings import ModelSizes, TrainSettings
from serried.trace.merge.in_memory import merge
from serried.trace.model.record import RankRecord, file_name, read_rank_record
from tests.runtime.many_runs import run_many
from tests.soaked import launched, rows

# Three microbatches show what each of them repeats.
MODEL = ModelSizes(layers=2, hidden=24, heads=2, seq_len=16)
TWO = TrainSettings(
    world_size=2, steps=2, microbatches=3, global_batch_size=6, model=MODEL, device="cpu"
)
FOUR = replace(TWO, world_size=4, global_batch_size=12)
RUNS = {
    **{f"stage {stage}": replace(TWO, zero=stage) for stage in range(4)},
    "one microbatch": replace(TWO, zero=3, microbatches=1, global_batch_size=2),
    "bfloat16": replace(TWO, zero=3, dtype="bfloat16"),
    "four ranks": replace(FOUR, zero=3),
    "hybrid": replace(FOUR, zero=3, zero_shard=2),
    "hybrid, kept": replace(FOUR, zero=2, zero_shard=2),
    "tp": replace(FOUR, zero=1, tp=2, global_batch_size=6),
    "tp, sharded": replace(FOUR, zero=3, tp=2, global_batch_size=6),
    "cp": replace(FOUR, zero=3, cp=2, global_batch_size=6),
    "recomputed": replace(TWO, zero=3, recompute="full"),
    "pp": replace(FOUR, zero=1, pp=2, global_batch_size=6),
}
SOAKED = {"four ranks", "hybrid, kept", "tp", "cp"}


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where each run's record lies, all of one launch of four ranks."""
    where = tmp_path_factory.mktemp("runs")
    chosen = launched(request, RUNS, SOAKED)
    runs = [replace(run, trace_dir=where / name) for name, run in chosen.items()]
    for run in runs:
        assert run.trace_dir is not None
        run.trace_dir.mkdir()
    assert [ran.error for ran in run_many(runs)] == [""] * len(runs)
    return where


def record(folder: Path, name: str, rank: int) -> RankRecord:
    return read_rank_record(folder / name / file_name(rank))


@pytest.mark.parametrize("name", rows(RUNS, SOAKED))
def test_every_rank_gathers_and_reduces_what_was_planned(folder: Path, name: str) -> None:
    settings = RUNS[name]
    plan = read_step_plan(folder / name)
    assert plan == step_plan(settings)
    for rank in range(settings.world_size):
        found = rank_steps(plan, record(folder, name, rank))
        assert [each.step for each in found] == [*range(settings.steps)]
        for each in found:
            assert each.rows, "a step without any collective would agree with anything"
            assert str(each.difference) == "None"


def test_stage_3_gathers_again_in_every_backward(folder: Path) -> None:
    counts = {}
    for name in ("stage 1", "stage 3"):
        members = weight_groups(RUNS[name], 0)
        moves = weight_moves(record(folder, name, 0), 1, members)
        counts[name] = sum(move.kind.name == "ALL_GATHER" for move in moves)
    units = 1 + MODEL.layers
    assert counts == {"stage 1": units, "stage 3": units * (1 + TWO.microbatches)}


def test_another_plan_is_told_apart_at_its_first_collective_that_differs(folder: Path) -> None:
    members = weight_groups(RUNS["stage 3"], 0)
    moves = weight_moves(record(folder, "stage 3", 0), 0, members)
    kept = beside(planned_step(RUNS["stage 2"]).moves, moves, members)
    told = str(first_difference(kept))
    assert told.startswith("collective 3 differs: reduce-scatter ")
    assert "and the rank recorded all-gather " in told
    narrow = beside(planned_step(RUNS["bfloat16"]).moves, moves, members)
    assert str(first_difference(narrow)).startswith("collective 0 differs: all-gather ")
    short = beside(planned_step(RUNS["stage 3"]).moves, moves[:-1], members)
    assert "is missing: reduce-scatter" in str(first_difference(short))
    long = beside(planned_step(RUNS["stage 3"]).moves, [*moves, moves[0]], members)
    assert "is not planned: the rank recorded all-gather" in str(first_difference(long))


def test_moves_are_parts_of_spans_and_spans_read_as_before(folder: Path) -> None:
    found = record(folder, "stage 3", 0)
    kinds = {str(found.spans[move.span].action.kind.name) for move in found.moves}
    assert kinds >= {"ALL_GATHER", "REDUCE_GRAD"}
    (folder / "stage 3" / "rank-00000.traffic").rename(folder / "aside")
    alone = record(folder, "stage 3", 0)
    (folder / "aside").rename(folder / "stage 3" / "rank-00000.traffic")
    assert (alone.moves, len(alone.spans)) == ((), len(found.spans))
    assert len(merge([folder / "stage 3"]).spans) == 2 * len(found.spans)
