"""The recorder sees what DDP, FSDP2 and torch's pipelines do on real ranks, and changes nothing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
)
from torch.nn.parallel import DistributedDataParallel

import serried
from serried.runtime import recorder_doors
from serried.trace.merge import Trace, merge
from serried.trace.pairs import pair_messages
from tests.runtime.rank_group import run_ranks

STEPS, MICROBATCHES = 2, 4
SINGLE = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
SEVERAL = {"interleaved": ScheduleInterleaved1F1B, "zero bubble": ScheduleInterleavedZeroBubble}


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))


def trained(parallel: nn.Module, folder: Path | None) -> None:
    """Trains two steps, the rank's own rows each, and records them."""
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
    torch.manual_seed(dist.get_rank())
    for batch in serried.record([torch.randn(4, 8) for _ in range(STEPS)], folder):
        parallel(batch).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    recorder_doors.finish()


def data_parallel(folder: Path) -> dict[str, Any]:
    """Trains under DDP and FSDP2, recorded and not, and tells the weights' differences."""
    weights: dict[tuple[str, bool], Any] = {}
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for recorded in (False, True):
        ddp: Any = DistributedDataParallel(model())
        trained(ddp, folder / "ddp" if recorded else None)
        weights["ddp", recorded] = ddp.module[0].weight.detach().clone()
        sharded: Any = model()
        fully_shard(sharded[2], mesh=mesh)
        fully_shard(sharded, mesh=mesh)
        trained(sharded, folder / "fsdp" if recorded else None)
        weights["fsdp", recorded] = sharded[0].weight.full_tensor().detach()
    return {
        name: torch.equal(weights[name, False], weights[name, True]) for name in ("ddp", "fsdp")
    }


def pipelines(folder: Path) -> dict[str, Any]:
    """Runs two steps of each schedule, recorded by the door for loops of one's own."""
    rank, world = dist.get_rank(), dist.get_world_size()
    for name, schedule in {**SINGLE, **SEVERAL}.items():
        chunks = 1 if name in SINGLE else 2
        stages = [
            PipelineStage(nn.Linear(8, 8), rank + world * i, world * chunks, torch.device("cpu"))
            for i in range(chunks)
        ]
        held: Any = stages if name in SEVERAL else stages[0]
        run = schedule(held, MICROBATCHES, loss_fn=nn.functional.mse_loss)
        for step in range(STEPS + 1):
            with serried.record_steps(step, 1, STEPS + 1, folder=folder / name):
                batch = (torch.randn(8, 8),) if rank == 0 else ()
                run.step(*batch, target=torch.randn(8, 8) if rank == world - 1 else None)
        recorder_doors.finish()
    return {}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("recorded")
    return made


@pytest.fixture(scope="module")
def equal(folder: Path) -> list[dict[str, Any]]:
    return run_ranks(_both, 2, folder, folder)


def _both(folder: Path) -> dict[str, Any]:
    return data_parallel(folder) | pipelines(folder)


def kinds(trace: Trace) -> dict[int, Counter[str]]:
    """Returns how often each kind stands on each rank."""
    found: dict[int, Counter[str]] = {}
    for span in trace.spans:
        found.setdefault(span.rank, Counter())[span.action.kind.name] += 1
    return found


def test_ddp_s_buckets_are_reductions_within_each_step(equal: object, folder: Path) -> None:
    trace = merge([folder / "ddp"])
    step = {"F": STEPS, "B": STEPS, "REDUCE_GRAD": STEPS, "OPTIMIZER": STEPS}
    assert kinds(trace) == {0: step, 1: step}
    assert (trace.job.framework, trace.job.sizes, trace.warnings) == ("custom", {"dp": 2}, ())
    assert trace.layout is not None


def test_fsdp_gathers_around_forward_and_backward_and_scatters_after(
    equal: object, folder: Path
) -> None:
    trace = merge([folder / "fsdp"])
    for of_rank in kinds(trace).values():
        assert of_rank["F"] == of_rank["B"] == of_rank["OPTIMIZER"] == STEPS
        assert of_rank["REDUCE_SCATTER"] == 2 * STEPS
        assert of_rank["ALL_GATHER"] >= 2 * 2 * STEPS
    assert trace.job.framework == "fsdp"


def test_weights_are_those_of_a_run_without_a_recording(equal: list[dict[str, Any]]) -> None:
    assert equal == [{"ddp": True, "fsdp": True}] * 2


@pytest.mark.parametrize("name", SINGLE)
def test_a_schedule_of_torch_s_is_recorded_by_its_actions(
    name: str, equal: object, folder: Path
) -> None:
    trace = merge([folder / name])
    once = MICROBATCHES * STEPS
    first = {"F": once, "B": once, "SEND_F": once, "RECV_B": once}
    last = {"F": once, "B": once, "SEND_B": once, "RECV_F": once}
    own = [
        {key: n for key, n in of.items() if key != "REDUCE_GRAD"} for of in kinds(trace).values()
    ]
    assert own == [first, last]
    assert trace.job.sizes == {"pp": 2, "dp": 1}
    assert {span.step for span in trace.spans} == {1, 2}
    assert {str(span.action) for span in trace.spans if span.rank == 1} >= {
        "1F0",
        "1B3",
        "1RECV_F2",
    }


@pytest.mark.parametrize("name", SINGLE)
def test_every_message_finds_its_partner(name: str, equal: object, folder: Path) -> None:
    pairs = pair_messages(merge([folder / name]).spans)
    assert len(pairs.sends) == 2 * MICROBATCHES * STEPS


def test_stages_in_a_loop_are_told_apart(equal: object, folder: Path) -> None:
    trace = merge([folder / "interleaved"])
    forwards = Counter(span.action.stage for span in trace.spans if span.action.kind.name == "F")
    assert forwards == dict.fromkeys(range(4), MICROBATCHES * STEPS)


def test_split_backwards_are_two_actions(equal: object, folder: Path) -> None:
    for of_rank in kinds(merge([folder / "zero bubble"])).values():
        assert of_rank["I"] == of_rank["W"] > 0
        assert of_rank["B"] + of_rank["I"] == of_rank["F"] == 2 * MICROBATCHES * STEPS
