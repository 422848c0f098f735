"""The second layout of a comparison may have sizes and settings of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Call

SIZES = ("--world-size", "16", "--tp", "2", "--pp", "2")
SCRIPT = """torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py \\
    --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2
"""


@pytest.mark.parametrize("given", ["pp=4", "order=tp-cp-ep-pp-dp", "use_tp_pp_dp_mapping=true"])
def test_a_framework_is_compared_with_itself_at_other_sizes(given: str, serried: Call) -> None:
    shown = serried("groups", *SIZES, "--compare", "megatron", "--compare-set", given)
    assert shown.code == 1
    assert f"under megatron {given} (" in shown.out


def test_sizes_given_again_are_the_same(serried: Call) -> None:
    again = ("--compare-set", "tp=2", "--compare-set", "pp=2")
    assert serried("groups", *SIZES, "--compare", "megatron", *again).code == 0


def test_a_setting_goes_to_the_second_framework_alone(serried: Call) -> None:
    given = ("--compare-set", "data_parallel_replicate_degree=2")
    shown = serried("groups", *SIZES, "--compare", "torchtitan", *given, "--format", "json")
    assert shown.code == 0, shown.err
    assert '"dp_replicate": 2' in shown.out


def test_a_file_is_compared_with_itself_at_other_sizes(serried: Call, tmp_path: Path) -> None:
    script = tmp_path / "train.sh"
    script.write_text(SCRIPT, encoding="utf-8")
    same = serried("groups", str(script), "--compare", str(script))
    other = serried("groups", str(script), "--compare", str(script), "--compare-set", "pp=4")
    assert (same.code, other.code) == (0, 1)
    assert "rank 0's pipeline group is [0 8] under train.sh (pp)" in other.out
    assert "[0 4 8 12] under train.sh pp=4 (pp)" in other.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("--compare-set", "tp=4"),
            "--compare-set gives sizes of what is compared; give --compare too",
        ),
        (
            ("--compare", "internlm", "--compare-set", "tp=two"),
            "tp=two is not a whole number; one such as 16 is",
        ),
        (
            ("--compare", "internlm", "--compare-set", "tp"),
            "'tp' is not a setting; one reads KEY=VALUE, such as num_experts=4",
        ),
        (
            ("--compare", "internlm", "--compare-set", "tp=3"),
            "tp=3 does not divide 16 ranks; sizes that do: 1, 2, 4, 8, 16",
        ),
    ],
)
def test_what_cannot_be_compared_is_said(
    words: tuple[str, ...], sentence: str, serried: Call
) -> None:
    shown = serried("groups", *SIZES, *words)
    assert (shown.code, shown.err) == (2, f"serried: {sentence}\n")


@pytest.mark.parametrize("is_first", [True, False])
def test_options_override_a_file_before_and_behind_it(
    is_first: bool, serried: Call, tmp_path: Path
) -> None:
    script = tmp_path / "train.sh"
    script.write_text(SCRIPT, encoding="utf-8")
    options = ("--tp", "4", "--world-size", "32")
    words = (*options, str(script)) if is_first else (str(script), *options)
    shown = serried("groups", *words, "--format", "json")
    assert shown.code == 0, shown.err
    assert '"world_size": 32' in shown.out
    assert '"tp": 4' in shown.out
    assert '"pp": 2' in shown.out


def test_chinese_names_stand_without_gaps(serried: Call) -> None:
    told = serried(
        "groups", *SIZES, "--compare", "megatron", "--compare-set", "pp=4", "--lang", "zh"
    )
    assert "选项和 megatron pp=4 " in told.out
    assert "在选项（tp）里是" in told.out or "在选项（dp）里是" in told.out
    assert "选项 " not in told.out.partition("\n\n")[2]
