"""What the page is told of a plan is what ``serried plan`` prints."""

from __future__ import annotations

import json
import shlex

import pytest

from serried.plan.catalog import cluster_named, model_named
from serried.views.plan.words import COLOURS
from serried.views.web.plan.answer import plan_answer, plan_offers
from serried.views.web.plan.links import links_payload
from serried.views.web.plan.search import search_answer
from serried.views.web.wire.payload import unpack
from serried.views.web.wire.query import read_query
from tests.conftest import Call

WORDS = {
    **{"framework": ["deepspeed"], "world_size": ["16"], "tp": ["2"], "pp": ["4"], "zero": ["1"]},
    **{"model": ["llama3-8b"], "cluster": ["h100"], "sequence": ["8192"], "global_batch": ["64"]},
    **{"recompute": ["selective"], "micro_batch": ["2"]},
}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_document_is_the_one_that_its_command_prints(serried: Call, lang: str) -> None:
    answer = json.loads(json.dumps(plan_answer(read_query(WORDS), WORDS, lang)))
    command = shlex.split(answer["command"])[1:]
    printed = json.loads(serried(*command, "--format", "json", "--lang", lang).out)
    assert {name: answer[name] for name in printed} == printed
    assert set(answer) - set(printed) == {"job", "command", "words", "colours"}


def test_the_traffic_on_the_map_is_that_of_the_plan() -> None:
    header, columns = unpack(links_payload(read_query(WORDS), WORDS))
    plan = plan_answer(read_query(WORDS), WORDS, "en")
    told = {each["kind"] for each in plan["traffic"]}
    flows = {each["kind"]: each for each in header["flows"]}
    assert told == set(flows) | set(header["left_out"]) and {"tp", "pp", "dp"} <= set(flows)
    for number, flow in enumerate(header["flows"]):
        sent = sum(
            each["sent_bytes"] * each["times"]
            for each in plan["traffic"]
            if each["kind"] == flow["kind"]
        )
        assert flow["link_bytes"] == sent
        assert flow["link_bytes_per_s"] == sent / plan["time"]["step_s"]
        assert len(columns[f"hop:{number}"]) == 16


def test_every_part_that_is_drawn_has_its_word_and_colour() -> None:
    answer = plan_answer(read_query(WORDS), WORDS, "zh")
    for place in answer["memory"]:
        assert set(place["items"]) <= set(answer["words"]["memory"])
    assert set(answer["time"]["parts_s"]) <= set(answer["words"]["time"])
    drawn = {*answer["words"]["memory"], *answer["words"]["time"]}
    assert drawn <= set(COLOURS)


def test_what_is_offered_can_be_asked_for() -> None:
    offers = plan_offers()
    assert "llama3-8b" in offers["models"]
    assert "fp32" not in offers["compute"]
    for name in offers["models"]:
        assert model_named(name).name == name
    for name in offers["clusters"]:
        assert cluster_named(name).name == name


def test_a_search_is_the_one_that_its_command_prints(serried: Call) -> None:
    words = {**WORDS, "framework": ["megatron"], "world_size": ["8"]}
    answer = json.loads(json.dumps(search_answer(read_query(words), words, "en")))
    printed = json.loads(serried(*shlex.split(answer["command"])[1:], "--format", "json").out)
    assert {name: answer[name] for name in printed} == printed
    assert set(answer) - set(printed) == {"command", "words", "cloud"}
    assert printed["best"]
    assert search_answer(read_query(words), words, "zh")["words"]["recompute"]["full"] == "完全"


def test_the_cloud_of_a_search_holds_the_front_and_all_else_that_fits() -> None:
    words = {**WORDS, "framework": ["megatron"], "world_size": ["16"]}
    answer = search_answer(read_query(words), words, "en")
    cloud = answer["cloud"]
    made = zip(
        *(
            cloud[name]
            for name in ("manner", "tp", "pp", "micro_batch", "order", "step_s", "peak_bytes")
        ),
        strict=True,
    )
    kept = {
        (of["schedule"], *others, [*of["orders"], ""][order], float(f"{step:.6g}"), peak)
        for manner, *others, order, step, peak in made
        for of in [cloud["manners"][manner]]
    }
    front = {
        (
            each["asked"]["schedule"],
            *(each["asked"]["sizes"][name] for name in ("tp", "pp")),
            each["asked"]["micro_batch"],
            each["asked"]["order"],
            float(f"{each['step_s']:.6g}"),
            each["peak_bytes"],
        )
        for each in answer["pareto"]
        if each["step_s"] <= 3 * answer["pareto"][0]["step_s"]
    }
    assert front and front <= kept
    assert {order for _, _, _, _, order, _, _ in kept} >= {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"}
    assert len(cloud["step_s"]) <= answer["fitting"] and len(kept) > len(front)
