"""What explanations say under every setting: true of what is sharded, sent and called there."""

from __future__ import annotations

import re
from functools import cache

import pytest

from serried.frameworks import FRAMEWORKS, Sizes
from serried.mesh import Layout
from serried.views.explain.content import localized, table
from serried.views.explain.explanation import DIMS, explanation
from serried.views.explain.frameworks import SHARDED, WHOLE
from serried.views.explain.practice import practice
from serried.views.explain.words import about_in, basics, note_in
from serried.views.sentences import LANGUAGES
from tests.views.explain.kinds_made import TRIED, kinds_made
from tests.views.explain.reader import has_chinese
from tests.views.explain.settings_tried import layouts, made

SAME = {"en": re.compile("hold the same weights|same weights, other"), "zh": re.compile("权重相同")}
UNLESS = {"en": re.compile("shard|parts of them|decides"), "zh": re.compile("分片|决定")}


@cache
def told(number: int, lang: str) -> tuple[str, ...]:
    """Returns every sentence that is shown of a layout, each paragraph by itself."""
    layout = layouts()[number]
    dims = [dim for dim in DIMS if dim in layout.dims]
    several = {*((dim,) for dim in dims), tuple(dims), tuple(dims[:2]), tuple(dims[1:3])} - {()}
    texts = [basic.text for basic in basics(layout, lang)]
    texts += [note_in(layout, kind.name, lang) for kind in layout.kinds]
    texts += [about_in(layout, kind, lang) for kind in layout.kinds]
    for chosen in several:
        for section in explanation(layout, chosen, lang=lang).sections:
            texts += section.paragraphs
    return tuple(dict.fromkeys(text for text in texts if text))


def name_of(layout: Layout) -> str:
    given = ",".join(f"{key}={value}" for key, value in layout.settings.items())
    return f"{layout.framework}@{layout.version}:{given[:60]}"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_nobody_is_said_to_hold_the_same_weights_where_they_are_sharded(lang: str) -> None:
    for number, layout in enumerate(layouts()):
        holds = practice(layout).facts["holds"]
        wrong = [text for text in told(number, lang) if SAME[lang].search(text)]
        if holds not in SHARDED:
            wrong = [text for text in wrong if not UNLESS[lang].search(text)]
        assert holds in WHOLE or wrong == [], name_of(layout)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_kinds_that_a_sentence_names_are_made_there(lang: str) -> None:
    for number, layout in enumerate(layouts()):
        here = {kind.name for kind in layout.kinds} | set(FRAMEWORKS[layout.framework].options)
        here |= set(re.findall(r"\w+", layout.order))
        for mesh in layout.meshes.values():
            here |= set(mesh.axes)
        strange = (FOREIGN - here) - ABSENT.get(layout.framework, set())
        for text in told(number, lang):
            named = set(re.findall(r"[A-Za-z][\w]*_\w+", text))
            assert not strange & named, (name_of(layout), text)


FOREIGN = {
    kind for name in TRIED if name not in ("custom", "devicemesh") for kind in kinds_made(name)
}
FOREIGN = {kind for kind in FOREIGN if "_" in kind}
"""Names of kinds that could be nothing else, such as dp_cp; those of one word are words too."""

ABSENT = {
    "megatron": {"dp_cp", "tp_ep"},
    "paddle": {"dp_sep"},
    "torchtitan": {"dp_shard"},
    "internlm": {"sequence_parallel"},
    "internevo": {"sequence_parallel"},
}
"""Kinds that a sentence may name though not made: "with sep above 1 it runs in dp_sep"."""


@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_other_framework_is_named(lang: str) -> None:
    for number, layout in enumerate(layouts()):
        own = {"deepspeed": {"Megatron"}, "megatron": {"FSDP"}}.get(layout.framework, set())
        others = {"Megatron", "InternLM", "InternEvo", "DeepSpeed", "torchtitan", "ColossalAI"}
        others = {each for each in others - own if each.lower() != layout.framework}
        if layout.framework in ("internlm", "internevo"):
            others -= {"InternLM", "InternEvo"}
        if layout.framework == "accelerate":
            others -= {"DeepSpeed"}
        for text in told(number, lang):
            assert not [each for each in others if each in text], (name_of(layout), text)


def test_both_languages_fill_every_sentence() -> None:
    for number, layout in enumerate(layouts()):
        english, chinese = told(number, "en"), told(number, "zh")
        assert len(english) and len(chinese), name_of(layout)
        for text in (*english, *chinese):
            assert not re.search(r"[{}]|  ", text), (name_of(layout), text)
        assert all(has_chinese(text) or " x " in text for text in chinese), name_of(layout)


def test_every_sentence_on_file_holds_under_some_setting() -> None:
    used: dict[str, set[str]] = {}
    for layout in layouts():
        for fact, variant in practice(layout).facts.items():
            used.setdefault(fact, set()).add(variant)
    for lang in LANGUAGES:
        written = localized("practice", lang)
        idle = {f"{f}.{v}" for f in written for v in set(table(written[f])) - used.get(f, set())}
        assert idle == set()


@pytest.mark.parametrize(
    ("layout", "holds", "says"),
    [
        (made("fsdp", Sizes(16)), "shards", "The weights are sharded"),
        (made("torchtitan", Sizes(16, tp=2)), "shards", "each rank of dp_shard holds one part"),
        (made("deepspeed", Sizes(16, zero=3)), "shards", "each rank of data holds one part"),
        (made("deepspeed", Sizes(16, zero=0)), "whole", "hold the same weights"),
        (made("deepspeed", Sizes(16)), "open", "At zero_optimization.stage 0, the default"),
        (made("megatron", Sizes(16, zero=1)), "state", "sharded (ZeRO-1)"),
        (made("internlm", Sizes(16)), "owners", "dealt out over zero1"),
        (made("custom", Sizes(16, tp=2)), "program", "your program decides"),
    ],
)
def test_what_data_ranks_hold_goes_by_framework_and_settings(
    layout: Layout, holds: str, says: str
) -> None:
    assert practice(layout).facts["holds"] == holds
    assert says in " ".join(explanation(layout, ["dp"], lang="en").sections[0].paragraphs)


@pytest.mark.parametrize(
    ("dispatcher", "ep", "tp_ep"),
    [
        ("allgather", "nothing travels here", "an all-gather brings the tokens"),
        ("alltoall", "two all-to-alls per MoE layer", "token counts"),
        ("flex", "nothing travels here", "a fused dispatch"),
    ],
)
def test_tokens_travel_where_the_dispatcher_sends_them(
    dispatcher: str, ep: str, tp_ep: str
) -> None:
    sizes = Sizes(16, tp=2, ep=2, options={"moe_token_dispatcher_type": dispatcher})
    layout = made("megatron", sizes)
    assert ep in note_in(layout, "ep", "en")
    assert tp_ep in note_in(layout, "tp_ep", "en")
    said = " ".join(explanation(layout, ["ep"], lang="en").sections[1].paragraphs)
    assert ("an all-to-all in ep" in said) == (dispatcher == "alltoall")


def test_a_tensor_group_under_isp_is_not_said_to_split_weights() -> None:
    options = {"tensor.mode": "isp", "weight.size": "4"}
    layout = made("internevo", Sizes(16, tp=4, options=options))
    first = explanation(layout, ["tp"], lang="en").sections[0].paragraphs[0]
    assert "splits no weights" in first
    assert "split over weight instead" in first
    assert about_in(layout, layout.kind("tensor"), "en") == "parts of the same sequences"
    assert about_in(layout, layout.kind("zero1"), "en") == "shards of the optimizer state"
    assert about_in(layout, layout.kind("weight_data"), "en") == "same parts of the weights"
    legend = {basic.dim: basic.text for basic in basics(layout, "en")}
    assert "parts of the same sequences" in legend["tp"]


@pytest.mark.parametrize(
    ("layout", "heading"),
    [
        (made("deepspeed", Sizes(16, options={"sequence_parallel_size": "4"})), "Ulysses"),
        (made("deepspeed", Sizes(16, options={"zero_hpz_partition_size": "8"})), "hpZ"),
        (made("deepspeed", Sizes(16, options={"zero_quantized_gradients": "true"})), "qgZ"),
        (made("deepspeed", Sizes(16, options={"mics_shard_size": "8"}), "0.18.9"), "MiCS"),
        (
            made(
                "internevo",
                Sizes(16, tp=4, options={"tensor.mode": "isp", "weight.size": "4"}),
            ),
            "Weight parallelism",
        ),
        (made("accelerate", Sizes(16, options={"sp_size": "4"})), "Ulysses"),
        (made("paddle", Sizes(16, options={"sep_degree": "2"})), "sep"),
        (made("megatron", Sizes(16, ep=2, tp=2)), "Experts split as well"),
        (made("megatron", Sizes(16, options={"gtp_remat_size": "2"}), "0.19.0"), "gtp_remat"),
    ],
)
def test_what_else_a_job_does_has_a_section(layout: Layout, heading: str) -> None:
    english = explanation(layout, ["dp"], lang="en")
    assert any(heading in section.heading for section in english.sections)
    assert len(explanation(layout, ["dp"], lang="zh").sections) == len(english.sections)
