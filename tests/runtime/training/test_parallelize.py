"""How a stage is cut and shared out, on any rank of a big job over torch's fake backend."""

from __future__ import annotations

import pytest
import torch
from torch.distributed.tensor.debug import CommDebugMode

from serried.action import ActionKind
from serried.runtime.job.settings import Emulated, ModelSizes, TrainSettings
from serried.runtime.model.emulate import EmulatedStage
from serried.runtime.model.model import Stage
from serried.runtime.training.parallelize import parallelize, parameter_bytes, parts_of
from tests.runtime.fake_ranks import as_rank

SIZES = ModelSizes(layers=2, hidden=32, heads=4, seq_len=16)
DEEP = ModelSizes(layers=6, hidden=32, heads=4, seq_len=16)
"""Cut in three, its middle stage holds two layers, neither embedding nor output."""


def collectives(stage: Stage) -> tuple[int, int]:
    """Returns how many collectives a forward and a backward of a middle stage run."""
    x = torch.zeros(1, DEEP.seq_len, DEEP.hidden, requires_grad=True)
    with CommDebugMode() as forward:  # type: ignore[no-untyped-call]
        out = stage(x)
        _emulate(stage, ActionKind.F)
    with CommDebugMode() as backward:  # type: ignore[no-untyped-call]
        out.sum().backward()
        _emulate(stage, ActionKind.B)
    return forward.get_total_counts(), backward.get_total_counts()


def _emulate(stage: Stage, kind: ActionKind) -> None:
    if isinstance(stage, EmulatedStage):
        stage.take(kind, start_ns=0)


def test_a_layer_all_reduces_twice_forward_and_twice_backward() -> None:
    settings = TrainSettings(world_size=2, tp=2)
    with as_rank(0, settings) as mesh:
        stage = Stage(DEEP, stage=1, num_stages=3)
        parallelize(stage, settings, mesh)
        assert collectives(stage) == (2 * len(stage.layers), 2 * len(stage.layers))


def test_an_emulated_layer_all_reduces_as_often_as_a_real_one() -> None:
    times = Emulated(forward_ms=0.01, backward_ms=0.01)
    settings = TrainSettings(world_size=2, tp=2)
    with as_rank(0, settings) as mesh:
        stage = EmulatedStage(DEEP, times, stage=1, num_stages=3)
        parallelize(stage, settings, mesh)
        stage.tp_group = mesh.group("tp")
        assert collectives(stage) == (2 * len(stage.layers), 2 * len(stage.layers))


def test_sequence_parallelism_cuts_the_stream_in_place_of_whole_sums() -> None:
    settings = TrainSettings(world_size=2, tp=2, sequence_parallel=True)
    with as_rank(0, settings) as mesh:
        stage = Stage(DEEP, stage=1, num_stages=3)
        parallelize(stage, settings, mesh)
        x = torch.zeros(1, DEEP.seq_len // 2, DEEP.hidden)
        with CommDebugMode() as forward:  # type: ignore[no-untyped-call]
            assert stage(x).shape == x.shape
    layers = len(stage.layers)
    assert {str(name): count for name, count in forward.get_comm_counts().items()} == {
        "c10d_functional.all_gather_into_tensor": 2 * layers,
        "c10d_functional.reduce_scatter_tensor": 2 * layers,
    }


@pytest.mark.parametrize("tp", [1, 2, 4])
def test_a_rank_holds_its_share_of_every_matrix(tp: int) -> None:
    whole = Stage(SIZES, stage=0, num_stages=1)
    norms = sum(p.numel() * 4 for name, p in whole.named_parameters() if "norm" in name)
    matrices = parameter_bytes(whole) - norms
    settings = TrainSettings(world_size=tp, tp=tp, model=SIZES)
    with as_rank(tp - 1, settings) as mesh:
        stage = Stage(SIZES, stage=0, num_stages=1)
        parallelize(stage, settings, mesh)
        assert parameter_bytes(stage) == matrices // tp + norms


@pytest.mark.parametrize(
    ("options", "copies"),
    [({}, 1), ({"zero": 1}, 4), ({"zero": 3}, 4), ({"zero": 2, "zero_shard": 2}, 2)],
)
def test_zero_leaves_a_rank_its_share_of_every_parameter(
    options: dict[str, int], copies: int
) -> None:
    whole = parameter_bytes(Stage(SIZES, stage=0, num_stages=1))
    settings = TrainSettings(world_size=4, model=SIZES, **options)  # type: ignore[arg-type]
    with as_rank(1, settings) as mesh:
        stage = Stage(SIZES, stage=0, num_stages=1)
        parallelize(stage, settings, mesh)
        assert parameter_bytes(stage) == whole // copies


def test_ranks_of_an_ep_group_hold_different_experts_and_the_same_router() -> None:
    sizes = ModelSizes(layers=1, hidden=32, heads=4, seq_len=16, experts=4)
    settings = TrainSettings(world_size=2, model=sizes, ep=2)
    held = []
    for rank in range(2):
        with as_rank(rank, settings) as mesh:
            stage = Stage(sizes, parts_of(settings, mesh), stage=0, num_stages=1)
            held.append({n for n, _ in stage.named_parameters() if "feed_forward" in n})
    router = {"layers.0.feed_forward.router.weight"}
    assert held[0] & held[1] == router
    assert {name.split(".")[4] for name in held[1] - router} == {"2", "3"}
