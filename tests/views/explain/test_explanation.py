"""The explanations: one for every combination of dimensions, right, short, in two languages."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import combinations
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried import frameworks
from serried.collective.registry import COLLECTIVES
from serried.errors import InputError
from serried.frameworks import Sizes
from serried.views.explain.collectives import explained_collective
from serried.views.explain.content import items, line, part, table
from serried.views.explain.explanation import Explanation, explanation, links_of
from serried.views.sentences import LANGUAGES
from tests.views.explain.reader import has_chinese, names_communication, stray_english

DENSE = ("dp", "tp", "pp", "cp")
NAMED = (
    *("dp", "tp", "pp", "cp", "dp+tp", "dp+pp", "dp+tp+pp"),
    *("cp+dp", "cp+dp+tp", "cp+dp+pp", "cp+dp+tp+pp"),
)
"""The types that the playground offers."""


def subsets(dims: Collection[str]) -> list[str]:
    sizes = range(1, len(dims) + 1)
    return ["+".join(chosen) for size in sizes for chosen in combinations(dims, size)]


DENSE_SUBSETS = subsets(DENSE)
SUBSETS = subsets((*DENSE, "ep"))


MEGATRON = frameworks.layout("megatron", Sizes(64, tp=2, pp=2, cp=2, ep=2, etp=1))
"""A layout in which every dimension is split."""


def explained(dims: str, lang: str = "en") -> Explanation:
    return explanation(MEGATRON, dims.split("+"), lang=lang)


def prose(dims: str, lang: str = "en") -> str:
    return "\n".join(p for section in explained(dims, lang).sections for p in section.paragraphs)


def with_dim(dim: str) -> list[str]:
    return [dims for dims in DENSE_SUBSETS if dim in dims.split("+")]


# ----------------------------------------------------------------------- complete


def test_there_are_fifteen_combinations_and_the_named_types_are_among_them() -> None:
    assert len(DENSE_SUBSETS) == 15
    assert {frozenset(t.split("+")) for t in NAMED} <= {
        frozenset(d.split("+")) for d in DENSE_SUBSETS
    }


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("dims", SUBSETS)
def test_every_combination_is_explained_in_a_few_sections(dims: str, lang: str) -> None:
    text = explained(dims, lang)
    assert 2 <= len(text.sections) <= 5
    for section in text.sections:
        assert section.heading
        assert all(paragraph.strip() for paragraph in section.paragraphs)
        assert section.paragraphs


@pytest.mark.parametrize("dims", SUBSETS)
def test_a_title_names_exactly_its_dimensions(dims: str) -> None:
    for lang in LANGUAGES:
        written = re.findall(r"\b(?:CP|DP|TP|PP|EP)\b", explained(dims, lang).title)
        assert sorted(written) == sorted(dims.upper().split("+"))


@pytest.mark.parametrize("dims", SUBSETS)
def test_both_languages_have_the_same_sections_paragraphs_and_reading(dims: str) -> None:
    english, chinese = explained(dims, "en"), explained(dims, "zh")
    assert [len(s.paragraphs) for s in english.sections] == [
        len(s.paragraphs) for s in chinese.sections
    ]
    assert english.reading == chinese.reading


@pytest.mark.parametrize("dims", DENSE_SUBSETS)
def test_an_explanation_fits_beside_the_picture(dims: str) -> None:
    assert len(prose(dims).split()) <= 480
    assert len(prose(dims, "zh")) <= 1450


@given(chosen=st.sets(st.sampled_from((*DENSE, "ep")), min_size=1), data=st.data())
def test_the_order_of_dimensions_does_not_matter(chosen: set[str], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(sorted(chosen)))
    lang = data.draw(st.sampled_from(LANGUAGES))
    assert explanation(MEGATRON, shuffled, lang=lang) == explanation(MEGATRON, chosen, lang=lang)


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("dims", [d for d in DENSE_SUBSETS if "+" in d])
def test_a_combination_has_advice_of_its_own(dims: str, lang: str) -> None:
    own = {p for section in explained(dims, lang).sections[2:] for p in section.paragraphs}
    for smaller in subsets(dims.split("+"))[:-1]:
        parts = explained(smaller, lang).sections[2:]
        assert not own & {p for section in parts for p in section.paragraphs}


@pytest.mark.parametrize("dims", DENSE_SUBSETS)
def test_experts_add_a_section_to_any_other_text(dims: str) -> None:
    for lang in LANGUAGES:
        base, with_experts = explained(dims, lang), explained(f"{dims}+ep", lang)
        assert with_experts.sections[:-1] == base.sections
        assert "all-to-all" in " ".join(with_experts.sections[-1].paragraphs)
        assert set(base.reading) < set(with_experts.reading)


def test_all_texts_on_file_are_used() -> None:
    on_file = {key for name in ("alone", "pairs", "several") for key in part(f"{name}.en")}
    assert {frozenset(key.split("+")) for key in on_file - {"+ep"}} == {
        frozenset(dims.split("+")) for dims in [*DENSE_SUBSETS, "ep"]
    }


# ----------------------------------------------------------------------- language


@pytest.mark.parametrize("dims", SUBSETS)
def test_chinese_is_chinese_throughout(dims: str) -> None:
    text = explained(dims, "zh")
    written = [text.title, *(s.heading for s in text.sections), *prose(dims, "zh").split("\n")]
    assert [line for line in written if not has_chinese(line)] == []
    assert [line for line in written if stray_english(line)] == []


@pytest.mark.parametrize("dims", SUBSETS)
def test_english_holds_no_chinese(dims: str) -> None:
    text = explained(dims)
    assert not has_chinese(text.title + prose(dims) + "".join(s.heading for s in text.sections))


def test_chinese_lines_are_joined_without_gaps() -> None:
    for dims in SUBSETS:
        assert not re.search(r"[\u4e00-\u9fff] [\u4e00-\u9fff]", prose(dims, "zh"))


# ----------------------------------------------------------------------- right


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("dims", SUBSETS)
def test_the_section_on_traffic_names_the_communication(dims: str, lang: str) -> None:
    assert names_communication(" ".join(explained(dims, lang).sections[1].paragraphs))


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("dims", DENSE_SUBSETS)
def test_forward_and_backward_are_both_told(dims: str, lang: str) -> None:
    traffic = " ".join(explained(dims, lang).sections[1].paragraphs).lower()
    words = {"en": ("forward", "backward"), "zh": ("前向", "反向")}[lang]
    assert [word for word in words if word not in traffic] == []


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("dims", with_dim("pp"))
def test_pipelines_tell_the_bubble_and_the_point_to_point_messages(dims: str, lang: str) -> None:
    assert "(p-1)/(m+p-1)" in prose(dims, lang)
    assert {"en": "point to point", "zh": "点对点"}[lang] in prose(dims, lang).replace("-", " ")


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("dims", with_dim("cp"))
def test_context_tells_that_k_and_v_travel_and_gradients_span_cp(dims: str, lang: str) -> None:
    text = prose(dims, lang)
    assert re.search(r"K and V|K、V|K 和 V", text)
    assert re.search(r"over cp|over dp × cp|over all dp × cp|dp × cp|在 cp", text)
    if "dp" in dims.split("+"):
        assert "dp_cp" in text


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("dims", with_dim("tp"))
def test_tensor_parallelism_counts_two_all_reduces_each_way(dims: str, lang: str) -> None:
    counted = r"two forward and\s+two backward|two all-reduces forward and two backward"
    chinese = r"前向两次[、，]反向两次|前向两次（激活值），\s*反向两次"
    assert re.search({"en": counted, "zh": chinese}[lang], prose(dims, lang))


@pytest.mark.parametrize("dims", with_dim("dp"))
def test_data_ranks_read_different_samples(dims: str) -> None:
    assert "samples" in prose(dims)
    assert "different" in prose(dims) or "other samples" in prose(dims)
    assert "样本" in prose(dims, "zh")


def test_context_parallelism_is_not_said_to_need_fp8() -> None:
    assert "not FP8" in prose("cp")
    assert "并不需要 FP8" in prose("cp", "zh")


@pytest.mark.parametrize(("microbatches", "share"), [(8, "27%"), (32, "9%")])
def test_the_bubble_example_follows_from_the_formula(microbatches: int, share: str) -> None:
    stages = 4
    assert f"{(stages - 1) / (microbatches + stages - 1):.0%}" == share
    assert f"{share} at m = {microbatches}" in prose("pp")
    assert f"m = {microbatches} 是 {share}" in prose("pp", "zh")


def test_the_rank_lists_in_the_text_are_those_of_the_frameworks() -> None:
    sizes = Sizes(16, tp=2, pp=4)
    megatron, internlm = (frameworks.layout(name, sizes) for name in ("megatron", "internlm"))
    for layout, data, pipe in ((megatron, "dp", "pp"), (internlm, "data", "pipe")):
        for kind in (data, pipe):
            first = f"[{' '.join(map(str, layout.groups(kind)[0]))}]"
            assert first in prose("dp+tp+pp")
            assert first in prose("dp+tp+pp", "zh")


def test_the_sizes_of_llama_3_multiply_to_its_gpus() -> None:
    for lang in LANGUAGES:
        (found,) = re.findall(r"16,384.*?(tp \d+).*?(cp \d+).*?(pp \d+).*?(dp \d+)", prose_4d(lang))
        assert prod(int(word.split()[1]) for word in found) == 16_384


def prose_4d(lang: str) -> str:
    return prose("cp+dp+tp+pp", lang).replace("\n", " ")


def test_the_break_even_of_tensor_and_data_traffic_is_computed_right() -> None:
    hidden, tp = 4096, 8
    tp_values_per_token = 4 * 2 * hidden
    dp_values = 2 * 12 * hidden**2 / tp
    assert dp_values / tp_values_per_token == 3 * hidden / tp == 1536
    assert "1,536 tokens" in prose("dp+tp")
    assert "1536 个 token" in prose("dp+tp", "zh")


# ----------------------------------------------------------------------- reading


def test_every_link_is_an_https_address_with_a_title_in_its_own_language() -> None:
    for dims in SUBSETS:
        for link in explained(dims).reading:
            assert re.fullmatch(r"https://[\w.-]+\.[a-z]+/[^\s?#]+", link.url)
            assert link.lang in LANGUAGES
            assert has_chinese(link.title) == (link.lang == "zh") or "ring attention" in link.title


def test_papers_are_named_by_their_arxiv_number() -> None:
    urls = [link.url for dims in SUBSETS for link in explained(dims).reading]
    papers = [url for url in urls if "arxiv.org" in url]
    assert papers
    assert all(re.fullmatch(r"https://arxiv\.org/abs/\d{4}\.\d{5}", url) for url in papers)


@pytest.mark.parametrize("dims", SUBSETS)
def test_no_reading_list_is_empty_or_repeats_itself(dims: str) -> None:
    reading = explained(dims).reading
    assert reading
    assert len({link.url for link in reading}) == len(reading)


def test_every_link_on_file_is_in_some_list() -> None:
    listed = {link.url for dims in SUBSETS for link in explained(dims).reading}
    for name in COLLECTIVES:
        listed |= {link.url for link in explained_collective(name, lang="en").reading}
    for names in table(part("reading")["cards"]).values():
        listed |= {link.url for link in links_of([line(each) for each in items(names)])}
    on_file = {str(table(link)["url"]) for link in table(part("reading")["links"]).values()}
    assert listed == on_file


# ----------------------------------------------------------------------- mistakes


def test_an_unknown_dimension_is_refused_by_name() -> None:
    with pytest.raises(InputError) as error:
        explanation(MEGATRON, ["dp", "zp"], lang="en")
    assert str(error.value) == (
        "there is no dimension 'zp' to explain; those there are: cp, dp, tp, pp, ep"
    )


def test_no_dimension_at_all_is_refused() -> None:
    with pytest.raises(InputError) as error:
        explanation(MEGATRON, [], lang="en")
    assert str(error.value) == "no dimension to explain is named; name some of cp, dp, tp, pp, ep"


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(InputError) as error:
        explanation(MEGATRON, ["dp"], lang="fr")
    assert str(error.value) == "language 'fr' is not known; those that are: en, zh"
