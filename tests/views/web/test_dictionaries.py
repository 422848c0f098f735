"""The page's dictionaries: the same keys and places in each language, none missing, none idle."""

from __future__ import annotations

import json
import re

from serried.action import ActionKind
from serried.frameworks import FRAMEWORKS, Sizes, layout
from serried.pipeline import ENTRIES, IdleCause
from serried.pipeline.closed_form import Quantity
from serried.views.explain.words import basics
from serried.views.web.edition import STATIC

DICTIONARIES = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in (STATIC / "i18n").glob("*.json")
}
ENGLISH, CHINESE = DICTIONARIES["en"], DICTIONARIES["zh"]
CODE = "\n".join(
    path.read_text(encoding="utf-8") for path in [*STATIC.rglob("*.js"), *STATIC.rglob("*.html")]
)
ASKED = set(re.findall(r'(?:\bt|counted|(?<!\.)\bhas)\(\s*"([^"]+)"', CODE)) | set(
    re.findall(r'data-i18n(?:-\w+)?="([^"]+)"', CODE)
)
FAMILIES = set(re.findall(r"`(\w+)\.\$\{", CODE))
"""First words of keys that the code completes, such as action. and type."""

MEGATRON = layout("megatron", Sizes(8))


def places(sentence: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", sentence))


def test_there_is_a_dictionary_for_each_language() -> None:
    assert set(DICTIONARIES) == {"en", "zh"}


def test_both_languages_say_the_same_keys_in_the_same_order() -> None:
    assert list(ENGLISH) == list(CHINESE)


def test_both_languages_fill_the_same_places() -> None:
    assert [key for key in ENGLISH if places(ENGLISH[key]) != places(CHINESE[key])] == []


def test_every_sentence_that_the_page_asks_for_is_there() -> None:
    assert {key for key in ASKED if key not in ENGLISH} == set()


def test_no_sentence_is_idle() -> None:
    chosen = {
        key
        for key in ENGLISH
        if key.split(".")[0] in FAMILIES or key.removesuffix(".one") in ASKED or f'"{key}"' in CODE
    }
    assert set(ENGLISH) - ASKED - chosen == set()


def test_every_action_every_dimension_and_every_basic_has_its_words() -> None:
    for kind in ActionKind:
        assert f"action.{kind.name}" in ENGLISH
    for framework in FRAMEWORKS.values():
        assert {f"dim.{dim}" for dim in framework.dims} <= set(ENGLISH)
    assert {f"basics.{each.dim}" for each in basics(MEGATRON, "en")} - set(ENGLISH) == {
        f"basics.{dim}" for dim in ("dp", "tp", "pp", "cp")
    }


def test_every_schedule_cause_and_closed_form_has_its_words() -> None:
    assert {f"about.{name}" for name in ENTRIES} <= set(ENGLISH)
    assert {f"cause.{cause.name}" for cause in IdleCause} <= set(ENGLISH)
    assert {f"why.{cause.name}" for cause in IdleCause} <= set(ENGLISH)
    assert {f"quantity.{quantity.name}" for quantity in Quantity} <= set(ENGLISH)


def test_chinese_sentences_are_chinese() -> None:
    latin = {"bar.language", "basics.stage", "map.stage"}
    latin |= {"timeline.rank", "timeline.stage", "timeline.place", "groups.copy_json"}
    latin |= {"selected.rank", "selected.slice", "tip.slice"}
    latin |= {
        "fact.local_rank",
        "fact.gpu",
        "fact.stage",
        "fact.rank",
        "plan.zero",
        "sharding.stage",
    }
    latin |= {"reading.stop", "heading.stage", "names.join"}
    latin |= {"gpus.busbw", "gpus.rank", "plan.place", "plan.matrix_rank"}
    latin |= {"cube.axis", "heat.stage", "diagnose.of"}
    latin |= {"sharding.open", "spot.action", "spot.extent", "form.line", "form.region"}
    without = {key for key, said in CHINESE.items() if not re.search("[\u4e00-\u9fff]", said)}
    assert without == latin
