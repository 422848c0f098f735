"""Terms, legend and notes on group kinds: complete, in two languages."""

from __future__ import annotations

import pytest

from serried.errors import InputError
from serried.views.explain import basics, kind_note, terms
from serried.views.explain.content import part, table
from serried.views.sentences import LANGUAGES
from tests.views.explain.kinds_made import TRIED, kinds_made
from tests.views.explain.reader import has_chinese, stray_english

TERMS = (
    *("world", "world_size", "node", "rank", "local_rank", "group", "process"),
    *("stage", "microbatch", "axis", "collective", "nvlink_domain"),
)
MADE = [(framework, kind) for framework in TRIED for kind in kinds_made(framework)]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_term_is_named_and_explained(lang: str) -> None:
    assert tuple(term.key for term in terms(lang)) == TERMS
    assert all(term.name and term.text for term in terms(lang))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_legend_holds_four_dimensions_and_how_to_read_stages(lang: str) -> None:
    assert [basic.dim for basic in basics(lang)] == ["dp", "tp", "pp", "cp", "stage"]
    assert all(basic.text for basic in basics(lang))


def test_a_process_may_own_several_gpus() -> None:
    assert "2 nodes of 4 GPUs with 2 GPUs per rank make a world size of 4" in text_of("world_size")


def test_the_local_rank_example_is_right() -> None:
    assert "rank 11 is local rank 3 of node 1" in text_of("local_rank")
    assert divmod(11, 8) == (1, 3)


def text_of(key: str) -> str:
    return next(term.text for term in terms("en") if term.key == key)


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize(("framework", "kind"), MADE)
def test_every_kind_that_can_be_made_has_a_note(framework: str, kind: str, lang: str) -> None:
    note = kind_note(framework, kind, lang)
    assert note, f"no note on {framework}'s {kind}"
    assert note.endswith("." if lang == "en" else "。")
    assert "{n}" not in note


def test_the_kinds_tried_include_every_optional_one() -> None:
    made = {kind for framework, kind in MADE if framework == "megatron"}
    assert {"dp_cp_ag", "dp_cp_gloo", "intra_dp_cp", "inter_dist_opt"} <= made
    assert {"HYBRID_DP_CP_GROUP_4", "HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L1"} <= made
    assert {"zero3_dp", "expert", "expert_data", "pipe"} <= {kind for _, kind in MADE}


@pytest.mark.parametrize("framework", ["megatron", "internlm"])
def test_both_languages_have_notes_on_the_same_kinds(framework: str) -> None:
    english, chinese = (table(part(f"kinds.{lang}")[framework]) for lang in LANGUAGES)
    assert list(english) == list(chinese)


@pytest.mark.parametrize("framework", ["megatron", "internlm"])
def test_no_note_is_on_a_kind_that_is_never_made(framework: str) -> None:
    made = [kind_note(framework, kind, "en") for kind in kinds_made(framework)]
    for name in table(part("kinds.en")[framework]):
        assert any(
            kind_note(framework, name.replace("{n}", number), "en") in made for number in "0248"
        ), name


def test_every_other_name_leads_to_a_note() -> None:
    notes = table(part("kinds.en")["megatron"])
    names = table(part("kind_names")["megatron"])
    assert [name for name, field in names.items() if field not in notes] == []


def test_old_versions_say_the_same_under_their_own_names() -> None:
    for name in ("_DATA_PARALLEL_GROUP_WITH_CP", "_HIERARCHICAL_CONTEXT_PARALLEL_GROUPS[1]"):
        field = {"_D": "dp_cp", "_H": "HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L1"}[name[:2]]
        assert kind_note("megatron", name, "en") == kind_note("megatron", field, "en")


def test_the_number_in_a_kind_is_spoken_of() -> None:
    assert "calls for 8 ranks" in kind_note("megatron", "HYBRID_DP_CP_GROUP_8", "en")
    assert "第 1 级" in kind_note("megatron", "HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L1", "zh")


def test_chinese_words_are_chinese() -> None:
    notes = [kind_note(framework, kind, "zh") for framework, kind in MADE]
    written = [*(t.text for t in terms("zh")), *(b.text for b in basics("zh")), *notes]
    assert [text for text in written if not has_chinese(text) or stray_english(text)] == []


def test_a_kind_that_nothing_is_written_on_has_no_note() -> None:
    assert kind_note("internlm", "dp_cp", "en") == ""
    assert kind_note("jax", "dp", "zh") == ""


def test_a_note_in_an_unknown_language_is_refused() -> None:
    with pytest.raises(InputError, match="language 'fr' is not known; those that are: en, zh"):
        kind_note("megatron", "dp", "fr")
