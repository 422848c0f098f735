"""Errors in Chinese: every sentence that serried can raise has one, with the same values."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from string import Formatter
from types import ModuleType
from typing import Literal, NamedTuple

import pytest

from serried.collective.registry import ENTRIES as ALGORITHMS
from serried.errors import EnvironmentProblem, InputError, SerriedError, listed
from serried.finding import said
from serried.launch.documents import (
    json as json_text,
)
from serried.launch.documents import (
    python as python_text,
)
from serried.launch.documents import (
    toml as toml_text,
)
from serried.launch.documents import (
    yaml as yaml_text,
)
from serried.launch.read import read_path
from serried.mesh import Placement
from serried.mesh.advice import advise
from serried.pipeline import ENTRIES
from serried.pipeline.closed_form import Quantity
from serried.pipeline.idle import IdleCause
from serried.pipeline.registry import ScheduleEntry
from serried.views.sentences import LANGUAGES, WORDS, catalogue, phrase, read_catalogue, say, tell
from tests.frameworks.test_refusals import refusal
from tests.frameworks.test_refusals import table as refused
from tests.package import ROOT, nodes
from tests.views.explain.kinds_made import TRIED, layouts_tried
from tests.views.explain.reader import has_chinese, stray_english

FILES = Path(__file__).parents[2] / "launch" / "files"


class Raised(NamedTuple):
    """One place that makes an error: where, and the expression of its template."""

    where: str
    template: ast.expr

    @property
    def text(self) -> str:
        assert isinstance(self.template, ast.Constant) and isinstance(self.template.value, str)
        return self.template.value


def error_names() -> set[str]:
    """Returns SerriedError and every class that descends from it, wherever it is defined."""
    walked = [node for each in nodes().values() for node in each]
    classes = [node for node in walked if isinstance(node, ast.ClassDef)]
    known, found = set[str](), {SerriedError.__name__}
    while known != found:
        known = found
        children = {each.name for each in classes if {name(base) for base in each.bases} & known}
        found = known | children
    return known


def name(expression: ast.expr) -> str:
    """Returns the last part of a dotted name; "" for anything else."""
    return getattr(expression, "id", getattr(expression, "attr", ""))


def made(names: set[str]) -> Iterator[Raised]:
    """Yields every call of one of ``names``, with its first argument."""
    for path, walked in nodes().items():
        for node in walked:
            # A file tells, too, where it stands, and says nothing.
            if isinstance(node, ast.Call) and name(node.func) in names and node.args:
                yield Raised(f"{path}:{node.lineno}", node.args[0])


def either(expression: ast.expr) -> list[ast.expr]:
    """Returns the texts that a choice is between: one written ``A if plural else B`` has two."""
    if isinstance(expression, ast.IfExp):
        return [*either(expression.body), *either(expression.orelse)]
    return [expression]


@cache
def raised() -> list[Raised]:
    """Returns every place that makes an error."""
    return list(made(error_names()))


@cache
def written() -> list[Raised]:
    """Returns every template of an error or of another sentence that stands in the package."""
    errors = [each for each in raised() if isinstance(each.template, ast.Constant)]
    return errors + [
        Raised(each.where, template)
        for each in made({"said", "tell"})
        for template in either(each.template)
        if isinstance(template, ast.Constant)
    ]


CHINESE = catalogue("zh")


def placeholders(template: str) -> list[tuple[str, str | None, str | None]]:
    """Returns name, format and conversion of each value in a template, sorted."""
    return sorted(
        (field, spec or None, conversion)
        for _, field, spec, conversion in Formatter().parse(template)
        if field is not None
    )


def is_bare(template: str) -> bool:
    """Tells whether a template only joins values, or is a term that stays in Latin letters."""
    words = "".join(text for text, *_ in Formatter().parse(template))
    return not any(letter.isalpha() for letter in words) or words.strip() in TERMS


TERMS = {"rank", "world size", "x"}


def test_errors_of_every_room_are_found() -> None:
    assert {"mesh", "frameworks", "trace", "views"} <= {
        each.where.split("/")[0] for each in raised()
    }


def test_a_sentence_is_a_template_that_can_be_looked_up() -> None:
    other = [each.where for each in raised() if not isinstance(each.template, ast.Constant)]
    assert not other, f"write one text with {{values}} at {', '.join(other)}"


def test_every_sentence_is_translated() -> None:
    missed = [f"{each.where}: {each.text}" for each in written() if each.text not in CHINESE]
    assert not missed, "these have no Chinese:\n" + "\n".join(missed)


def test_no_translation_is_of_a_sentence_that_nobody_says() -> None:
    assert CHINESE.keys() - {each.text for each in written()} == set()


def test_translations_are_chinese_and_keep_the_values() -> None:
    for english, chinese in CHINESE.items():
        assert placeholders(chinese) == placeholders(english), english
        assert has_chinese(chinese) or is_bare(chinese), english
        assert not stray_english(chinese), english
        assert not chinese.endswith(("。", ".")), english


def test_values_stay_as_they_are() -> None:
    error = InputError(
        "{axis}={size} does not divide {world} ranks; sizes that do: {fits}",
        axis="tp",
        size=3,
        world=64,
        fits="1, 2, 4",
    )
    assert say(error, "zh") == "tp=3 不能整除 64 个 rank；可用的取值：1, 2, 4"
    assert say(error, "en") == str(error)


def test_a_finding_is_said_as_an_error_is() -> None:
    cure = said("name each axis once, such as {example}", example="tp-dp")
    assert say(cure, "zh") == "每条轴只写一遍，例如 tp-dp"


def test_a_sentence_within_a_sentence_is_said_in_the_same_language() -> None:
    inner = InputError("{axis}={size}; a size is at least 1", axis="tp", size=0)
    outer = InputError("{path} cannot be read: {reason}", path="run.sh", reason=inner)
    assert say(outer, "zh") == "读不了 run.sh：tp=0 不行，大小至少是 1"
    assert say(outer, "en") == str(outer)


def test_a_name_that_ends_in_a_wide_bracket_has_no_gap_behind_it() -> None:
    who = said("rank {rank} (as its group counts)", rank=3)
    waits = said("{who} waits in {what} for {awaited}", who=who, what="w", awaited="a")
    assert say(waits, "zh") == "rank 3（组内编号）在 w 中等 a"


def test_a_sentence_without_translation_is_said_in_english() -> None:
    assert say(EnvironmentProblem("the moon is down at {hour}", hour=3), "zh") == (
        "the moon is down at 3"
    )


@pytest.mark.parametrize(
    "name",
    [
        "sentences/zh.toml",
        "sentences/phrases.zh.toml",
        "cli/help.zh.toml",
        "job/settings.zh.toml",
    ],
)
def test_a_catalogue_is_read_as_any_reader_of_toml_does(name: str) -> None:
    path = ROOT / "views" / name
    read = read_catalogue(path)
    assert read == tomllib.loads(path.read_text(encoding="utf-8"))
    assert len(read) > 100


def test_english_needs_no_catalogue() -> None:
    assert catalogue("en") == {}


def test_every_language_but_english_has_a_catalogue() -> None:
    assert all(catalogue(lang) for lang in LANGUAGES if lang != "en")


def test_a_language_that_is_not_spoken_is_refused() -> None:
    with pytest.raises(InputError) as error:
        say(InputError("no"), "fr")
    assert str(error.value) == "language 'fr' is not known; those that are: en, zh"


# ----------------------------------------------------------------------- lists


@pytest.mark.parametrize(
    ("items", "last", "english", "chinese"),
    [
        ([1, 2, 4], "", "1, 2, 4", "1、2、4"),
        (["tp", "pp", "dp"], "or", "tp, pp or dp", "tp、pp 或 dp"),
        ([said("data"), said("tensor")], "and", "data and tensor", "数据和张量"),
        (["dp"], "and", "dp", "dp"),
        ([], "", "", ""),
    ],
)
def test_a_list_is_joined_as_its_language_joins(
    items: list[object], last: Literal["", "and", "or"], english: str, chinese: str
) -> None:
    several = listed(items, last=last)
    assert (say(several, "en"), say(several, "zh")) == (english, chinese)


def test_a_list_that_is_cut_says_so_in_both_languages() -> None:
    several = listed(range(9), limit=3)
    assert (say(several, "en"), say(several, "zh")) == ("0, 1, 2, …", "0、1、2…")


def test_a_list_within_a_sentence_is_joined_in_its_language() -> None:
    error = InputError(
        "{axis}={size} does not divide {world} ranks; sizes that do: {fits}",
        axis="tp",
        size=3,
        world=4,
        fits=listed([1, 2, 4]),
    )
    assert say(error, "zh") == "tp=3 不能整除 4 个 rank；可用的取值：1、2、4"
    assert str(error) == "tp=3 does not divide 4 ranks; sizes that do: 1, 2, 4"


# ----------------------------------------------------------------------- phrases

PHRASES = tomllib.loads((ROOT / "views/sentences/phrases.zh.toml").read_text(encoding="utf-8"))


def test_phrases_are_chinese_and_keep_their_parts() -> None:
    for english, chinese in PHRASES.items():
        assert set(placeholders(chinese)) <= set(placeholders(english)), english
        assert has_chinese(chinese) or is_bare(chinese), english
        assert not stray_english(chinese), english


def test_what_stands_in_a_phrase_is_said_in_chinese_too() -> None:
    assert phrase("Invalid value for '--lr': 'x' is not a valid float.", "zh") == (
        "--lr 的值不对：x 不是数"
    )
    assert phrase("'x' is not one of 'a', 'b'.", "zh") == "没有 x，可以是 a、b"
    assert phrase("torchrun command line under Slurm", "zh") == "torchrun 命令行，由 Slurm 启动"


def test_words_without_chinese_stay_as_they_are() -> None:
    assert phrase("the disk sings", "zh") == "the disk sings"
    assert phrase("Permission denied", "en") == "Permission denied"


@pytest.mark.parametrize("name", WORDS)
def test_values_that_are_words_are_said_in_chinese(name: str) -> None:
    told = tell("{file} cannot be read: {" + name + "}", "zh", file="a", **{name: "Is a directory"})
    assert "这是一个文件夹" in told


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_every_schedule_is_described_in_chinese(entry: ScheduleEntry) -> None:
    assert has_chinese(phrase(entry.about, "zh"))
    assert has_chinese(phrase(entry.needs, "zh")) or not re.search("[a-z]{2}", entry.needs)


def test_every_algorithm_of_a_collective_is_described_in_chinese() -> None:
    texts = [text for entry in ALGORITHMS for text in (entry.about, entry.formula)]
    assert [text for text in texts if phrase(text, "zh") not in written_phrases()] == []


def written_phrases() -> set[str]:
    """Returns the Chinese of phrases that are translated whole, not piece by piece."""
    return set(read_catalogue(ROOT / "views" / "sentences" / "phrases.zh.toml").values())


def test_causes_and_quantities_are_said_in_chinese() -> None:
    words = [cause.words for cause in IdleCause] + [each.value for each in Quantity]
    assert [text for text in words if not has_chinese(phrase(text, "zh"))] == ["all-reduce"]


@pytest.mark.parametrize("module", [yaml_text, json_text, toml_text, python_text])
@pytest.mark.parametrize("text", ["[1, 2", "a: b: c", "x = = 1", "{", "a\n\tb: 1", "'x"])
def test_what_a_parser_objects_to_is_said_in_chinese(module: ModuleType, text: str) -> None:
    try:
        module.read(text, "a.txt", *([{}] if module is python_text else []))
    except InputError as error:
        told = say(error, "zh").removeprefix("a.txt")
        assert not re.search("[a-z]{3,} [a-z]{3,}", told), told


def test_every_kind_of_launch_file_has_a_name_in_chinese() -> None:
    for path in sorted(FILES.glob("*")):
        try:
            found = read_path(path).format
        except InputError:
            continue
        for part in found.split(", "):
            words = re.sub("accelerate launch|under Slurm", "", phrase(part, "zh"))
            assert not re.search(r"\b[a-z]{4,} [a-z]{4,}\b", words), part


# ----------------------------------------------------------------------- whole sentences

TERMS_IN_VALUES = re.compile(
    r"world size|colossalai gemini|nanotron main|tp x cp|dp x |pp x |ep x "
)
ENGLISH = re.compile(r"(?<![\w-])[a-z]{2,}(?: [a-z]{2,})+(?![\w-])")
"""Two small Latin words in a row, which Chinese holds only where a term has two words."""


@pytest.mark.parametrize("line", [line for line, _ in refused()])
def test_a_refusal_is_chinese_down_to_its_values(line: str) -> None:
    told = say(refusal(line), "zh")
    assert not ENGLISH.search(TERMS_IN_VALUES.sub("", told)), told


@pytest.mark.parametrize("framework", TRIED)
def test_advice_is_chinese_down_to_its_values(framework: str) -> None:
    for layout in layouts_tried(framework):
        for finding in advise(layout, Placement(layout.world_size)):
            told = [say(each, "zh") for each in (*finding.evidence, finding.cure) if each]
            assert [text for text in told if not has_chinese(text) or ENGLISH.search(text)] == []


DAMAGED_JSON = ("", "{", '{"a"', '{"a":1', "[1 2", '"abc', '"\\x"', '"\\u12"', "{} {}", '"\x01"')
DAMAGED_TOML = ("a", "a=", "a=[1", "[a", "a=1\na=2", "a=1 b", "[a]\n[a]", "a={b=1", 'a="\\"')


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        *((json.loads, text) for text in DAMAGED_JSON),
        *((tomllib.loads, text) for text in DAMAGED_TOML),
    ],
)
def test_what_parsers_of_python_say_is_said_in_chinese(
    parse: Callable[[str], object], text: str
) -> None:
    with pytest.raises(ValueError, match=r".") as failed:
        parse(text)
    told = say(
        InputError("{path} is not usable JSON: {reason}", path="x", reason=failed.value), "zh"
    )
    assert not re.search(r"[a-z]{4,}", told.replace("utf-8", "")), told
