"""Groups and sharding of any rank of a big job, in one process over torch's fake backend."""

from __future__ import annotations

import pytest
import torch
from torch.distributed.tensor.debug import CommDebugMode

from serried.runtime.emulate import EmulatedStage
from serried.runtime.model import Stage
from serried.runtime.parallelize import parallelize, parameter_bytes
from serried.runtime.settings import Emulated, ModelSizes, TrainSettings
from serried.span import ActionKind
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


@pytest.mark.parametrize(
    ("settings", "rank", "groups"),
    [
        (
            TrainSettings(world_size=16, tp=2, pp=4),
            5,
            {"pp": (1, 5, 9, 13), "dp": (5, 7), "tp": (4, 5)},
        ),
        (
            TrainSettings(world_size=16, tp=2, pp=4, framework="internlm"),
            5,
            {"pp": (1, 3, 5, 7), "dp": (5, 13), "tp": (4, 5)},
        ),
        (
            TrainSettings(world_size=16, tp=2, pp=4, options={"use_tp_pp_dp_mapping": "true"}),
            5,
            {"pp": (1, 3, 5, 7), "dp": (5, 13), "tp": (4, 5)},
        ),
        (
            TrainSettings(world_size=16, tp=2, pp=4, order="dp-tp-cp-ep-pp"),
            5,
            {"pp": (1, 5, 9, 13), "dp": (4, 5), "tp": (5, 7)},
        ),
        (
            TrainSettings(world_size=4, framework="internlm"),
            3,
            {"pp": (3,), "dp": (0, 1, 2, 3), "tp": (3,)},
        ),
    ],
)
def test_a_rank_s_groups_are_its_framework_s(
    settings: TrainSettings, rank: int, groups: dict[str, tuple[int, ...]]
) -> None:
    with as_rank(rank, settings) as made:
        assert {axis: made.members(axis) for axis in groups} == groups
        assert {axis: made.size(axis) for axis in groups} == {a: len(r) for a, r in groups.items()}
        assert {axis: made.coordinate(axis) for axis in groups} == {
            axis: ranks.index(rank) for axis, ranks in groups.items()
        }


def test_a_layer_all_reduces_twice_forward_and_twice_backward() -> None:
    with as_rank(0, TrainSettings(world_size=2, tp=2)) as groups:
        stage = Stage(DEEP, stage=1, num_stages=3)
        parallelize(stage, groups)
        assert collectives(stage) == (2 * len(stage.layers), 2 * len(stage.layers))


def test_an_emulated_layer_all_reduces_as_often_as_a_real_one() -> None:
    times = Emulated(forward_ms=0.01, backward_ms=0.01)
    with as_rank(0, TrainSettings(world_size=2, tp=2)) as groups:
        stage = EmulatedStage(DEEP, times, stage=1, num_stages=3)
        parallelize(stage, groups)
        stage.tp_group = groups.group("tp")
        assert collectives(stage) == (2 * len(stage.layers), 2 * len(stage.layers))


@pytest.mark.parametrize("tp", [1, 2, 4])
def test_a_rank_holds_its_share_of_every_matrix(tp: int) -> None:
    whole = Stage(SIZES, stage=0, num_stages=1)
    norms = sum(p.numel() * 4 for name, p in whole.named_parameters() if "norm" in name)
    matrices = parameter_bytes(whole) - norms
    with as_rank(tp - 1, TrainSettings(world_size=tp, tp=tp, model=SIZES)) as groups:
        stage = Stage(SIZES, stage=0, num_stages=1)
        parallelize(stage, groups)
        assert parameter_bytes(stage) == matrices // tp + norms
