"""DeepSpeed's ZeRO 1 and 3 on two CPU ranks: what it gathers and reduces is recorded."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn

import serried
from serried.runtime.recording import api as recorder_doors
from serried.trace.merge.in_memory import merge
from serried.trace.model.trace import Trace
from tests.runtime.rank_group import run_ranks

pytest.importorskip(
    "deepspeed",
    reason="DeepSpeed is missing: pip install 'serried[examples]'",
    exc_type=ImportError,
)

STEPS = 2


def zero(folder: Path) -> dict[str, Any]:
    """Trains two steps at each stage, recorded and not, and tells the losses."""
    os.environ.update(RANK=str(dist.get_rank()), LOCAL_RANK=str(dist.get_rank()))
    os.environ.update(WORLD_SIZE=str(dist.get_world_size()))
    import deepspeed

    # Its reduction through shared memory would be compiled first, for a minute.
    sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None  # type: ignore[attr-defined]
    deepspeed.init_distributed("gloo", auto_mpi_discovery=False)
    losses = {}
    for stage in (1, 3):
        for recorded in (False, True):
            where = folder / f"zero{stage}" if recorded else None
            losses[f"{stage}, {recorded}"] = trained(deepspeed, stage, where)
    return losses


def trained(deepspeed: Any, stage: int, folder: Path | None) -> list[float]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
    config = {
        "train_micro_batch_size_per_gpu": 4,
        "zero_optimization": {"stage": stage, "stage3_param_persistence_threshold": 0},
    }
    engine, *_ = deepspeed.initialize(
        model=model, optimizer=torch.optim.AdamW(model.parameters(), lr=0.01), config=config
    )
    torch.manual_seed(dist.get_rank())
    losses = []
    for batch in serried.record([torch.randn(4, 64) for _ in range(STEPS)], folder):
        loss = engine(batch).pow(2).mean()
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
    recorder_doors.finish()
    engine.destroy()
    return losses


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("deepspeed")
    return made


@pytest.fixture(scope="module")
def losses(folder: Path) -> list[dict[str, Any]]:
    return run_ranks(zero, 2, folder, folder)


def kinds(trace: Trace) -> Counter[str]:
    """Returns how often each kind stands on rank 0."""
    return Counter(span.action.kind.name for span in trace.spans if span.rank == 0)


def inside(trace: Trace, outer: str) -> Counter[str]:
    """Returns the kinds of rank 0's spans that lie within one of kind ``outer``."""
    spans = [span for span in trace.spans if span.rank == 0]
    around = [(s.start_ns, s.end_ns) for s in spans if s.action.kind.name == outer]
    return Counter(
        s.action.kind.name
        for s in spans
        if s.action.kind.name != outer
        and any(start <= s.start_ns and s.end_ns <= end for start, end in around)
    )


def test_zero_1_reduces_gradients_and_gathers_new_weights(losses: object, folder: Path) -> None:
    trace = merge([folder / "zero1"])
    found = kinds(trace)
    assert trace.job.framework == "deepspeed"
    assert found["F"] == found["B"] == found["OPTIMIZER"] == found["REDUCE_GRAD"] == STEPS
    assert found["ALL_GATHER"] >= STEPS
    assert found["ALL_REDUCE"] >= STEPS  # the gradients' norm
    assert inside(trace, "F")["ALL_GATHER"] == 0


def test_zero_3_gathers_weights_for_forward_and_backward(losses: object, folder: Path) -> None:
    trace = merge([folder / "zero3"])
    found = kinds(trace)
    assert inside(trace, "F")["ALL_GATHER"] >= STEPS
    assert inside(trace, "B")["ALL_GATHER"] >= 1
    assert found["IN_FLIGHT"] == found["ALL_GATHER"]
    assert found["REDUCE_GRAD"] + found["REDUCE_SCATTER"] >= STEPS


def test_a_recording_changes_no_loss(losses: list[dict[str, Any]]) -> None:
    for each in losses:
        assert each["1, True"] == each["1, False"]
        assert each["3, True"] == each["3, False"]
