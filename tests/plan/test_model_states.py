"""Bytes of parameters, gradients and optimizer on one rank: the ZeRO paper's tables, and rules."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried import frameworks
from serried.errors import InputError
from serried.frameworks import Sizes
from serried.mesh import Layout
from serried.plan.model_states import ModelStates, model_states, read_parameters
from serried.plan.precision import RECIPES, recipe
from tests.frameworks.asking import asked

TABLES = Path(__file__).parents[1] / "goldens" / "tables"


def rows(name: str) -> Iterator[dict[str, str]]:
    lines = (TABLES / name).read_text().splitlines()
    yield from csv.DictReader(line for line in lines if not line.startswith("#"))


def cells() -> Iterator[tuple[float, int, int, str]]:
    """Yields the 54 cells that stages make: billions of parameters, ranks, stage, printed GB."""
    for row in rows("zero_table1_model_state_memory.csv"):
        for stage in (1, 2, 3):
            yield float(row["params_B"]), int(row["dp"]), stage, row[f"zero{stage}_GB"]


def deepspeed(ranks: int, stage: int) -> Layout:
    return frameworks.layout("deepspeed", Sizes(ranks, zero=stage))


def unit(printed: str) -> float:
    """Returns one in the last place of a printed number."""
    return 10.0 ** -len(printed.partition(".")[2])


def test_the_paper_s_table_has_54_cells() -> None:
    assert len(list(cells())) == 54


@pytest.mark.parametrize(("billions", "ranks", "stage", "printed"), list(cells()))
def test_model_states_are_those_of_the_zero_paper(
    billions: float, ranks: int, stage: int, printed: str
) -> None:
    states = model_states(deepspeed(ranks, stage), round(billions * 1e9))
    # The paper rounds some cells and cuts others off: 31.40625 is 31.4 there, 257.75 is 257.
    assert abs(states.held.total / 1e9 - float(printed)) < unit(printed)
    assert states.whole.total / 1e9 == 16 * billions


def test_the_paper_s_first_figure_is_120_31_16_and_2_gb() -> None:
    found = [model_states(deepspeed(64, stage), 7_500_000_000).held.total for stage in range(4)]
    assert [each / 1e9 for each in found] == [120, 31.40625, 16.640625, 1.875]


@pytest.mark.parametrize("row", list(rows("zero_table2_max_model.csv")), ids=lambda row: row["mp"])
def test_the_largest_model_on_32_gb_is_that_of_the_paper_s_second_table(
    row: dict[str, str],
) -> None:
    """The paper multiplies what fits on one model-parallel rank, as it prints that, by their
    number: 16 times 7.6 billion are 121.6."""
    mp, ranks = int(row["mp"]), 64
    for stage, column in enumerate(("baseline_B", "zero1_B", "zero2_B", "zero3_B")):
        per_parameter = model_states(deepspeed(ranks, stage), 10**9).held.total / 1e9
        alone = float(f"{32 / per_parameter - 0.05 * (stage in (1, 2)):.1f}")
        printed = {1000.0: 1024.0, 2000.0: 2048.0}.get(float(row[column]), float(row[column]))
        assert mp * alone == pytest.approx(printed)


def states(line: str, parameters: int, name: str = "fp16-adam", experts: int = 0) -> ModelStates:
    return model_states(asked(line), parameters, name, expert_parameters=experts)


def test_megatron_s_distributed_optimizer_takes_6_bytes_and_12_over_the_data_ranks() -> None:
    found = states("megatron 64 tp=4 pp=2 cp=2 zero=1", 8 * 10**9, "fp32-grads")
    assert found.held.total == (6 + 12 / 8) * 10**9
    assert found.whole.total == 18 * 10**9


def test_experts_are_cut_over_fewer_ranks_than_dense_weights() -> None:
    found = states("megatron 64 tp=4 ep=4 zero=1", 44 * 10**9, experts=32 * 10**9)
    dense, expert = found.each
    # 12 billion over tp = 4, their optimizer over dp = 16; 32 billion over etp x ep = 16, over 4.
    assert (dense.num_parameters, expert.num_parameters) == (3 * 10**9, 2 * 10**9)
    assert dense.held.optimizer == 12 * 3 * 10**9 / 16
    assert expert.held.optimizer == 12 * 2 * 10**9 / 4
    assert found.held.total == dense.held.total + expert.held.total


def test_hpz_holds_one_more_copy_of_the_parameters_cut_over_near_ranks() -> None:
    near, far = (
        states(f"deepspeed 64 zero=3 {hpz}", 64 * 10**6)
        for hpz in ("zero_hpz_partition_size=8", "")
    )
    assert near.held.near == 2 * 64 * 10**6 / 8
    assert near.held.total - far.held.total == near.held.near


def test_weights_that_fsdp_keeps_after_forward_lie_whole_while_a_step_runs() -> None:
    kept = states("fsdp 8 zero=2", 8 * 10**6, "fsdp2-mixed")
    assert kept.held.gathered == 2 * 8 * 10**6
    assert kept.held.parameters == 4 * 10**6
    assert states("fsdp 8 zero=3", 8 * 10**6).held.gathered == 0


def test_weight_parallelism_cuts_weights_whatever_the_tensor_size_is() -> None:
    line = "internevo 16 tp=4 pp=2 zero1=2 tensor.mode=isp weight.size=2"
    found = states(line, 16 * 10**6)
    assert found.each[0].num_parameters == 8 * 10**6  # a stage's, for sequences are what tp cuts
    assert found.held.parameters == 2 * 4 * 10**6


def test_a_number_that_ranks_do_not_divide_is_rounded_up_to_the_largest_part() -> None:
    assert states("deepspeed 3 zero=3", 10).held.total == 16 * 4


@given(st.integers(1, 10**13), st.sampled_from([1, 2, 3, 8, 64]), st.sampled_from(sorted(RECIPES)))
def test_a_later_stage_never_holds_more(count: int, ranks: int, name: str) -> None:
    totals = [model_states(deepspeed(ranks, s), count, name).held.total for s in range(4)]
    assert sorted(totals, reverse=True) == totals
    assert totals[0] == count * recipe(name).total_bytes
    # A share is at least its part of the whole: what all ranks hold together is no less.
    assert totals[3] * ranks >= totals[0]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        *(("7.5B", 75 * 10**8), ("1e9", 10**9), ("70b", 70 * 10**9), ("350M", 35 * 10**7)),
        *(("1.3e+9", 13 * 10**8), ("1,000", 1000), ("0.5T", 5 * 10**11), ("12345", 12345)),
    ],
)
def test_a_number_of_parameters_is_read_as_people_write_it(text: str, count: int) -> None:
    assert read_parameters(text) == count


@pytest.mark.parametrize("text", ["", "0", "-1", "B", "7.5.5B", "1e99", "seven", "٧B", "1e18"])
def test_what_is_no_number_of_parameters_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(InputError, match="is not a number of parameters"):
        read_parameters(text)


def test_an_unknown_recipe_and_a_program_s_own_mesh_are_refused() -> None:
    with pytest.raises(InputError, match="precision 'fp7' is not known; recipes are fp16-adam, "):
        recipe("fp7")
    with pytest.raises(InputError, match="custom lays out ranks alone"):
        states("custom 8", 100)
    with pytest.raises(InputError, match="experts have 100 of 100 parameters"):
        states("megatron 8 ep=2", 100, experts=100)


def test_every_recipe_says_what_its_parts_add_up_to() -> None:
    totals = {name: each.total_bytes for name, each in RECIPES.items()}
    assert totals == {
        **{"fp16-adam": 16, "fp32-grads": 18, "bf16-grads": 16, "fsdp2-mixed": 16, "fp32": 16},
        **{
            "bf16": 8,
            "adam-8bit": 10,
            "sgd-momentum": 12,
            "bf16-moments": 14,
            "muon": 14,
            "fp16-scaled": 20,
        },
    }
