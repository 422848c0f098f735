"""Models of transformers learn on real ranks as transformers' own model does in one process.

All runs are on one launch of four processes, eight in the soak.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_

from serried.errors import InputError
from serried.runtime.checkpoint.checkpoint import describe, description_of, require_fits
from serried.runtime.checkpoint.export import export
from serried.runtime.job.config_model import ConfigModel, read_model
from serried.runtime.job.report import Validated
from serried.runtime.job.settings import (
    CheckpointSettings,
    OptimizerSettings,
    TrainSettings,
    Validation,
)
from serried.runtime.pretrained.build import draw, meta_model
from serried.runtime.pretrained.states import planned_states
from serried.runtime.training.tokens import text_of
from tests.runtime.many_runs import Ran, run_many
from tests.runtime.pretrained.tiny import written
from tests.soaked import launched, rows

WORDS = "rank group stage step loss layer head axis mesh token"
LAYOUTS: Mapping[str, tuple[str, dict[str, object]]] = {
    "norms of heads, tied: tp": ("qwen3", {"world_size": 2, "tp": 2}),
    "norms of heads, tied: tp x pp x dp, zero 3": (
        "qwen3",
        {"world_size": 8, "tp": 2, "pp": 2, "zero": 3},
    ),
    "tied at both ends of a pipeline: pp x dp": ("gpt2", {"world_size": 4, "pp": 2}),
    "experts: tp x dp, zero 2": ("mixtral", {"world_size": 4, "tp": 2, "zero": 2}),
    "layers again: pp interleaved": (
        "llama",
        {"world_size": 2, "pp": 2, "schedule": "interleaved-1f1b", "recompute": "full"},
    ),
    "layers again: tp x pp interleaved": (
        "llama",
        {"world_size": 4, "tp": 2, "pp": 2, "schedule": "interleaved-1f1b", "recompute": "full"},
    ),
    "halves of a backward: pp zbv x zero 1": (
        "llama",
        {"world_size": 4, "pp": 2, "schedule": "zbv", "zero": 1},
    ),
}
SOAKED = {
    "norms of heads, tied: tp x pp x dp, zero 3",
    "layers again: tp x pp interleaved",
}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TrainSettings]:
    folder = tmp_path_factory.mktemp("models")
    lines = [json.dumps({"body": f"{WORDS} {number} " * 6}) for number in range(60)]
    (folder / "data.jsonl").write_text("\n".join(lines))

    def asked(kind: str, layout: dict[str, object]) -> TrainSettings:
        tied = {"tie_word_embeddings": True} if kind == "qwen3" else {}
        layers = 4 if kind == "llama" else 2  # two chunks on each of two stages
        sizes = {} if kind == "gpt2" else {"num_hidden_layers": layers, **tied}
        model = read_model(written(folder / kind, kind, **sizes), seq_len=24)
        base = TrainSettings(
            1,
            data=folder / "data.jsonl",
            text_key="body",
            token_cache=folder / "tokens",
            device="cpu",
            steps=3,
            global_batch_size=8,
            microbatches=2,
            optimizer=OptimizerSettings(lr_schedule="constant"),
            validation=Validation(every=3, sequences=5),
            model=model,
        )
        return replace(base, **layout)  # type: ignore[arg-type]

    return {name: asked(*each) for name, each in LAYOUTS.items()}


NORMS = "norms of heads, tied: tp"
HALVES = "16 bits"
KEPT = "experts: tp x dp, zero 2"
ANEW: Mapping[str, dict[str, object]] = {
    "one process": {"world_size": 1, "tp": 1, "zero": 0},
    "pp x dp, zero 3": {"world_size": 4, "tp": 1, "pp": 2, "zero": 3},
}
"""Layouts that go on from what KEPT saved after two steps."""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("saved")


@pytest.fixture(scope="module")
def ran(
    request: pytest.FixtureRequest, settings: dict[str, TrainSettings], saved: Path
) -> dict[str, Ran]:
    keeping = replace(settings[KEPT], checkpoints=CheckpointSettings(saved, every=2))
    begun = CheckpointSettings(begin_from=saved / "step-000002")
    anew = {
        name: replace(settings[KEPT], **layout, checkpoints=begun)  # type: ignore[arg-type]
        for name, layout in ANEW.items()
    }
    halves = replace(settings[NORMS], dtype="bfloat16", validation=Validation())
    asked = launched(request, settings, SOAKED) | {KEPT: keeping} | anew | {HALVES: halves}
    return dict(zip(asked, run_many(list(asked.values())), strict=True))


def batch(settings: TrainSettings, numbers: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    text, length = text_of(settings), settings.model.seq_len
    held_out = settings.validation.held_out
    order = text.order(seq_len=length, seed=settings.seed, held_out=held_out)
    rows = torch.from_numpy(text.batch([order.place(each) for each in numbers], length + 1)).long()
    return rows[:, :-1], rows[:, 1:]


def alone(settings: TrainSettings) -> list[tuple[float, float]]:
    """Trains transformers' own whole model by torch alone; returns losses and gradients' norms."""
    assert isinstance(settings.model, ConfigModel)
    torch.set_num_threads(1)
    model = meta_model(settings.model).to_empty(device="cpu")
    draw(model, model, settings.seed)
    model.tie_weights()
    learning = settings.optimizer
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=learning.lr, weight_decay=learning.weight_decay
    )
    told = []
    for step in range(settings.steps):
        size = settings.global_batch_size
        inputs, targets = batch(settings, list(range(step * size, (step + 1) * size)))
        loss = functional.cross_entropy(model(inputs).logits.flatten(0, 1), targets.flatten())
        loss.backward()  # type: ignore[no-untyped-call]
        told.append((loss.item(), clip_grad_norm_(model.parameters(), learning.clip).item()))
        optimizer.step()
        optimizer.zero_grad()
    return told


@pytest.mark.parametrize("name", rows(LAYOUTS, SOAKED))
def test_losses_and_norms_are_those_of_the_whole_model_alone(
    name: str, settings: dict[str, TrainSettings], ran: dict[str, Ran]
) -> None:
    found = [(step.loss, step.learned.norm) for step in ran[name].steps if step.learned]
    expected = alone(settings[name])
    assert [loss for loss, _ in found] == pytest.approx([loss for loss, _ in expected], abs=1e-5)
    assert [norm for _, norm in found] == pytest.approx([norm for _, norm in expected], abs=1e-4)
    assert expected[-1][0] < expected[0][0] - 0.1  # it learns


@pytest.mark.parametrize("name", ANEW)
def test_a_run_goes_on_in_another_layout(name: str, ran: dict[str, Ran]) -> None:
    (found,), expected = ran[name].steps, ran[KEPT].steps[2]
    assert found.loss == pytest.approx(expected.loss, abs=1e-5)
    assert found.learned and expected.learned
    assert found.learned.norm == pytest.approx(expected.learned.norm, abs=1e-4)


def test_transformers_reads_what_was_trained_on_tensor_parallel_experts(
    settings: dict[str, TrainSettings], ran: dict[str, Ran], saved: Path, tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM

    export(saved, tmp_path / "model.safetensors")
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    run = settings[KEPT]
    places = [text_of(run).num_tokens - 1 - n * 24 for n in range(5, 0, -1)]
    rows = torch.from_numpy(text_of(run).batch(places, 25)).long()
    with torch.no_grad():
        scores = model(rows[:, :-1]).logits
    loss = functional.cross_entropy(scores.flatten(0, 1), rows[:, 1:].flatten()).item()
    told = next(each for each in ran[KEPT].events if isinstance(each, Validated))
    assert told.loss == pytest.approx(loss, abs=1e-5)


def test_a_checkpoint_of_another_config_is_refused(
    settings: dict[str, TrainSettings], ran: dict[str, Ran], saved: Path
) -> None:
    other = settings["tied at both ends of a pipeline: pp x dp"]
    found, own = describe(saved / "step-000002"), description_of(other)
    with pytest.raises(InputError, match="is of another model: it has architecture=Mixtral"):
        require_fits(saved, found, own, 9)


def test_held_out_tokens_are_measured_each_once(
    settings: dict[str, TrainSettings], ran: dict[str, Ran]
) -> None:
    told = [each for run in ran.values() for each in run.events if isinstance(each, Validated)]
    assert {each.num_bytes for each in told} == {5 * 24} and len(told) == len(ran) - 1


def test_ranks_say_what_they_hold_by_the_model_s_own_names(ran: dict[str, Ran]) -> None:
    held = [rank.modules for rank in ran["tied at both ends of a pipeline: pp x dp"].ranks]
    assert held[0] == (
        "transformer.wte",
        "transformer.wpe",
        "transformer.h.0",
        "transformer.h.1",
    )
    assert held[-1] == ("transformer.h.2", "transformer.ln_f", "lm_head")


@pytest.mark.parametrize("name", rows(LAYOUTS, SOAKED))
def test_ranks_hold_what_was_planned(
    name: str, settings: dict[str, TrainSettings], ran: dict[str, Ran]
) -> None:
    planned = {each.pp_rank: each.parameters for each in planned_states(settings[name])}
    first = {rank.coordinates["pp"]: rank for rank in reversed(ran[name].ranks)}
    assert {place: rank.parameter_bytes for place, rank in first.items()} == planned


def test_16_bits_learn_nearly_the_same(
    settings: dict[str, TrainSettings], ran: dict[str, Ran]
) -> None:
    losses = [step.loss for step in ran[HALVES].steps]
    assert losses == pytest.approx([loss for loss, _ in alone(settings[NORMS])], abs=0.02)


def test_tensor_parallel_ranks_hold_half_of_what_the_plan_cuts(
    settings: dict[str, TrainSettings], ran: dict[str, Ran]
) -> None:
    name = "experts: tp x dp, zero 2"
    model = settings[name].model
    assert isinstance(model, ConfigModel)
    whole = 4 * sum(each.numel() for each in meta_model(model).parameters())
    # A quarter by tp 2 and shards of 2; norms and routers are whole on both tp ranks.
    assert all(whole / 4 < rank.parameter_bytes < whole / 3.5 for rank in ran[name].ranks)
