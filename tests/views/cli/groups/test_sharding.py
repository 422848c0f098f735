"""``serried groups --zero``: who shares what, and the bytes that a rank holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Call

ZERO = ("--world-size", "64", "--zero", "3")


def test_the_verdict_stands_first_and_within_100_columns(serried: Call) -> None:
    shown = serried("groups", *ZERO, "--parameters", "7.5B").out
    assert shown.splitlines()[2:4] == [
        "ZeRO 3: parameters, gradients and optimizer state are sharded over dp_cp, 64 ranks; "
        "1.88 GB a rank",
        "instead of 120 GB",
    ]
    assert max(map(len, shown.splitlines())) <= 100


@pytest.mark.parametrize("name", ["megatron", "deepspeed", "paddle"])
def test_each_stage_prints_something_else(serried: Call, name: str) -> None:
    words = ("groups", "--world-size", "16", "--framework", name, "--zero")
    assert len({serried(*words, str(stage)).out for stage in range(4)}) == 4


def test_without_a_stage_nothing_is_said_of_it(serried: Call) -> None:
    assert "ZeRO" not in serried("groups", "--world-size", "64").out


def test_a_number_of_parameters_asks_for_what_a_framework_shards_anyhow(serried: Call) -> None:
    words = ("groups", "--world-size", "8", "--framework", "fsdp", "--parameters", "8B")
    assert "ZeRO 3: parameters, gradients and optimizer state are sharded over dp_shard" in (
        serried(*words).out
    )


def test_json_has_a_sharding_object(serried: Call) -> None:
    words = ("--parameters", "7.5B", "--precision", "fp32-grads", "--format", "json")
    document = json.loads(serried("groups", *ZERO, *words).out)
    assert list(document) == [
        *("schema", "framework", "world_size", "sizes", "groups", "sharding"),
    ]
    shared = document["sharding"]
    assert (shared["stage"], shared["parameters"]) == (3, 7_500_000_000)
    assert shared["bytes"]["held"]["total"] == 18 * 7_500_000_000 // 64
    assert shared["bytes"]["whole"] == 18 * 7_500_000_000
    (dense,) = shared["weights"]
    assert dense["parameters"] == {"over": ["dp_cp"], "ranks": 64, "copies": 1}
    assert (dense["near"], dense["kept"], dense["across"]) == (None, False, None)


@pytest.mark.parametrize("name", ["zero.svg", "zero.png"])
def test_it_is_drawn_as_well(serried: Call, tmp_path: Path, name: str) -> None:
    where = tmp_path / name
    assert serried("groups", *ZERO, "-o", str(where)).code == 0
    assert where.read_bytes()[:4] in (b"<svg", b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("--zero", "3", "--framework", "nanotron"),
            "nanotron main-2411b022 has no ZeRO stage 3; it has 0 and 1: "
            "optimizer.zero_stage: 1 shards the optimizer's state",
        ),
        (
            ("--zero", "3", "--pp", "4", "--framework", "deepspeed"),
            "ZeRO stage 3 does not go with pp=4 in deepspeed, whose pipelines keep the gradients "
            "of all microbatches whole (runtime/pipe/engine.py); take stage 1 or 0, or pp=1",
        ),
        (("--precision", "fp32"), "--precision says something of --parameters; give that too"),
        (
            ("--parameters", "many"),
            "'many' is not a number of parameters; one reads 7.5B, 350M or 1e9, from 1 to "
            "100000000000000000",
        ),
        (
            ("-o", "picture.svg"),
            "svg draws what ranks share of a model's state; give --zero, or --parameters",
        ),
        (
            ("--zero", "3", "--framework", "custom", "-o", "picture.svg"),
            "custom lays out ranks alone, and what they share is up to the program; ask a "
            "framework that shards, such as megatron, deepspeed or fsdp",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(
    serried: Call, words: tuple[str, ...], sentence: str
) -> None:
    shown = serried("groups", "--world-size", "16", *words)
    assert (shown.code, shown.out, shown.err) == (2, "", f"serried: {sentence}\n")
