"""The recorder sees what real ranks of torch's own libraries exchange, and changes nothing."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import _functional_collectives as functional
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
)
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

import serried
from serried.action import ActionKind
from serried.runtime.recording import api as recorder_doors
from serried.trace.merge.in_memory import merge
from serried.trace.model.pairs import pair_messages
from serried.trace.model.trace import Trace
from tests.runtime.rank_group import DEVICES, run_ranks

STEPS, MICROBATCHES = 2, 4
SINGLE = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
SEVERAL = {"interleaved": ScheduleInterleaved1F1B, "zero bubble": ScheduleInterleavedZeroBubble}


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))


def trained(parallel: nn.Module, folder: Path | None) -> None:
    """Trains two steps, the rank's own rows each, and records them."""
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1, foreach=False)
    torch.manual_seed(dist.get_rank())
    for batch in serried.record([torch.randn(4, 8) for _ in range(STEPS)], folder):
        parallel(batch).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    recorder_doors.finish()


def data_parallel(folder: Path) -> dict[str, Any]:
    """Trains under DDP and FSDP2, recorded and not, and tells the weights' differences."""
    weights: dict[tuple[str, bool], Any] = {}
    mesh = init_device_mesh(torch.get_default_device().type, (dist.get_world_size(),))
    for recorded in (False, True):
        ddp: Any = DistributedDataParallel(model())
        trained(ddp, folder / "ddp" if recorded else None)
        weights["ddp", recorded] = ddp.module[0].weight.detach().clone()
        sharded: Any = model()
        fully_shard(sharded[2], mesh=mesh)
        fully_shard(sharded, mesh=mesh)
        trained(sharded, folder / "fsdp" if recorded else None)
        weights["fsdp", recorded] = sharded[0].weight.full_tensor().detach()
        plan: Any = {"0": ColwiseParallel(), "2": RowwiseParallel()}
        # With a layer before and one after, whose ranks all hold it: both directions reduce.
        cut: Any = nn.Sequential(model()[0], parallelize_module(model(), mesh, plan), model()[2])
        trained(cut, folder / "tp" if recorded else None)
        weights["tp", recorded] = cut[1][0].weight.full_tensor().detach()
    return {
        name: torch.equal(weights[name, False], weights[name, True])
        for name in ("ddp", "fsdp", "tp")
    }


def collectives(folder: Path) -> dict[str, Any]:
    """Calls collectives that block, that are waited for, and that nobody waits for."""
    everyone: Any = dist.group.WORLD
    library = dist.all_reduce, dist.Work.wait, functional.wait_tensor
    own, part, gathered = torch.ones(2), torch.empty(2), torch.empty(4)
    with serried.record_steps(0, 0, 1, folder=folder / "collectives"):
        dist.broadcast(own, 0)
        dist.all_reduce(own)
        gathering = dist.all_gather_single(gathered, own, async_op=True)
        scattering = dist.reduce_scatter_single(part, torch.ones(4), async_op=True)
        gathering.wait()
        scattering.wait()
        gathering.wait()  # is done by now
        left = dist.all_reduce(torch.ones(2), async_op=True)
        reduced = functional.all_reduce(own, "sum", everyone)
        whole = functional.all_gather_single(own.view(1, 2), 1, everyone)
        total, whole = reduced + 1, whole.clone()
    left.wait()
    recorder_doors.finish()
    return {
        "values": [each.tolist() for each in (gathered, part, whole, total)],
        "is the library's": library == (dist.all_reduce, dist.Work.wait, functional.wait_tensor),
    }


def pipelines(folder: Path) -> dict[str, Any]:
    """Runs two steps of each schedule, recorded by the door for loops of one's own."""
    rank, world = dist.get_rank(), dist.get_world_size()
    for name, schedule in {**SINGLE, **SEVERAL}.items():
        chunks = 1 if name in SINGLE else 2
        stages = [
            PipelineStage(
                nn.Linear(8, 8), rank + world * i, world * chunks, torch.get_default_device()
            )
            for i in range(chunks)
        ]
        held: Any = stages if name in SEVERAL else stages[0]
        run = schedule(held, MICROBATCHES, loss_fn=nn.functional.mse_loss)
        for step in range(STEPS + 1):
            with serried.record_steps(step, 1, STEPS + 1, folder=folder / name):
                batch = (torch.randn(8, 8),) if rank == 0 else ()
                run.step(*batch, target=torch.randn(8, 8) if rank == world - 1 else None)
        recorder_doors.finish()
    stage = PipelineStage(nn.Linear(8, 8), rank, world, torch.get_default_device())
    run = SINGLE["1f1b"](stage, MICROBATCHES, loss_fn=nn.functional.mse_loss)
    with serried.record_steps(0, 0, 1, folder=folder / "from the first step"):
        dist.barrier()
        batch = (torch.randn(8, 8),) if rank == 0 else ()
        run.step(*batch, target=torch.randn(8, 8) if rank == world - 1 else None)
    recorder_doors.finish()
    return {}


def windows(folder: Path) -> dict[str, Any]:
    """Opens a window by a signal to one rank, then another by the file, in one running loop."""
    os.environ["SERRIED_TRACE_SIGNAL"] = "USR2:2"
    heard: list[int] = []

    def ours(number: int, frame: object) -> None:
        heard.append(number)

    signal.signal(signal.SIGUSR2, ours)
    for step in serried.record(range(20), folder / "windows", accumulate=1):
        if (step, dist.get_rank()) == (2, 1):
            os.kill(os.getpid(), signal.SIGUSR2)
        if (step, dist.get_rank()) == (10, 0):
            (folder / "windows" / "steps").write_text("13:15")
        with serried.span("F", 0, 0):
            ones = torch.ones(1)
            dist.all_reduce(ones)
            ones.item()  # a GPU's ranks would begin steps that others are far from
    recorder_doors.finish()
    del os.environ["SERRIED_TRACE_SIGNAL"]
    return {"heard": len(heard), "is ours": signal.getsignal(signal.SIGUSR2) is ours}


@pytest.fixture(scope="module", params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, device: str) -> Path:
    made: Path = tmp_path_factory.mktemp("recorded")
    return made


@pytest.fixture(scope="module")
def equal(folder: Path, device: str) -> list[dict[str, Any]]:
    return run_ranks(_both, 2, folder, folder, device=device)


def _both(folder: Path) -> dict[str, Any]:
    gc.disable()  # a collection that takes long is a span of its own
    return data_parallel(folder) | pipelines(folder) | collectives(folder) | windows(folder)


def kinds(trace: Trace) -> dict[int, Counter[str]]:
    """Returns how often each kind stands on each rank."""
    found: dict[int, Counter[str]] = {}
    for span in trace.spans:
        found.setdefault(span.rank, Counter())[span.action.kind.name] += 1
    return found


def test_a_signal_to_one_rank_and_the_file_open_windows_on_all(
    equal: list[dict[str, Any]], folder: Path
) -> None:
    trace = merge([folder / "windows"])
    for rank in range(2):
        assert {span.step for span in trace.spans if span.rank == rank} == {6, 7, 13, 14}
    assert [each["heard"] for each in equal] == [0, 1]
    assert all(each["is ours"] for each in equal)


def test_ddp_s_buckets_are_reductions_and_its_waiting_for_them_is_of_its_own(
    equal: object, folder: Path
) -> None:
    trace = merge([folder / "ddp"])
    of_each = ("F", "B", "REDUCE_GRAD", "ALL_REDUCE", "OPTIMIZER")
    # The first batch is loaded before anything is hooked.
    step = {**dict.fromkeys(of_each, STEPS), "SPAN": STEPS - 1}
    assert kinds(trace) == {0: step, 1: step}
    assert trace.names == ("data",)
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
    for each in equal:
        assert {name: each[name] for name in ("ddp", "fsdp", "tp")} == {
            "ddp": True,
            "fsdp": True,
            "tp": True,
        }


def moved(trace: Trace, rank: int = 0) -> list[tuple[str, str, int]]:
    """Returns the collectives of a rank by start: kind of span, kind of collective, bytes."""
    spans = trace.spans
    rows = np.flatnonzero((spans.rank == rank) & (spans.group >= 0))
    assert {trace.groups[group].ranks for group in spans.group[rows].tolist()} == {(0, 1)}
    return [
        (
            ActionKind(int(spans.kind[row])).name,
            trace.groups[spans.group[row]].kind.name,
            int(spans.size_bytes[row]),
        )
        for row in rows.tolist()
    ]


def test_collectives_of_every_library_say_what_they_moved(equal: object, folder: Path) -> None:
    assert moved(merge([folder / "collectives"])) == [
        ("BROADCAST", "BROADCAST", 8),
        ("ALL_REDUCE", "ALL_REDUCE", 8),
        ("ALL_GATHER", "ALL_GATHER", 16),
        ("REDUCE_SCATTER", "REDUCE_SCATTER", 16),
        ("ALL_REDUCE", "ALL_REDUCE", 8),  # functional collectives from here on
        ("ALL_GATHER", "ALL_GATHER", 16),
    ]


def test_data_and_tensor_parallel_ranks_say_what_they_moved(equal: object, folder: Path) -> None:
    sharded = merge([folder / "fsdp"])
    whole = sum(4 * each.numel() for each in model().parameters())
    scattered = [size for kind, _, size in moved(sharded) if kind == "REDUCE_SCATTER"]
    assert sum(scattered) == STEPS * whole
    gathered = sum(size for _, kind, size in moved(sharded) if kind == "ALL_GATHER")
    assert gathered % whole == 0 and gathered >= STEPS * whole
    cut = moved(merge([folder / "tp"]))
    assert {(span, kind) for span, kind, _ in cut} == {("ALL_REDUCE", "ALL_REDUCE")}
    assert len(cut) == 2 * STEPS


def test_tensor_parallel_ranks_reduce_in_forward_and_in_backward(
    equal: object, folder: Path
) -> None:
    trace = merge([folder / "tp"])
    reduces = [s for s in trace.spans if s.rank == 0 and s.action.kind.name == "ALL_REDUCE"]
    assert [str(span.action) for span in reduces] == ["0ALL_REDUCE0", "0ALL_REDUCE0"] * STEPS
    for span in reduces:
        (around,) = (
            s.action.kind.name
            for s in trace.spans
            if s.rank == 0
            and s.action.kind.name in "FB"
            and s.start_ns <= span.start_ns <= span.end_ns <= s.end_ns
        )
        assert around == "FB"[reduces.index(span) % 2]
    assert kinds(trace)[0]["IN_FLIGHT"] == len(reduces)


def test_a_collective_is_timed_where_its_caller_is_held_up(equal: object, folder: Path) -> None:
    spans = [span for span in merge([folder / "collectives"]).spans if span.rank == 0]
    assert [span.action.kind.name for span in spans if span.action.kind.name != "IN_FLIGHT"] == [
        "BROADCAST",
        "ALL_REDUCE",
        "ALL_GATHER",
        "REDUCE_SCATTER",
        "ALL_REDUCE",
        "ALL_GATHER",
    ]
    waits = {span.start_ns for span in spans if span.action.kind.name != "IN_FLIGHT"}
    flights = [span for span in spans if span.action.kind.name == "IN_FLIGHT"]
    assert len(flights) == 4
    assert all(flight.end_ns in waits for flight in flights)


def test_collectives_give_what_they_gave_and_are_the_library_s_again(
    equal: list[dict[str, Any]],
) -> None:
    for each in equal:
        assert each["values"] == [[2.0] * 4, [2.0] * 2, [[2.0] * 4], [5.0] * 2]
        assert each["is the library's"]


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
    assert trace.job.num_microbatches == MICROBATCHES
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


def test_a_pipeline_recorded_from_its_first_step_has_its_own_actions_alone(
    equal: object, folder: Path
) -> None:
    trace = merge([folder / "from the first step"])
    assert trace.job.sizes == {"pp": 2, "dp": 1}
    forwards = [str(span.action) for span in trace.spans if span.action.kind.name == "F"]
    assert forwards == [f"{rank}F{number}" for rank in range(2) for number in range(MICROBATCHES)]


def test_stages_in_a_loop_are_told_apart(equal: object, folder: Path) -> None:
    trace = merge([folder / "interleaved"])
    forwards = Counter(span.action.stage for span in trace.spans if span.action.kind.name == "F")
    assert forwards == dict.fromkeys(range(4), MICROBATCHES * STEPS)


def test_split_backwards_are_two_actions(equal: object, folder: Path) -> None:
    for of_rank in kinds(merge([folder / "zero bubble"])).values():
        assert of_rank["I"] == of_rank["W"] > 0
        assert of_rank["B"] + of_rank["I"] == of_rank["F"] == 2 * MICROBATCHES * STEPS
