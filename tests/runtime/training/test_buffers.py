"""Gradients stand in one block per type, are summed in one go, and are said where they stand."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

from serried.runtime.job.settings import ModelSizes, TrainSettings
from serried.runtime.model.model import Stage
from serried.runtime.model.precision import set_dtypes
from serried.runtime.training.buffers import GradientBuffer, make_buffers
from serried.runtime.training.parallelize import parallelize, parts_of
from tests.runtime.fake_ranks import as_rank

SIZES = ModelSizes(layers=1, hidden=32, heads=4, seq_len=16)
TWO = TrainSettings(world_size=2, model=SIZES, dp_style="buffer")


def stage_of(settings: TrainSettings) -> Stage:
    """Returns the whole model, weights drawn, in the run's types."""
    stage = Stage(settings.model, stage=0, num_stages=1)
    stage.draw_weights(0)
    set_dtypes(stage, settings)
    return stage


def backward(stage: Stage) -> None:
    """Runs one forward and backward on some bytes."""
    text = torch.arange(SIZES.seq_len + 1).expand(2, -1)
    stage.loss(stage(text[:, :-1]), text[:, 1:]).backward()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [
        ("float32", [("float32", "float32")]),
        ("bfloat16", [("bfloat16", "float32"), ("float32", "float32")]),
        ("float16", [("float16", "float16"), ("float32", "float32")]),
    ],
)
def test_a_buffer_is_kept_per_type_as_megatron_keeps_them(
    dtype: str, kept: list[tuple[str, str]]
) -> None:
    settings = replace(TWO, dtype=dtype)  # type: ignore[arg-type]
    with as_rank(0, settings) as mesh:
        reports = [b.report() for b in make_buffers(stage_of(settings), settings, mesh)]
    sizes = [sum(part.count for part in report.parts) for report in reports]
    assert [(r.parameter_dtype, r.gradient_dtype) for r in reports] == kept
    bytes_of = {"float32": 4, "float16": 2}
    assert [r.num_bytes for r in reports] == [
        size * bytes_of[r.gradient_dtype] for size, r in zip(sizes, reports, strict=True)
    ]
    total = sum(p.numel() for p in Stage(SIZES, stage=0, num_stages=1).parameters())
    assert sum(sizes) == total


def test_parameters_stand_end_to_end_the_last_first() -> None:
    with as_rank(0, TWO) as mesh:
        stage = stage_of(TWO)
        (report,) = [buffer.report() for buffer in make_buffers(stage, TWO, mesh)]
    names = [name for name, _ in stage.named_parameters()]
    assert [part.name for part in report.parts] == names[::-1]
    ends = [part.offset + part.count for part in report.parts]
    assert [part.offset for part in report.parts] == [0, *ends[:-1]]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_backward_adds_up_in_the_buffer_what_it_would_add_up_elsewhere(dtype: str) -> None:
    settings = replace(TWO, dtype=dtype)  # type: ignore[arg-type]
    plain = stage_of(settings)
    backward(plain)
    with as_rank(0, settings) as mesh:
        stage = stage_of(settings)
        buffers = make_buffers(stage, settings, mesh)
        backward(stage)
        backward(stage)
        for buffer in buffers:
            buffer.reduce()
        for (name, once), twice in zip(plain.named_parameters(), stage.parameters(), strict=True):
            assert once.grad is not None and twice.grad is not None
            torch.testing.assert_close(twice.grad.float(), 2 * once.grad.float(), msg=name)
        buffers[-1].zero()
        assert stage.norm.weight.grad is not None and not stage.norm.weight.grad.any()


def test_one_all_reduce_sums_a_whole_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    summed: list[int] = []
    settings = replace(TWO, dtype="bfloat16")
    with as_rank(0, settings) as mesh:
        buffers = make_buffers(stage_of(settings), settings, mesh)

        def all_reduce(tensor: torch.Tensor, group: dist.ProcessGroup) -> None:
            assert group is mesh.group("dp_cp")
            summed.append(tensor.numel())

        monkeypatch.setattr(dist, "all_reduce", all_reduce)
        for buffer in buffers:
            buffer.reduce()
    assert summed == [buffer.flat.numel() for buffer in buffers]


def test_gradients_of_cut_weights_are_cut_alike() -> None:
    settings = replace(TWO, world_size=4, tp=2)
    with as_rank(0, settings) as mesh:
        stage = stage_of(settings)
        parallelize(stage, settings, mesh)
        make_buffers(stage, settings, mesh)
        weight = stage.output.weight
        assert isinstance(weight, DTensor) and isinstance(weight.grad, DTensor)
        assert weight.grad.placements == weight.placements


def test_experts_have_buffers_of_their_own_over_edp() -> None:
    sizes = replace(SIZES, experts=4)
    settings = replace(TWO, world_size=4, ep=2, model=sizes)
    with as_rank(0, settings) as mesh:
        stage = Stage(sizes, parts_of(settings, mesh), stage=0, num_stages=1)
        reports = [buffer.report() for buffer in make_buffers(stage, settings, mesh)]
    assert [report.axis for report in reports] == ["dp_cp", "edp"]
    assert all("experts" in part.name for part in reports[1].parts)
    assert not any(".experts." in part.name for part in reports[0].parts)


def test_a_gradient_that_left_its_buffer_is_noticed() -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    with as_rank(0, TWO) as mesh:
        buffer = GradientBuffer(
            {"w": weight}, torch.float32, axis="dp_cp", group=mesh.group("dp_cp")
        )
        weight.grad = torch.zeros(3)
        with pytest.raises(AssertionError, match="w: gradient is not in its buffer"):
            buffer.reduce()
