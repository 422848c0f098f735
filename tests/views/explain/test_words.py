"""Legend and notes on group kinds: complete, in two languages."""

from __future__ import annotations

import re

import pytest

from serried import frameworks
from serried.errors import InputError
from serried.frameworks import FRAMEWORKS, Sizes
from serried.mesh import Layout
from serried.views.explain.content import pairs, part
from serried.views.explain.words import about_in, basics, kind_note, note_in
from serried.views.sentences import LANGUAGES
from tests.views.explain.kinds_made import TRIED, kinds_made, layouts_tried
from tests.views.explain.reader import has_chinese, stray_english
from tests.views.explain.settings_tried import layouts

MEGATRON = frameworks.layout("megatron", Sizes(8))
SHARED = ("named", "by_rule")
"""Files of notes that are of no framework's own."""
MADE = [(framework, kind) for framework in TRIED for kind in kinds_made(framework)]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_legend_holds_four_dimensions_and_how_to_read_stages(lang: str) -> None:
    assert [basic.dim for basic in basics(MEGATRON, lang)] == ["dp", "tp", "pp", "cp", "stage"]
    assert all(basic.text for basic in basics(MEGATRON, lang))


# ----------------------------------------------------------------------- notes on group kinds


def test_every_framework_is_tried() -> None:
    assert set(TRIED) == set(FRAMEWORKS)


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("framework", TRIED)
def test_every_kind_that_can_be_made_has_a_note(framework: str, lang: str) -> None:
    for layout in layouts_tried(framework):
        for kind in layout.kinds:
            note = note_in(layout, kind.name, lang)
            assert note.endswith("." if lang == "en" else "。"), f"no note on {kind.name}"
            assert "{" not in note


@pytest.mark.parametrize(("framework", "kind"), MADE)
def test_a_kind_of_a_framework_has_a_note_that_somebody_wrote(framework: str, kind: str) -> None:
    by_rule = kind.startswith(("axis:", "worker-")) or framework in ("devicemesh", "custom")
    assert by_rule or written(framework, kind), f"{framework}'s {kind} is left to a rule"


def test_the_kinds_tried_include_every_optional_one() -> None:
    made = {framework: set(kinds_made(framework)) for framework in TRIED}
    assert {"dp_cp_ag", "dp_cp_gloo", "intra_dp_cp", "inter_dist_opt"} <= made["megatron"]
    assert {"HYBRID_DP_CP_GROUP_4", "HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L1"} <= made["megatron"]
    assert {"gtp_remat", "inter_dp_cp", "pp[1]", "expt_dp_cp"} <= made["megatron"]
    assert {"zero3_dp", "expert", "expert_data", "pipe", "dummy"} <= made["internlm"]
    assert {"gqa", "isp_data", "expert_weight", "dkv_inter_window"} <= made["internevo"]
    assert {"p2p", "edp", "global_1", "replicate", "inter_node", "worker-1"} <= made["deepspeed"]
    assert {"etp", "efsdp", "dp_shard_mod_ep", "loss"} <= made["torchtitan"]
    assert {"sequence", "dp_shard_cp"} <= made["accelerate"]
    assert {"inter_ring", "mixed_dp(moe_dp+ep+sp)", "zero"} <= made["colossalai"]
    assert {"expert_pg", "tp_and_ep_pg"} <= made["nanotron"]
    assert {"pp_mp", "cp_mp", "cp_sharding", "check(data)"} <= made["paddle"]


@pytest.mark.parametrize("file", [*sorted(set(TRIED) - {"devicemesh", "custom"}), *SHARED])
def test_both_languages_have_notes_on_the_same_kinds(file: str) -> None:
    english, chinese = (part(f"kinds/{file}.{lang}") for lang in LANGUAGES)
    assert list(english) == list(chinese)


@pytest.mark.parametrize("framework", TRIED)
def test_no_note_is_on_a_kind_that_is_never_made(framework: str) -> None:
    if framework in ("devicemesh", "custom"):
        return
    made = [written(framework, kind) for kind in kinds_made(framework)]
    for name in part(f"kinds/{framework}.en"):
        assert any(written(framework, name.replace("{n}", number)) in made for number in "0248"), (
            name
        )


def test_every_other_name_leads_to_a_note() -> None:
    notes = part("kinds/megatron.en")
    names = pairs("megatron_names")
    assert [name for name, field in names.items() if field not in notes] == []


def test_old_versions_say_the_same_under_their_own_names() -> None:
    for name in ("_DATA_PARALLEL_GROUP_WITH_CP", "_HIERARCHICAL_CONTEXT_PARALLEL_GROUPS[1]"):
        field = {"_D": "dp_cp", "_H": "HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L1"}[name[:2]]
        assert written("megatron", name) == written("megatron", field)


def test_the_number_in_a_kind_is_spoken_of() -> None:
    assert "calls for 8 ranks" in written("megatron", "HYBRID_DP_CP_GROUP_8")
    assert "第 1 级" in written("megatron", "HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L1", "zh")
    assert "inside node 1:" in written("deepspeed", "local_1")
    assert "每个节点的第 3 个位置" in written("deepspeed", "global_3", "zh")


def written(framework: str, kind: str, lang: str = "en") -> str:
    """Returns the note on a kind by its name, in the framework's layout of one rank."""
    return kind_note(frameworks.layout(framework, Sizes(1)), kind, lang)


@pytest.mark.parametrize(
    ("kind", "english", "chinese"),
    [
        ("blue", "ranks that differ along blue and in", "只在 blue 上不同"),
        ("model", "ranks that differ along blue and dp and in", "只在 blue 和 dp 上不同"),
        ("dp", "A data axis, by its name", "从名字看是数据轴"),
    ],
)
def test_a_kind_that_the_user_names_has_a_note_by_rule(
    kind: str, english: str, chinese: str
) -> None:
    mine = layout_of("custom", {"axes": "blue=2 dp=4", "groups": "model=blue+dp"}, world=8)
    assert english in note_in(mine, kind, "en")
    assert chinese in note_in(mine, kind, "zh")


def test_lists_that_are_no_groups_say_so() -> None:
    topology = layout_of("deepspeed", {"axes": "a,b", "dims": "2,4"}, world=8)
    assert "A list of ranks along a," in note_in(topology, "axis:a", "en")
    hosts = layout_of("deepspeed", {"hostfile": "node-7 slots=8"}, world=8)
    assert "主机 node-7 上用到的 slot" in note_in(hosts, "node-7", "zh")


def layout_of(framework: str, options: dict[str, str], *, world: int) -> Layout:
    return frameworks.layout(framework, Sizes(world, options=options))


@pytest.mark.parametrize("framework", TRIED)
def test_what_a_table_says_of_a_kind_is_said_in_chinese(framework: str) -> None:
    for layout in layouts_tried(framework):
        for kind in layout.kinds:
            about = about_in(layout, kind, "en")
            if about and about != " x ".join(kind.axes):
                assert has_chinese(about_in(layout, kind, "zh")), f"no Chinese for: {about}"


def test_no_chinese_is_on_an_about_that_no_framework_says() -> None:
    said = {
        about
        for layout in layouts()
        for kind in layout.kinds
        for about in (kind.about, about_in(layout, kind, "en"))
    }
    families = {re.sub(r"\b\d+\b", "{n}", about) for about in said}
    assert set(pairs("abouts.zh")) - families == set()


def test_chinese_words_are_chinese() -> None:
    notes = [
        note_in(layout, kind.name, "zh")
        for framework in TRIED
        for layout in layouts_tried(framework)
        for kind in layout.kinds
    ]
    written = [*(b.text for b in basics(MEGATRON, "zh")), *notes]
    assert [text for text in written if not has_chinese(text) or stray_english(text)] == []


def test_a_kind_that_nothing_is_written_on_has_no_note() -> None:
    assert written("internlm", "dp_cp") == ""


def test_a_note_in_an_unknown_language_is_refused() -> None:
    with pytest.raises(InputError, match="language 'fr' is not known; those that are: en, zh"):
        written("megatron", "dp", "fr")
