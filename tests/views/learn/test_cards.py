"""Cards on words: complete in two languages, with the numbers of the job that is asked about."""

from __future__ import annotations

import re

import pytest

from serried.errors import InputError
from serried.frameworks import FRAMEWORKS
from serried.launch.request import LayoutRequest
from serried.mesh import Layout, Placement
from serried.plan.asked import plan_request
from serried.plan.job_plan import JobPlan, job_plan
from serried.views.explain.content import localized
from serried.views.learn.cards import TermCard, card, card_keys, key_of
from serried.views.sentences import LANGUAGES
from tests.views.explain.reader import has_chinese, stray_english

DIMENSIONS = ("dp", "tp", "pp", "cp", "ep", "etp")
MODEL = {"model": "llama3-8b", "cluster": "h100", "sequence": "8192", "global_batch": "64"}
JOB = LayoutRequest.of({"world_size": 16, "tp": 2, "pp": 4})


def of(
    key: str, lang: str = "en", rank: int | None = None, plan: JobPlan | None = None
) -> TermCard:
    return card(key, *JOB.laid_out(), lang=lang, rank=rank, plan=plan)


def laid_out(**sizes: int) -> tuple[Layout, Placement]:
    return LayoutRequest.of(sizes).laid_out()


@pytest.fixture(scope="module")
def planned() -> JobPlan:
    return job_plan(plan_request(JOB, MODEL))


# ----------------------------------------------------------------------- complete


def test_both_languages_have_the_same_cards_and_the_same_parts() -> None:
    english, chinese = (localized("cards", lang) for lang in LANGUAGES)
    assert list(english) == list(chinese)
    for key, entry in english.items():
        assert list(entry) == list(chinese[key]), key


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_card_can_be_said_of_every_framework(framework: str, lang: str) -> None:
    layout, placement = LayoutRequest.of({"world_size": 16}, framework=framework).laid_out()
    for key in card_keys():
        found = card(key, layout, placement, lang=lang, rank=3)
        told = [found.text, *found.here, *found.cost]
        told += [each for section in found.sections for each in section.paragraphs]
        assert not [each for each in told if re.search(r"[{}]", each)], (key, told)


@pytest.mark.parametrize("key", DIMENSIONS)
def test_a_dimension_says_what_is_split_repeated_and_sent_and_what_goes_wrong(key: str) -> None:
    headings = [section.heading for section in of(key).sections]
    assert headings[:3] == ["What is split", "What is repeated", "What travels, and when"]
    assert headings[-2:] == ["When to use it", "Common mistakes"]
    assert of(key).reading


@pytest.mark.parametrize("key", card_keys())
def test_every_card_says_what_goes_wrong_and_where_to_read_on(key: str) -> None:
    assert "Common mistakes" in [section.heading for section in of(key).sections]
    assert of(key).reading


def test_what_runs_over_a_dimension_s_groups_has_its_numbers_and_costs(planned: JobPlan) -> None:
    for key, dimension in (("sp", "tp"), ("fsdp", "zero")):
        assert of(key, plan=planned).cost == of(dimension, plan=planned).cost != ()
    assert of("sp").cost[0].startswith("By all-gather, each of 2 ranks sends 0.5 S")
    assert of("sp").here == of("tp").here
    assert of("moe").here == of("ep").here


def test_chinese_cards_are_chinese(planned: JobPlan) -> None:
    for key in card_keys():
        found = of(key, "zh", rank=5, plan=planned)
        told = [found.text, *found.here, *found.cost]
        told += [each for section in found.sections for each in section.paragraphs]
        for each in told:
            assert has_chinese(each), each
            assert not stray_english(each), each


# ----------------------------------------------------------------------- found by any name


@pytest.mark.parametrize(
    ("asked", "key"),
    [
        ("expert tensor parallel", "etp"),
        ("Expert-Tensor Parallelism", "etp"),
        ("专家张量并行", "etp"),
        ("tensor_model_parallel_size", "tp"),
        ("LOCAL_RANK", "local_rank"),
        ("pipeline bubble", "bubble"),
        ("气泡", "bubble"),
        ("distributed optimizer", "zero"),
        ("TFLOP/s", "flops"),
    ],
)
def test_a_card_is_found_by_any_of_its_names(asked: str, key: str) -> None:
    assert key_of(asked) == key


def test_a_word_that_is_nearly_right_is_pointed_to_and_any_other_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'zero'"):
        key_of("zerro")
    with pytest.raises(InputError, match="those there are: world, node"):
        key_of("photosynthesis")


# ----------------------------------------------------------------------- this job's numbers


def test_a_dimension_tells_its_groups_and_the_one_of_the_rank() -> None:
    told = of("dp", rank=5).here
    assert told[0] == "dp is 2 here: 8 groups (dp), each inside one node"
    assert told[-1] == "Rank 5 is in group 3: 5, 7"


def test_groups_that_leave_their_node_are_told() -> None:
    assert of("pp").here[0].endswith("over as many as 2 nodes each")
    assert "Groups that cross nodes: pp" in of("node").here


def test_a_dimension_that_is_not_split_says_so_and_costs_nothing() -> None:
    assert of("cp").here == ("This job does not split along cp: its size is 1",)
    assert of("cp").cost == ()


def test_numbers_follow_the_order_of_the_axes() -> None:
    swapped = LayoutRequest.of({"world_size": 16, "tp": 2, "pp": 4, "order": "tp-cp-ep-pp-dp"})
    told = card("numbering", *swapped.laid_out(), lang="en", rank=9).here
    assert told[1].endswith("grows by: tp 1, pp 2, dp 8")
    assert told[2] == "Rank 9 stands at tp 1, pp 0, dp 1"


def test_a_plan_prices_what_a_dimension_sends(planned: JobPlan) -> None:
    told = of("tp", plan=planned).cost
    sent = [each for each in planned.traffic if each.kind == "tp"]
    assert len(told) == len(sent) + 1
    assert all(each.startswith("Estimated: ") for each in told)
    assert f"{sent[0].times:,.0f} times a step" in told[0]


def test_without_a_plan_a_dimension_costs_bytes() -> None:
    made = laid_out(world_size=32)
    told = card("dp", *made, lang="en").cost
    assert told[0] == "By all-reduce, each of 32 ranks sends 1.94 S of a buffer of S bytes"
    assert f"{2 * 31 / 32:.3g}" == "1.94"


def test_the_bubble_is_planned_or_told_by_microbatches(planned: JobPlan) -> None:
    assert "4: 42.9%" in of("bubble").here[0]
    share = planned.parts["bubble"] / planned.step_s
    assert f"{share:.1%} of a step" in of("bubble", plan=planned).cost[0]


def test_zero_tells_its_stage_and_into_how_many_parts_it_cuts() -> None:
    made = laid_out(world_size=16, tp=2, zero=2)
    told = card("zero", *made, lang="en").here[0]
    assert told.startswith("This job is at stage 2; cut into 8 parts, one on each rank: gradients")


def test_a_framework_without_a_dimension_says_so() -> None:
    made = LayoutRequest.of({"world_size": 16}, framework="fsdp").laid_out()
    assert card("ep", *made, lang="en").here == ("fsdp has no ep groups",)


def test_a_rank_outside_the_world_is_refused() -> None:
    with pytest.raises(InputError, match="outside the world"):
        of("dp", rank=16)


def test_the_largest_groups_are_told_without_being_priced_step_by_step() -> None:
    told = card("dp", *laid_out(world_size=131_072), lang="en").cost
    assert len(told) == 1


@pytest.mark.parametrize("word", ["CUDA", "NCCL", "NVLink", "NIC", "ZB"])
def test_words_of_the_machine_tell_numbers_of_the_job_too(word: str) -> None:
    for lang in ("en", "zh"):
        assert re.search(r"\d|pp", " ".join(of(word, lang).here)), lang


def test_a_job_of_one_node_says_that_nothing_leaves_it() -> None:
    told = card("nvlink", *laid_out(world_size=8, tp=2), lang="en").here
    assert told[0] == "All ranks of this job are on one node"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_size_at_the_head_of_a_sentence_is_written_as_it_is_given(lang: str) -> None:
    told = [each for section in of("tp", lang=lang).sections for each in section.paragraphs]
    assert not [each for each in told if each.startswith("Tp ")]
