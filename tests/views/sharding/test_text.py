"""What ranks share, in words: the verdict first, a row per state, and what stands behind it."""

from __future__ import annotations

import pytest

from serried.mesh import Layout
from serried.plan.model_states import ModelStates, model_states
from serried.plan.precision import RECIPES
from serried.views.sentences import say
from serried.views.sharding.text import detail_lines, states_table, verdict
from tests.frameworks.asking import asked

FP16 = RECIPES["fp16-adam"]


def reckoned(line: str, parameters: int = 7_500_000_000) -> tuple[Layout, ModelStates]:
    layout = asked(line)
    return layout, model_states(layout, parameters)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            "megatron 64 zero=3",
            "ZeRO 3: parameters, gradients and optimizer state are sharded over dp_cp, 64 ranks; "
            "1.88 GB a rank instead of 120 GB",
        ),
        (
            "megatron 64 zero=0",
            "ZeRO 0: nothing is sharded: 64 ranks of dp_cp hold the same; 120 GB a rank",
        ),
        (
            "internlm 64 zero1=8",
            "ZeRO 1: optimizer state is sharded over zero1, 8 ranks, in 8 copies; "
            "41.2 GB a rank instead of 120 GB",
        ),
        (
            "megatron 8 tp=8 zero=1",
            "ZeRO 1: nothing is sharded, for each rank trains weights of its own; 15.0 GB a rank",
        ),
        (
            "fsdp 64 zero=2",
            "ZeRO 2: parameters, gradients and optimizer state are sharded over dp_shard, "
            "64 ranks (parameters whole while a step runs); 16.9 GB a rank instead of 120 GB",
        ),
        (
            "internevo 16 tp=4 pp=2 zero1=2 tensor.mode=isp weight.size=2",
            "ZeRO 3: parameters and gradients are sharded over weight, 2 ranks, in 4 copies and "
            "optimizer state is sharded over weight x zero1, 4 ranks, in 2 copies; "
            "18.8 GB a rank instead of 60.0 GB",
        ),
    ],
)
def test_the_verdict_says_what_is_shared_over_whom_and_what_a_rank_holds(
    line: str, sentence: str
) -> None:
    assert str(verdict(*reckoned(line))) == sentence


def test_without_a_number_of_parameters_there_are_no_bytes() -> None:
    layout = asked("megatron 64 zero=1")
    assert str(verdict(layout, None)) == ("ZeRO 1: optimizer state is sharded over dp_cp, 64 ranks")
    assert layout.sharding is not None
    assert "a rank holds" not in "\n".join(states_table(layout.sharding, None).lines(100))


def test_the_verdict_is_said_in_chinese_as_well() -> None:
    assert say(verdict(*reckoned("megatron 64 zero=3")), "zh") == (
        "ZeRO stage 3 下，参数、梯度和优化器状态分片到 dp_cp，64 个 rank；"
        "每个 rank 1.88 GB，不分片要 120 GB"
    )


def test_each_state_is_a_row_with_its_bytes_ranks_and_copies() -> None:
    layout, states = reckoned("fsdp 16 sharding_strategy=HYBRID_SHARD")
    assert layout.sharding is not None
    assert list(states_table(layout.sharding, states).lines(100)) == [
        "state            a rank holds       of  cut over  ranks  copies  copies joined by",
        "parameters            1.88 GB  15.0 GB  dp_shard      8       2  dp_replicate",
        "gradients             1.88 GB  15.0 GB  dp_shard      8       2  dp_replicate",
        "optimizer state       11.2 GB  90.0 GB  dp_shard      8       2  dp_replicate",
        "together              15.0 GB   120 GB",
    ]


def test_experts_and_a_near_copy_are_rows_of_their_own() -> None:
    layout, states = reckoned("deepspeed 64 zero=3 zero_hpz_partition_size=8")
    assert layout.sharding is not None
    near = list(states_table(layout.sharding, states).lines(120))[4]
    assert " ".join(near.split()) == ("near copy of the parameters 1.88 GB zero_param_intra 8 8")
    mixture = asked("megatron 64 tp=4 ep=4 zero=1")
    assert mixture.sharding is not None
    names = [line.split("  ")[0] for line in states_table(mixture.sharding, None).lines(100)]
    assert names[4:] == ["experts: parameters", "experts: gradients", "experts: optimizer state"]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_padding_and_how_the_framework_spells_it_are_told(lang: str) -> None:
    layout, states = reckoned("megatron 64 zero=3")
    lines = detail_lines(layout, states, FP16, width=100, lang=lang)
    told = "\n".join(lines)
    assert "--data-parallel-sharding-strategy optim_grads_params" in told
    assert "lcm(" in told and "--use-megatron-fsdp" in told and "7,500,000,000" in told
    assert max(map(len, lines)) <= 100
