"""Two layouts side by side: whose peers differ, told from what the frameworks' groups are."""

from __future__ import annotations

import pytest

from serried import frameworks
from serried.errors import InputError
from serried.frameworks import Sizes
from serried.views.web.layout.beside import beside_payload
from serried.views.web.wire.payload import unpack

JOB = {"world_size": ["16"], "tp": ["2"], "pp": ["4"]}


def peers(framework: str, dim: str, sizes: Sizes) -> dict[int, frozenset[int]]:
    layout = frameworks.layout(framework, sizes)
    lists = layout.groups(layout.kind_of(dim)).lists()
    return {rank: frozenset(ranks) for ranks in lists for rank in ranks}


@pytest.mark.parametrize("other", ["internlm", "deepspeed", "nanotron", "custom"])
@pytest.mark.parametrize(("tp", "pp"), [(2, 4), (4, 2), (2, 1), (1, 2)])
def test_a_rank_differs_where_its_peers_do(other: str, tp: int, pp: int) -> None:
    words = {"world_size": ["16"], "tp": [str(tp)], "pp": [str(pp)], "dims": ["dp,tp,pp"]}
    header, _ = unpack(beside_payload(words | {"beside": [f"framework={other}"]}, "en"))
    sizes = Sizes(16, tp=tp, pp=pp)
    for dim in header["differ"].keys() - {"stage"}:
        mine, theirs = peers("megatron", dim, sizes), peers(other, dim, sizes)
        unlike = [rank for rank in range(16) if mine.get(rank) != theirs.get(rank)]
        assert header["differ"][dim] == len(unlike), dim


def test_the_sentence_says_how_many_and_in_what() -> None:
    asked = JOB | {"dims": ["dp,tp"], "beside": ["framework=internlm"]}
    header, columns = unpack(beside_payload(asked, "en"))
    assert header["told"][0].startswith("16 of 16 ranks differ between Megatron-core")
    assert header["told"][0].endswith("16 in their DP group, 12 in their stage")
    assert columns["differs"].tolist() == [1] * 16
    told = unpack(beside_payload(asked, "zh"))[0]["told"][0]
    assert "16 个 rank 中有 16 个不同" in told


def test_what_one_of_the_two_lacks_is_said() -> None:
    asked = JOB | {"dims": ["cp,tp"], "beside": ["framework=internlm"]}
    told = unpack(beside_payload(asked, "en"))[0]["told"]
    assert told[-1].endswith("has no CP")


def test_two_layouts_of_one_framework_are_named_by_what_differs() -> None:
    header, _ = unpack(beside_payload(JOB | {"beside": ["tp=4"]}, "en"))
    assert header["titles"] == ["tp=2, dp=2", "tp=4, dp=1"]


def test_equal_layouts_differ_nowhere() -> None:
    header, columns = unpack(beside_payload(JOB | {"beside": ["tp=2"]}, "en"))
    assert not columns["differs"].any()
    assert header["told"][0].startswith("all 16 ranks have the same peers")


def test_of_worlds_of_two_sizes_the_ranks_that_one_lacks_differ() -> None:
    header, columns = unpack(beside_payload(JOB | {"beside": ["world_size=24"]}, "en"))
    assert columns["differs"].tolist()[16:] == [1] * 8
    assert header["differ"]["tp"] == 8


def test_settings_of_one_framework_are_not_carried_to_another() -> None:
    asked = JOB | {"set": ["use_tp_pp_dp_mapping=true"], "beside": ["framework=internlm"]}
    question = unpack(beside_payload(asked, "en"))[0]["question"]
    assert "set" not in question
    assert question["framework"] == ["internlm"]


@pytest.mark.parametrize("beside", ["", "x=1", "lang=zh", "dims=tp"])
def test_words_that_are_none_of_a_job_are_refused(beside: str) -> None:
    with pytest.raises(InputError, match="words of a job"):
        beside_payload(JOB | {"beside": [beside]}, "en")


def test_a_layout_that_cannot_be_is_refused_in_its_own_words() -> None:
    with pytest.raises(InputError, match="internlm has no cp"):
        beside_payload(JOB | {"cp": ["2"], "beside": ["framework=internlm"]}, "en")
