"""A layout's payload says what the layout says: groups, places, stages, colours, prose."""

from __future__ import annotations

import numpy as np
import pytest

from serried import frameworks
from serried.frameworks import FRAMEWORKS, Sizes
from serried.mesh import Placement
from serried.mesh.rank import place_of
from serried.views.colours import FAMILIES
from serried.views.web.layout.payload import layout_payload, page_answer, rank_answer
from serried.views.web.wire.query import read_query
from tests.views.web.reader import Message, read

TYPES = [
    *("dp", "tp", "pp", "cp", "dp,tp", "dp,pp", "dp,tp,pp"),
    *("dp,cp", "dp,tp,cp", "dp,pp,cp", "dp,tp,pp,cp"),
]


def ask(lang: str = "en", **words: str) -> Message:
    asked = {name: word.split("\n") for name, word in {"world_size": "16", **words}.items()}
    return read(layout_payload(read_query(asked), lang))


@pytest.mark.parametrize("dims", TYPES)
def test_each_type_carries_the_groups_of_its_dimensions(dims: str) -> None:
    message = ask(world_size="16", tp="2", pp="2", cp="2", dims=dims)
    layout = frameworks.layout("megatron", Sizes(16, tp=2, pp=2, cp=2))
    shown = message.header["shown"]
    assert [each["dim"] for each in shown] == dims.split(",")
    for number, each in enumerate(shown):
        assert message.lists(number) == layout.groups(each["kind"]).lists()
        owner = message.columns[f"group:{number}"]
        assert all(rank in message.lists(number)[owner[rank]] for rank in range(16))
    folded = {each["kind"] for each in shown if each["dim"] == "dp"}
    assert folded <= ({"dp_cp"} if "cp" in dims else {"dp"})


def test_without_a_type_neither_groups_nor_an_explanation_are_sent() -> None:
    message = ask(world_size="16")
    assert message.header["shown"] == []
    assert message.header["explanation"] is None
    assert not any(name.startswith("members") for name in message.columns)


def test_the_page_s_words_are_there_whatever_the_layout() -> None:
    page = page_answer("en")
    assert {each["dim"] for each in page["basics"]} >= {"dp", "tp", "pp", "cp"}
    assert set(page["looks"]) == set(FAMILIES)


def test_a_size_is_offered_where_a_layout_or_what_travels_depends_on_it() -> None:
    takes = {each["name"]: set(each["sizes"]) for each in page_answer("en")["frameworks"]}
    without_stages = {"devicemesh", "custom"}  # what they share is up to the user's program
    assert {name for name, sizes in takes.items() if "zero" not in sizes} == without_stages
    assert {name for name, sizes in takes.items() if "zero1" in sizes} == {"internlm", "internevo"}
    said = {
        str(ask(framework="deepspeed", zero=zero, dims="dp").header["explanation"])
        for zero in "0123"
    }
    assert len(said) == 4


def test_ranks_carry_node_stage_and_coordinates() -> None:
    message = ask(world_size="32", tp="2", pp="4", gpus_per_node="8", gpus_per_rank="2", dims="tp")
    layout = frameworks.layout("megatron", Sizes(32, tp=2, pp=4))
    placement = Placement(32, gpus_per_node=8, gpus_per_rank=2)
    for rank in range(32):
        place = place_of(layout, placement, rank)
        assert message.columns["node"][rank] == place.node
        assert message.columns["local_rank"][rank] == place.local_rank
        assert message.columns["stage"][rank] == place.stage
        for axis in ("tp", "dp", "pp"):
            assert message.columns[f"axis:{axis}"][rank] == place.coordinates[axis]
    assert "axis:cp" not in message.columns


def test_places_within_a_stage_count_its_ranks() -> None:
    message = ask(world_size="16", tp="2", pp="4", order="tp-cp-ep-pp-dp", dims="pp")
    stage, place = message.columns["stage"], message.columns["place_in_stage"]
    for each in range(4):
        assert sorted(place[stage == each].tolist()) == [0, 1, 2, 3]
        ranks = np.flatnonzero(stage == each)
        assert ranks[np.argsort(place[ranks])].tolist() == sorted(ranks.tolist())


def test_a_group_says_over_how_many_nodes_it_spreads() -> None:
    message = ask(world_size="16", tp="2", pp="4", dims="tp,pp")
    assert message.columns["nodes:0"].tolist() == [1] * 8
    assert message.columns["nodes:1"].tolist() == [2] * 4


def test_each_group_has_a_colour_of_its_own() -> None:
    message = ask(world_size="64", tp="2", pp="4", dims="dp,tp,pp")
    for number in range(3):
        colours = message.columns[f"colour:{number}"].tolist()
        assert len(set(colours)) == len(colours) == len(message.lists(number))


def test_dimensions_keep_their_marks_and_other_kinds_take_marks_of_their_own() -> None:
    message = ask(world_size="16", tp="2", pp="4", dims="dp,tp,pp,cp", kind="mp\nembd")
    marks = [each["mark"] for each in message.header["shown"]]
    assert marks[:4] == ["triangle", "pentagon", "hexagon", "square"]
    assert len(set(marks)) == 6
    assert not set(marks[4:]) & {look.mark for look in FAMILIES.values()}


def test_a_rank_in_no_group_of_a_kind_is_marked_so() -> None:
    message = ask(world_size="16", pp="4", dims="pp", kind="embd")
    owner = message.columns["group:1"]
    assert {rank for rank in range(16) if owner[rank] < 0} == set(range(4, 12))
    assert [each["overlaps"] for each in message.header["shown"]] == [False, False]


@pytest.mark.parametrize("name", sorted(FRAMEWORKS))
def test_every_framework_is_offered_with_what_it_takes(name: str) -> None:
    (offered,) = [each for each in page_answer("en")["frameworks"] if each["name"] == name]
    assert offered["dims"] == list(FRAMEWORKS[name].dims)
    assert offered["version"] == FRAMEWORKS[name].version
    assert set(offered["dims"]) <= set(offered["sizes"])


@pytest.mark.parametrize("name", sorted(FRAMEWORKS))
def test_every_kind_of_every_framework_can_be_sent(name: str) -> None:
    kinds = [each["name"] for each in ask(framework=name).header["kinds"]]
    message = ask(framework=name, kind="\n".join(kinds))
    layout = frameworks.layout(name, Sizes(16))
    for number, kind in enumerate(kinds):
        assert message.lists(number) == layout.groups(kind).lists()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_prose_comes_in_the_language_asked_for(lang: str) -> None:
    explanation = ask(lang, dims="dp,tp").header["explanation"]
    words = explanation["sections"][0]["paragraphs"][0]
    assert any("\u4e00" <= letter <= "\u9fff" for letter in words) == (lang == "zh")
    assert all(link["url"].startswith("http") for link in explanation["reading"])


def test_a_rank_answers_with_its_place_its_groups_and_what_they_carry() -> None:
    asked = {"world_size": "16", "tp": "2", "pp": "4", "gpus_per_rank": "2", "dims": "tp"}
    query = read_query({name: [word] for name, word in asked.items()})
    answer = rank_answer(query, 5, "en")
    assert answer["schema"] == "serried.rank/1"
    assert (answer["node"], answer["local_rank"], answer["gpus"]) == (1, 1, (2, 3))
    assert (answer["stage"], answer["previous"], answer["next"]) == (1, 1, 9)
    assert (answer["groups"]["tp"], answer["numbers"]["tp"]) == ([[4, 5]], [2])
    assert all(answer["notes"].values())


def test_sixteen_thousand_ranks_are_sent_whole() -> None:
    message = ask(world_size="16384", tp="8", pp="16", cp="2", dims="dp,tp,pp,cp")
    layout = frameworks.layout("megatron", Sizes(16384, tp=8, pp=16, cp=2))
    for number, each in enumerate(message.header["shown"]):
        assert np.array_equal(
            message.columns[f"members:{number}"], layout.groups(each["kind"]).members
        )


def test_nodes_that_differ_are_sent_as_they_are() -> None:
    message = ask(framework="deepspeed", world_size="5", gpus_per_node="4,1", dims="dp")
    assert message.columns["node"].tolist() == [0, 0, 0, 0, 1]
    assert message.columns["local_rank"].tolist() == [0, 1, 2, 3, 0]
    assert message.columns["nodes:0"].tolist() == [2]
    job = message.header["job"]
    assert (job["num_nodes"], job["node_gpus"], job["ranks_per_node"]) == (2, [4, 1], 4)
    assert "--gpus-per-node 4,1" in message.header["command"]
    place = rank_answer(read_query({"world_size": ["5"], "gpus_per_node": ["4,1"]}), 4, "en")
    assert (place["node"], place["local_rank"]) == (1, 0)
