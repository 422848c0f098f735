"""A model of one's own learns the same in any layout, and goes on from what it saved."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import serried
from serried.errors import InputError
from serried.pipeline import Request, generate
from serried.runtime.job.checkpoints import CheckpointSettings
from serried.runtime.run.model_training import ModelSplit, ModelTraining, tied_weights
from serried.runtime.run.program import join, start
from serried.runtime.stages.cut import cut
from serried.runtime.training.data import SampleOrder
from tests.runtime.stages.models import LENGTH, VOCABULARY, Text

TEXT = torch.randint(VOCABULARY, (301,), generator=torch.Generator().manual_seed(5))
ORDER = SampleOrder(len(TEXT), LENGTH, seed=3)
PLAN = {"embed": "embedding", "layers.*.mix": "column", "layers.*.out": "row", "head": "scores"}
STEPS = 4
APART = 2e-6
"""Losses are near 4 and sums in float32 of another order differ by some of its last digits."""

LAYOUTS: dict[str, tuple[dict[str, int], ModelSplit]] = {
    "tp x pp": ({"tp": 2, "pp": 2}, ModelSplit("1f1b", 4, plan=PLAN)),
    "pp x dp, a weight on both ends": ({"pp": 2}, ModelSplit("gpipe", 2, at=["layers.1"])),
    "pp, in a V": ({"pp": 2}, ModelSplit("zbv", 2, at=[1, 1, 1, 1])),
    "pp, interleaved": ({"pp": 4}, ModelSplit("interleaved-1f1b", 4, chunks=1)),
    "dp x zero 3": ({"zero": 3}, ModelSplit()),
    "dp x zero 1": ({"zero": 1}, ModelSplit()),
}


def batch(places: Sequence[int]) -> tuple[Tensor, Tensor]:
    rows = torch.stack([TEXT[place : place + LENGTH + 1] for place in places])
    return rows[:, :-1], rows[:, 1:]


def loss_of(scores: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(scores.flatten(0, 1), targets.flatten())


def adamw(weights: Sequence[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(weights, lr=1e-2)


def model(dropout: float = 0.0) -> Text:
    torch.manual_seed(0)
    made = Text(4, tie=True)
    made.drop.p = dropout
    with torch.no_grad():
        made.embed.weight.mul_(0.1)
    return made


def training(
    sizes: dict[str, int],
    split: ModelSplit | None = None,
    *,
    dropout: float = 0.0,
    **options: Any,
) -> Any:
    asked: dict[str, Any] = {"global_batch_size": 8, "order": ORDER, "clip": 1.0} | options
    groups = join(**sizes)  # type: ignore[arg-type]
    return ModelTraining(
        model(dropout), groups, loss=loss_of, batch=batch, optimizer=adamw, split=split, **asked
    )


def alone(steps: int = STEPS) -> list[tuple[float, float]]:
    """Returns losses and norms of plain torch in one process."""
    whole = model()
    optimizer = adamw(list(whole.parameters()))
    found = []
    for step in range(steps):
        inputs, targets = batch([ORDER.place(8 * step + row) for row in range(8)])
        loss = loss_of(whole(inputs), targets)
        torch.autograd.backward(loss)
        norm = nn.utils.clip_grad_norm_(whole.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        found.append((loss.item(), norm.item()))
    return found


def _in_each_layout() -> dict[str, list[tuple[float, float]]]:
    return {
        name: [(done.loss, done.learned.norm) for done in training(sizes, split).run(STEPS)]
        for name, (sizes, split) in LAYOUTS.items()
    }


def test_losses_and_norms_are_those_of_one_process_in_every_layout() -> None:
    wanted = alone()
    losses = start(_in_each_layout, ranks=4, timeout_s=60)
    for name, found in losses.items():
        for (loss, norm), (other, another) in zip(found, wanted, strict=True):
            assert abs(loss - other) < APART * abs(other), name
            assert abs(norm - another) < 1e-4 * another, name


class _Stopped:
    """Runs the same in one go, and stopped after step 2 and gone on with, in several layouts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self) -> dict[str, list[float]]:
        return {
            "whole": self.losses(6, dropout=0.1),
            "first": self.losses(2, "kept", dropout=0.1),
            "again": self.losses(6, "kept", dropout=0.1),
            "plain": self.losses(6),
            "before": self.losses(2, "other"),
            "tp": self.elsewhere({"tp": 2}, ModelSplit(plan=PLAN)),
            "more dp": self.elsewhere({"zero": 1}, ModelSplit()),
        }

    def losses(self, steps: int, name: str = "", *, dropout: float = 0.0) -> list[float]:
        """Returns the losses up to ``steps`` on two stages, kept and recorded under ``name``."""
        folder = self.folder / name
        kept = CheckpointSettings(folder=folder, every=2, resume=True) if name else None
        options = {"checkpoints": kept, "trace_dir": folder / "trace" if name else None}
        split = ModelSplit("1f1b", 2)
        run = training({"pp": 2}, split, dropout=dropout, **options).run(steps)
        return [done.loss for done in run]

    def elsewhere(self, sizes: dict[str, int], split: ModelSplit) -> list[float]:
        """Returns the losses of going on in another layout from where another run stopped."""
        begun = CheckpointSettings(begin_from=self.folder / "other")
        return [done.loss for done in training(sizes, split, checkpoints=begun).run(6)]


def test_a_run_that_was_stopped_goes_on_bit_by_bit_and_in_another_layout(tmp_path: Path) -> None:
    found = start(_Stopped(tmp_path), ranks=4, timeout_s=60)
    assert found["first"] + found["again"] == found["whole"] != found["plain"]
    for other in ("tp", "more dp"):
        assert found[other] == pytest.approx(found["plain"][2:], rel=APART)
    assert sorted(each.name for each in (tmp_path / "kept").glob("step-*")) == [
        "step-000002",
        "step-000004",
        "step-000006",
    ]
    steps = [_steps(tmp_path / "kept" / each) for each in ("trace", "trace/restart-1")]
    assert steps == [{0, 1}, {2, 3, 4, 5}]


def _steps(folder: Path) -> set[int]:
    """Returns the steps that a recording holds."""
    return set(serried.read_trace(folder).spans.step.tolist())


def _refusals() -> list[str]:
    asked: list[tuple[dict[str, int], ModelSplit]] = [
        ({"cp": 2}, ModelSplit()),
        ({"tp": 2}, ModelSplit()),
        ({"pp": 2}, ModelSplit(at=["layers.1", "layers.2"])),
        ({}, ModelSplit(microbatches=3)),
    ]
    return [_refusal(sizes, split) for sizes, split in asked]


def _refusal(sizes: dict[str, int], split: ModelSplit) -> str:
    try:
        training(sizes, split)
    except InputError as error:
        return str(error)
    return ""


def test_what_a_model_cannot_do_is_refused_in_a_sentence() -> None:
    cp, tp, stages, batches = start(_refusals, ranks=2, timeout_s=60)
    assert cp.startswith("cp=2 cuts sequences, which only attention that knows of it can compute")
    assert tp.startswith("tp=2 cuts a model by a plan of its modules, and none is given")
    assert stages == (
        "the model is cut into 3 stages, and 1f1b on pp=2 has 2; name 1 layers at which one begins"
    )
    assert batches.startswith("global batch size 8 is not a multiple of dp=2 x 3 microbatches")


class _FourStages:
    """Stands for the groups of a pipeline of four ranks, as its first one sees them."""

    def size(self, axis: str) -> int:
        return 4


def test_a_weight_of_two_stages_in_mid_pipeline_is_refused() -> None:
    shared = Text(4)
    first, second = (shared.get_submodule(f"layers.{number}.mix") for number in range(2))
    second.weight = first.weight
    groups: Any = _FourStages()
    with pytest.raises(InputError) as refused:
        tied_weights(cut(shared, 4, batch([0])[0]), {}, generate("gpipe", Request(4, 4)), groups)
    assert str(refused.value).startswith("layers.0.mix.weight is one weight of stages 0 and 1; two")
