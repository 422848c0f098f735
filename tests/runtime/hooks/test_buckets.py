"""DDP's buckets are timed by a process group before its own, which leaves nothing behind."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

import serried
from serried.action import ActionKind
from serried.runtime.hooks.buckets import _TimedGroup
from serried.runtime.recording import api as recorder_doors
from serried.trace.merge.in_memory import merge
from serried.trace.model.span_groups import SpanGroup
from serried.trace.model.trace import Trace
from tests.runtime.rank_group import DEVICES, run_ranks

STEPS, WORLD = 3, 3
"""Three ranks, by which nothing divides without rounding."""

WAYS: dict[str, dict[str, Any]] = {"plain": {}, "unused": {"find_unused_parameters": True}}
""""unused" tells ranks by a reduction more which parameters each has used."""


class Net(nn.Module):
    """Is a model that leaves out layers where it is told to."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])

    def forward(self, batch: torch.Tensor, num_layers: int) -> torch.Tensor:
        for i in range(num_layers):
            batch = self.layers[i](batch)
        return batch


def ddp(**options: Any) -> Any:
    """Returns a model of several buckets."""
    return DistributedDataParallel(Net(), bucket_cap_mb=0.0002, **options)


def trained(folder: Path | None, model: Any, num_layers: int = 3) -> torch.Tensor:
    """Trains on rows of the rank's own, and returns a weight."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(1 + dist.get_rank())
    for batch in serried.record([torch.randn(4, 8) for _ in range(STEPS)], folder):
        model(batch, num_layers).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    recorder_doors.finish()
    weight: torch.Tensor = model.module.layers[0].weight
    return weight.detach().clone()


def ways_of_ddp(folder: Path) -> dict[str, Any]:
    """Trains in several ways, recorded and not, and once more after a recording."""
    recorded = ddp()
    weights = trained(None, ddp()), trained(folder / "plain", recorded)
    gc.collect()
    left = sum(type(each) is _TimedGroup for each in gc.get_objects())
    trained(None, recorded)
    trained(folder / "unused", ddp(find_unused_parameters=True), num_layers=2)
    buckets = {way: counted(folder / "hooked" / way, **given) for way, given in WAYS.items()}
    return {"is equal": torch.equal(*weights), "left": left, "buckets": buckets}


def counted(folder: Path, **options: Any) -> list[int]:
    """Returns how many buckets a model has in each step, by a hook of the user's."""
    found: list[int] = []

    def hook(state: Any, bucket: Any) -> Any:
        if bucket.index() == 0:
            found.append(0)
        found[-1] += 1
        return allreduce_hook(state, bucket)

    hook.__annotations__.clear()  # those of this module are texts, which DDP does not take
    hooked = ddp(**options)
    hooked.register_comm_hook(None, hook)
    trained(folder, hooked)
    return found


class Ran(NamedTuple):
    """Is the folder of the recordings, and what each rank answered."""

    folder: Path
    answers: list[dict[str, Any]]


@pytest.fixture(scope="module", params=DEVICES)
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder: Path = tmp_path_factory.mktemp("ddp")
    return Ran(folder, run_ranks(ways_of_ddp, WORLD, folder, folder, device=request.param))


def reductions(trace: Trace) -> Counter[tuple[int, int]]:
    """Returns how many buckets each rank has in each step."""
    return Counter(
        (span.rank, span.step) for span in trace.spans if span.action.kind.name == "REDUCE_GRAD"
    )


@pytest.mark.parametrize("way", WAYS)
def test_each_bucket_is_a_reduction_and_nothing_else_is(way: str, ran: Ran) -> None:
    buckets = ran.answers[0]["buckets"][way]
    assert max(buckets) > 2
    assert reductions(merge([ran.folder / way])) == {
        (rank, step): buckets[step] for rank in range(WORLD) for step in range(STEPS)
    }


def test_a_bucket_leaves_within_its_backward(ran: Ran) -> None:
    spans = list(merge([ran.folder / "plain"]).spans)
    backwards = {(s.rank, s.step): s for s in spans if s.action.kind.name == "B"}
    for span in spans:
        if span.action.kind.name == "REDUCE_GRAD":
            around = backwards[span.rank, span.step]
            assert around.start_ns < span.start_ns < span.end_ns
            assert span.start_ns < around.end_ns


def test_a_step_s_buckets_moved_all_gradients_over_all_ranks(ran: Ran) -> None:
    trace = merge([ran.folder / "plain"])
    spans = trace.spans
    rows = spans.kind == ActionKind.REDUCE_GRAD
    groups = {trace.groups[group] for group in spans.group[rows].tolist()}
    assert groups == {SpanGroup(ActionKind.ALL_REDUCE, tuple(range(WORLD)))}
    gradients = sum(4 * each.numel() for each in Net().parameters())
    for step in range(STEPS):
        mine = rows & (spans.step == step)
        assert spans.size_bytes[mine].sum() == WORLD * gradients


def test_buckets_of_a_communication_hook_of_the_user_s_are_left_to_it(ran: Ran) -> None:
    assert not reductions(merge([ran.folder / "hooked" / "plain"]))


def test_weights_are_to_the_bit_those_of_a_run_without_a_recording(ran: Ran) -> None:
    assert all(each["is equal"] for each in ran.answers)


def test_ddp_has_its_own_group_again_after_a_recording(ran: Ran) -> None:
    assert [each["left"] for each in ran.answers] == [0] * WORLD
