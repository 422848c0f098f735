"""The trainer's own exchanges are recorded, so that a step's time is explained."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from serried.action import COMPUTE, Span
from serried.runtime.job.settings import ModelSizes, TrainSettings
from serried.trace.merge.in_memory import merge
from tests.runtime.many_runs import run_many

LAYERS, STEPS, M = 2, 2, 2
BASE = TrainSettings(
    world_size=2,
    steps=STEPS,
    microbatches=M,
    global_batch_size=2 * M,
    model=ModelSizes(layers=LAYERS, hidden=16, heads=2, seq_len=16),
    device="cpu",
)
RUNS = {"tp": replace(BASE, tp=2), "zero 3": replace(BASE, zero=3)}


@pytest.fixture(scope="module")
def spans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Span]]:
    """What rank 0 recorded of each run, on one launch of two ranks."""
    folder = tmp_path_factory.mktemp("runs")
    runs = [replace(run, trace_dir=folder / name) for name, run in RUNS.items()]
    for run in runs:
        assert run.trace_dir is not None
        run.trace_dir.mkdir()
    assert [ran.error for ran in run_many(runs)] == ["", ""]
    return {
        name: [span for span in merge([folder / name]).spans if span.rank == 0] for name in RUNS
    }


def inside(spans: list[Span], kind: str) -> Counter[str]:
    """Returns in what computations the exchanges of ``kind`` lie, and which lie in none."""
    found: Counter[str] = Counter()
    around = [s for s in spans if s.action.kind in COMPUTE or s.action.kind.name == "OPTIMIZER"]
    for span in spans:
        if span.action.kind.name == kind:
            outer = [
                s.action.kind.name
                for s in around
                if s.start_ns <= span.start_ns and span.end_ns <= s.end_ns
            ]
            found[outer[0] if outer else "none"] += 1
    return found


def test_tensor_parallel_ranks_reduce_twice_a_layer_each_way(spans: dict[str, list[Span]]) -> None:
    reduces = inside(spans["tp"], "ALL_REDUCE")
    times = STEPS * M
    # Forward: two of each layer and the embedding's; backward: two of each layer and the output's.
    assert reduces["F"] == reduces["B"] == (2 * LAYERS + 1) * times


def test_the_batch_is_broadcast_in_a_tensor_parallel_group(spans: dict[str, list[Span]]) -> None:
    assert inside(spans["tp"], "BROADCAST")["none"] >= STEPS


def test_the_gradients_norm_is_reduced_in_the_optimizer_s_time(
    spans: dict[str, list[Span]],
) -> None:
    for name in RUNS:
        assert inside(spans[name], "ALL_REDUCE")["OPTIMIZER"] == STEPS


def test_zero_3_gathers_in_a_backward_what_the_forward_let_go(
    spans: dict[str, list[Span]],
) -> None:
    # Every layer and what is left of the stage: each is asked for, and then waited for.
    gathers = inside(spans["zero 3"], "ALL_GATHER")
    assert gathers["B"] == 2 * (LAYERS + 1) * STEPS * M


def test_an_exchange_belongs_to_the_microbatch_that_it_is_for(
    spans: dict[str, list[Span]],
) -> None:
    for span in spans["tp"]:
        if span.action.kind.name == "ALL_REDUCE" and span.action.stage == 0:
            assert span.action.microbatch in range(M)
