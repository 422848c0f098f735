"""The model is the same however it is cut, and a stage holds what its name says."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from serried.runtime.job.settings import VOCABULARY, Emulated, ModelSizes
from serried.runtime.model.emulate import EmulatedStage
from serried.runtime.model.model import Stage

SIZES = ModelSizes(layers=3, hidden=32, heads=4, seq_len=16)


def stages(pp: int, seed: int = 0) -> list[Stage]:
    """Returns all stages of the model, weights drawn."""
    cut = [Stage(SIZES, stage=stage, num_stages=pp) for stage in range(pp)]
    for stage in cut:
        stage.draw_weights(seed)
    return cut


def text(*shape: int) -> torch.Tensor:
    """Returns bytes that differ from place to place."""
    generator = torch.Generator().manual_seed(1)
    return torch.randint(VOCABULARY, shape, generator=generator)


@pytest.mark.parametrize("pp", [2, 3])
def test_a_cut_model_has_the_whole_model_s_weights_by_name(pp: int) -> None:
    whole = dict(stages(1)[0].named_parameters())
    cut = {name: p for stage in stages(pp) for name, p in stage.named_parameters()}
    assert cut.keys() == whole.keys()
    assert all(torch.equal(cut[name], whole[name]) for name in whole)


@pytest.mark.parametrize("pp", [2, 3])
def test_stages_in_a_row_compute_what_the_whole_model_computes(pp: int) -> None:
    x = text(2, SIZES.seq_len)
    whole = stages(1)[0](x)
    for stage in stages(pp):
        x = stage(x)
    assert torch.equal(x, whole)


def test_another_seed_draws_other_weights() -> None:
    assert not torch.equal(stages(1)[0].embed.weight, stages(1, seed=1)[0].embed.weight)


def test_stages_hold_the_ends_of_the_model_and_different_layers() -> None:
    assert [stage.held() for stage in stages(2)] == [
        ("embed", "layers.0", "layers.1"),
        ("layers.2", "norm", "output"),
    ]


def test_a_byte_s_scores_do_not_depend_on_what_follows() -> None:
    model, x = stages(1)[0], text(1, SIZES.seq_len)
    changed = x.clone()
    changed[0, 9:] = (changed[0, 9:] + 1) % VOCABULARY
    assert torch.equal(model(x)[0, :9], model(changed)[0, :9])
    assert not torch.equal(model(x)[0, 9:], model(changed)[0, 9:])


def test_scores_depend_on_the_order_of_what_came_before() -> None:
    model, x = stages(1)[0], text(1, SIZES.seq_len)
    swapped = x[:, [1, 0, *range(2, SIZES.seq_len)]]
    assert not torch.allclose(model(x)[0, -1], model(swapped)[0, -1], atol=1e-6)


def test_an_untrained_model_knows_nothing_about_the_next_byte() -> None:
    model, x = stages(1)[0], text(8, SIZES.seq_len)
    loss = model.loss(model(x), text(8, SIZES.seq_len))
    assert loss.item() == pytest.approx(torch.tensor(VOCABULARY).log().item(), abs=0.05)


def test_an_emulated_stage_has_the_real_stage_s_shapes_and_zero_gradients() -> None:
    times = Emulated(forward_ms=0.01, backward_ms=0.01)
    first = EmulatedStage(SIZES, times, stage=0, num_stages=2)
    last = EmulatedStage(SIZES, times, stage=1, num_stages=2)
    hidden = first(text(2, SIZES.seq_len))
    scores = last(hidden)
    last.loss(scores, text(2, SIZES.seq_len)).backward()  # type: ignore[no-untyped-call]
    assert hidden.shape == (2, SIZES.seq_len, SIZES.hidden)
    assert scores.shape == (2, SIZES.seq_len, VOCABULARY)
    parameters = [*first.parameters(), *last.parameters()]
    assert all(p.grad is not None and p.grad.count_nonzero() == 0 for p in parameters)


@pytest.mark.parametrize("tie", [False, True])
def test_rows_that_pad_the_vocabulary_change_no_loss_and_no_gradient(tie: bool) -> None:
    sizes, x = replace(SIZES, tie=tie), text(2, SIZES.seq_len + 1)
    models = [Stage(sizes, stage=0, num_stages=1, vocabulary=rows) for rows in (VOCABULARY, 300)]
    losses = []
    for model in models:
        model.draw_weights(0)
        model.double()
        loss = model.loss(model(x[:, :-1]), x[:, 1:])
        loss.backward()  # type: ignore[no-untyped-call]
        losses.append(loss.item())
    assert losses[0] == losses[1]
    plain, padded = (dict(model.named_parameters()) for model in models)
    for name, parameter in plain.items():
        rows, gradient = len(parameter), padded[name].grad
        assert gradient is not None
        torch.testing.assert_close(gradient[:rows], parameter.grad, rtol=1e-12, atol=1e-15)
        assert not padded[name][rows:].any() and not gradient[rows:].any()
