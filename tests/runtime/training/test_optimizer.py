"""What a run learns and when it does not, over real ranks: types, overflow, clipping, dropout."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from serried.runtime.job.settings import ModelSizes, OptimizerSettings, TrainSettings
from tests.runtime.many_runs import Ran, run_many
from tests.runtime.reference import train_alone
from tests.soaked import launched, rows

TWO = TrainSettings(
    world_size=2,
    model=ModelSizes(layers=2, hidden=32, heads=4, seq_len=16),
    optimizer=OptimizerSettings(lr_schedule="constant"),
    global_batch_size=8,
    microbatches=2,
    steps=6,
    device="cpu",
)
HALF = replace(TWO, dtype="float16")
OVERFLOWING = OptimizerSettings(lr_schedule="constant", loss_scale=2.0**20, loss_scale_window=2)
"""float16 ends at 65504; gradients of this model times this are beyond it."""
DROPPING = replace(TWO, model=replace(TWO.model, dropout=0.2), recompute="full")

RUNS = {
    "bfloat16, buffer": replace(TWO, dtype="bfloat16", dp_style="buffer"),
    "bfloat16, zero 3": replace(TWO, dtype="bfloat16", zero=3),
    "bfloat16, tp, sequence parallel": replace(TWO, dtype="bfloat16", tp=2, sequence_parallel=True),
    "float16, pp zbv": replace(
        HALF, pp=2, schedule="zbv", model=replace(TWO.model, layers=4, tie=True)
    ),
    "overflow": replace(HALF, dp_style="buffer", optimizer=OVERFLOWING, steps=16),
    "hopeless": replace(HALF, optimizer=replace(OVERFLOWING, lr=1e30, loss_scale=4.0), steps=30),
    "diverging": replace(
        TWO, optimizer=OptimizerSettings(lr=1e30, lr_schedule="constant"), steps=30
    ),
    "clipped": replace(TWO, optimizer=OptimizerSettings(clip=0.01)),
    "not clipped": replace(TWO, optimizer=OptimizerSettings(clip=0)),
    "dropout": DROPPING,
    "dropout again": DROPPING,
    "dropout, other seed": replace(DROPPING, seed=1),
    "dropout over tp": replace(DROPPING, tp=2),
    "dropout on one rank": replace(DROPPING, world_size=1),
}
SOAKED = {"bfloat16, zero 3", "bfloat16, tp, sequence parallel"}


@pytest.fixture(scope="module")
def ran(request: pytest.FixtureRequest) -> dict[str, Ran]:
    """All runs, on one launch of two ranks."""
    runs = launched(request, RUNS, SOAKED)
    return dict(zip(runs, run_many(list(runs.values())), strict=True))


def losses(it: Ran) -> list[float]:
    return [step.loss for step in it.steps if step.loss is not None]


@pytest.mark.parametrize("name", rows((name for name in RUNS if "16" in name), SOAKED))
def test_sixteen_bits_lose_about_what_float32_loses(name: str, ran: dict[str, Ran]) -> None:
    alone = train_alone(replace(RUNS[name], dtype="float32"))
    assert losses(ran[name]) == pytest.approx([told.loss for told in alone], rel=0.02)
    assert losses(ran[name])[-1] < losses(ran[name])[0] - 0.1
    norms = [step.learned.norm for step in ran[name].steps if step.learned]
    assert norms == pytest.approx([told.norm for told in alone], rel=0.1)


def test_a_step_that_overflows_teaches_nothing_and_halves_the_scale(ran: dict[str, Ran]) -> None:
    learned = [step.learned for step in ran["overflow"].steps if step.learned]
    first_good = next(number for number, each in enumerate(learned) if not each.is_skipped)
    scales = [each.loss_scale for each in learned]
    assert first_good >= 1 and len(learned) == 16
    assert scales[: first_good + 1] == [2.0**20 / 2**n for n in range(first_good + 1)]
    assert all(math.isinf(each.norm) for each in learned[:first_good])
    assert {each.lr for each in learned[:first_good]} == {3e-3}
    assert ran["overflow"].steps[-1].loss < ran["overflow"].steps[0].loss - 0.1  # type: ignore[operator]


def test_the_scale_doubles_after_its_window_of_good_steps(ran: dict[str, Ran]) -> None:
    learned = [step.learned for step in ran["overflow"].steps if step.learned]
    first_good = next(number for number, each in enumerate(learned) if not each.is_skipped)
    least = learned[first_good].loss_scale
    assert least is not None
    assert learned[first_good + 2].loss_scale == 2 * least


def test_a_run_that_never_recovers_ends_in_one_sentence(ran: dict[str, Ran]) -> None:
    assert ran["hopeless"].error.startswith("step ")
    assert ran["hopeless"].error.endswith(
        ": float16 gradients overflow even at a loss scale of 1; the model diverges or is too "
        "much for float16: take a smaller lr, or dtype bfloat16"
    )


def test_float32_gradients_that_are_no_number_end_the_run(ran: dict[str, Ran]) -> None:
    assert ran["diverging"].error.startswith("step ")
    assert ran["diverging"].error.endswith(
        ": the gradient is not finite in float32; take a smaller lr, a longer warm-up or a wider "
        "dtype"
    )


@pytest.mark.parametrize("name", ["clipped", "not clipped"])
def test_clipping_changes_steps_as_torch_s_own_does(name: str, ran: dict[str, Ran]) -> None:
    assert losses(ran[name]) == pytest.approx(
        [told.loss for told in train_alone(RUNS[name])], rel=1e-5
    )
    assert losses(ran["clipped"])[-1] != losses(ran["not clipped"])[-1]


def test_dropout_follows_the_seed_and_nothing_else(ran: dict[str, Ran]) -> None:
    assert losses(ran["dropout"]) == losses(ran["dropout again"])
    assert losses(ran["dropout"])[0] != losses(ran["dropout, other seed"])[0]
    assert losses(ran["dropout"])[0] != losses(ran["not clipped"])[0]


def test_tensor_parallel_ranks_drop_the_same(ran: dict[str, Ran]) -> None:
    whole = losses(ran["dropout on one rank"])
    assert losses(ran["dropout over tp"]) == pytest.approx(whole, rel=1e-5)
    assert losses(ran["dropout"])[0] != pytest.approx(whole[0], rel=1e-5)


def test_a_scheduled_rate_is_what_steps_report(ran: dict[str, Ran]) -> None:
    learning = RUNS["clipped"].optimizer
    rates = [step.learned.lr for step in ran["clipped"].steps if step.learned]
    assert rates == [learning.rate(update, 6) for update in range(6)]
