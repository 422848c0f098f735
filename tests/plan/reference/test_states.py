"""What weights take on a rank, counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from serried.pipeline import Request, generate
from serried.plan.memory.states import state_bytes
from serried.plan.model.parameters import stage_parameters
from serried.plan.model.shape import ModelShape
from serried.plan.model.stages import stages_of
from serried.plan.precision import recipe
from serried.plan.reference.states import States, groups_of, states_of
from serried.plan.reference.training import Gpt, Training

MODEL = Gpt(hidden=8, ffn=24, heads=2, kv_heads=1, seq_len=4, vocabulary=16)
ONE = Training(MODEL, layers=(2,), schedule=generate("1f1b", Request(1, 2)), microbatch_size=1)
LAYER = 2 * 8 * 8 + 2 * 4 * 8 + 3 * 24 * 8 + 2 * 8
ENDS = 2 * 16 * 8 + 8
WHOLE = 2 * LAYER + ENDS


def numbers(training: Training, stage: int = 0) -> int:
    return sum(weight.num_elements for group in groups_of(training, stage) for weight in group)


def test_a_layer_has_four_matrices_of_attention_three_of_feed_forward_and_two_norms() -> None:
    assert numbers(ONE) == WHOLE
    assert numbers(replace(ONE, tp=2)) == WHOLE // 2 + 5 * 4  # norms are whole on every rank


def test_the_ends_of_the_model_are_on_its_first_and_last_stage() -> None:
    two = replace(ONE, layers=(1, 1), schedule=generate("1f1b", Request(2, 2)))
    tied = replace(two, model=replace(MODEL, tie=True))
    assert [numbers(two, stage) for stage in (0, 1)] == [LAYER + 128, LAYER + 128 + 8]
    assert [numbers(tied, stage) for stage in (0, 1)] == [numbers(two, 0), numbers(two, 1)]
    assert numbers(replace(ONE, model=replace(MODEL, tie=True))) == WHOLE - 128


def columns(states: States) -> tuple[int, int, int, int]:
    return states.parameters, states.gathered, states.gradients, states.optimizer


def test_one_process_has_parameters_gradients_and_two_moments() -> None:
    assert columns(states_of(ONE, 0)) == (4 * WHOLE, 0, 4 * WHOLE, 8 * WHOLE)
    double = replace(ONE, dtype="float64")
    assert columns(states_of(double, 0)) == (8 * WHOLE, 0, 8 * WHOLE, 16 * WHOLE)


def test_replicas_compute_with_a_whole_copy_in_the_type_of_the_computation() -> None:
    half = replace(ONE, dtype="bfloat16", sharing="replicate")
    assert columns(states_of(half, 0)) == (4 * WHOLE, 2 * WHOLE, 4 * WHOLE, 8 * WHOLE)
    assert states_of(half, 0).fresh == 2 * WHOLE
    assert states_of(replace(half, dtype="float32"), 0).fresh == 0


@pytest.mark.parametrize("zero", [1, 2, 3])
def test_shards_divide_parameters_and_moments_but_not_a_step_s_gradients(zero: int) -> None:
    sharded = replace(ONE, sharing="zero", zero=zero, shard=4)
    own = WHOLE // 4
    assert columns(states_of(sharded, 0)) == (4 * own, 4 * WHOLE, 4 * WHOLE, 8 * own)
    assert states_of(sharded, 0).kept == 4 * own


def test_shards_of_rows_that_do_not_divide_are_padded() -> None:
    sharded = replace(ONE, sharing="zero", zero=1, shard=3)
    rows = 2 * (3 + 2 + 2 + 3 + 8 + 8 + 3) * 8 - 2 * 3 * 8 + 2 * 3 * 24 + 2 * 2 * 3 + 2 * 6 * 8 + 3
    assert states_of(sharded, 0).parameters == 4 * rows


def test_zero_3_has_what_is_no_layer_s_and_two_layers_when_backward_begins() -> None:
    layers = replace(ONE, layers=(4,), sharing="zero", shard=2)
    assert states_of(replace(layers, zero=3), 0).gathered_first == 4 * WHOLE
    assert states_of(replace(layers, zero=2), 0).gathered_first == 4 * (4 * LAYER + ENDS)


def test_buffers_keep_16_bits_beside_wide_copies_and_norms_wide() -> None:
    norms = 5 * 8
    rest = WHOLE - norms
    half = replace(ONE, dtype="bfloat16", sharing="buffer")
    assert columns(states_of(half, 0)) == (
        2 * rest + 4 * norms,
        0,
        4 * WHOLE,
        8 * WHOLE + 4 * rest,
    )
    assert states_of(replace(half, dtype="float16"), 0).gradients == 2 * rest + 4 * norms
    assert columns(states_of(replace(half, dtype="float32"), 0)) == columns(states_of(ONE, 0))


@pytest.mark.parametrize("tie", [False, True])
@pytest.mark.parametrize("pp", [1, 2])
def test_weights_and_states_are_those_of_the_formulas_of_any_job(pp: int, tie: bool) -> None:
    model = replace(MODEL, tie=tie)
    layers, schedule = (2 // pp,) * pp, generate("1f1b", Request(pp, 2))
    training = replace(
        ONE, model=model, layers=layers, schedule=schedule, sharing="zero", zero=3, shard=2
    )
    shape = ModelShape("reference", 2, 8, 2, 1, 4, 24, 16, is_tied=tie)
    for number, stage in enumerate(stages_of(shape, pp)):
        count = stage_parameters(shape, stage).total
        assert numbers(training, number) == count
        parameters, _, optimizer = state_bytes(count, 2, 3, recipe("fsdp2-mixed"))
        states = states_of(training, number)
        assert (states.parameters, states.optimizer) == (parameters, optimizer)
