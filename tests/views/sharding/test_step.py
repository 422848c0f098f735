"""A step under a sharding, as a table and as a document."""

from __future__ import annotations

import json

import pytest

from serried.errors import InputError
from serried.views.sharding.answer import StepAnswer
from tests.conftest import Call
from tests.frameworks.asking import asked

GIVEN = {"parameters": "7.5B"}


def step(line: str, layers: int | None = 2, microbatches: int = 1) -> StepAnswer:
    return StepAnswer.of(asked(line), GIVEN, layers=layers, microbatches=microbatches)


def test_the_table_has_a_row_per_event_with_what_is_held_after_it(serried: Call) -> None:
    words = ("--zero", "3", "--parameters", "7.5B", "--layers", "2", "--step", "1")
    lines = serried("groups", "--world-size", "64", *words).out.splitlines()
    assert " ".join(lines[:2]) == (
        "a step of 1 microbatch sends 44.3 GB from each rank; after backward of layer 0 it holds "
        "most, 16.8 GB"
    )
    assert [" ".join(line.split()) for line in lines[3:8]] == [
        "event layer microbatch collective over sends parameters gradients optimizer",
        "begin 234 MB 0 B 1.41 GB",
        "gather 0 0 all-gather dp_cp 7.38 GB 7.73 GB 0 B 1.41 GB",
        "forward 0 0 7.73 GB 0 B 1.41 GB",
        "free 0 0 234 MB 0 B 1.41 GB",
    ]
    assert max(map(len, lines)) <= 100


def test_a_pipeline_s_rank_has_its_part_of_the_layers() -> None:
    found = step("megatron 16 pp=4 zero=1", layers=8)
    assert len(found.layers) == 2
    assert sum(found.layers) == 7_500_000_000 // 4


def test_the_document_holds_every_event_and_the_peak() -> None:
    document = step("fsdp 8 sharding_strategy=HYBRID_SHARD devices_per_node=4").document("en")
    assert (document["schema"], document["stage"]) == ("serried.sharded-step/1", 3)
    joins = [event for event in document["events"] if event["what"] == "join"]
    assert joins[0]["moved"] == {
        "collective": "all-reduce",
        "over": ["dp_replicate"],
        "ranks": 2,
        "size": 1_875_000_000,
        "sent": 1_875_000_000,
    }
    assert document["events"][-1]["held"] == document["begin"]
    peak = document["events"][document["peak"]]
    assert (peak["what"], peak["layer"]) == ("backward", 0)
    assert document["sent"] == sum(e["moved"]["sent"] for e in document["events"] if e["moved"])


def test_a_gather_by_levels_names_both_kinds() -> None:
    line = "deepspeed@0.18.9 32 mics_shard_size=16 mics_hierarchical_params_gather=true"
    kinds = [event["moved"]["over"] for event in step(line).document("en")["events"][:2]]
    assert kinds == [["inter_node"], ["intra_node"]]


def test_a_step_without_a_number_of_parameters_is_refused() -> None:
    with pytest.raises(InputError, match="give their number too"):
        StepAnswer.of(asked("megatron 8 zero=1"), {}, layers=2, microbatches=1)


def test_the_page_is_told_the_same_as_the_command_line(serried: Call) -> None:
    words = "world_size=16&tp=2&zero=2&parameters=7B&layers=4&microbatches=2&precision=fp32-grads"
    page = json.loads(serried("serve", "--ask", f"sharding?{words}").out)
    asked_for = ("--world-size", "16", "--tp", "2", "--zero", "2", "--parameters", "7B")
    more = ("--precision", "fp32-grads", "--layers", "4", "--format", "json")
    groups = json.loads(serried("groups", *asked_for, *more[:2], *more[4:]).out)
    stepped = json.loads(serried("groups", *asked_for, *more, "--step", "2").out)
    assert page["schema"] == "serried.sharding/1"
    assert (page["sharding"], page["step"]) == (groups["sharding"], stepped)
    assert [row["weights"] for row in page["bars"]] == ["dense"]
    assert {each["name"] for each in page["precisions"]} >= {"fp16-adam", "fsdp2-mixed"}


def test_the_page_gets_no_step_or_sharding_where_there_is_none(serried: Call) -> None:
    words = ("serve", "--ask", "sharding?world_size=8&framework=custom")
    custom = json.loads(serried(*words).out)
    assert (custom["sharding"], custom["bars"], custom["step"]) == (None, [], None)
