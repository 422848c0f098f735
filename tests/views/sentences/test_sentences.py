"""Errors in Chinese: every sentence that serried can raise has one, with the same values."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import NamedTuple

import pytest

import serried
from serried.errors import EnvironmentProblem, InputError, SerriedError
from serried.finding import said
from serried.views.sentences import LANGUAGES, catalogue, say
from tests.views.explain.reader import has_chinese, stray_english

ROOT = Path(serried.__file__).parent


class Raised(NamedTuple):
    """One place that makes an error: where, and the expression of its template."""

    where: str
    template: ast.expr

    @property
    def text(self) -> str:
        assert isinstance(self.template, ast.Constant) and isinstance(self.template.value, str)
        return self.template.value


def error_names(trees: list[ast.Module]) -> set[str]:
    """Returns SerriedError and every class that descends from it, wherever it is defined."""
    known = {SerriedError.__name__}
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for _ in classes:
        known |= {each.name for each in classes if {name(base) for base in each.bases} & known}
    return known


def name(expression: ast.expr) -> str:
    """Returns the last part of a dotted name; "" for anything else."""
    return getattr(expression, "id", getattr(expression, "attr", ""))


PATHS = sorted(ROOT.rglob("*.py"))
TREES = [ast.parse(path.read_text(encoding="utf-8")) for path in PATHS]


def made(names: set[str]) -> Iterator[Raised]:
    """Yields every call of one of ``names``, with its first argument."""
    for path, tree in zip(PATHS, TREES, strict=True):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and name(node.func) in names:
                yield Raised(f"{path.relative_to(ROOT)}:{node.lineno}", node.args[0])


RAISED = list(made(error_names(TREES)))
PLAIN = [each for each in RAISED if isinstance(each.template, ast.Constant)]
FOUND = [each for each in made({"said"}) if isinstance(each.template, ast.Constant)]
CHINESE = catalogue("zh")


def placeholders(template: str) -> list[tuple[str, str | None, str | None]]:
    """Returns name, format and conversion of each value in a template, sorted."""
    return sorted(
        (field, spec or None, conversion)
        for _, field, spec, conversion in Formatter().parse(template)
        if field is not None
    )


def test_errors_of_every_room_are_found() -> None:
    assert {"mesh", "frameworks", "trace", "views"} <= {each.where.split("/")[0] for each in RAISED}


@pytest.mark.parametrize("each", RAISED, ids=lambda each: each.where)
def test_a_sentence_is_a_template_that_can_be_looked_up(each: Raised) -> None:
    kind = type(each.template).__name__
    assert kind == "Constant", f"{kind} at {each.where}: write one text with {{values}}"


@pytest.mark.parametrize("each", PLAIN, ids=lambda each: each.where)
def test_every_sentence_is_translated(each: Raised) -> None:
    assert each.text in CHINESE, f"{each.where} has no Chinese: {each.text}"


def test_no_translation_is_of_a_sentence_that_nobody_says() -> None:
    assert CHINESE.keys() - {each.text for each in PLAIN + FOUND} == set()


@pytest.mark.parametrize("english", CHINESE)
def test_translations_are_chinese_and_keep_the_values(english: str) -> None:
    assert placeholders(CHINESE[english]) == placeholders(english)
    assert has_chinese(CHINESE[english])
    assert not stray_english(CHINESE[english])
    assert not CHINESE[english].endswith(("。", "."))


def test_values_stay_as_they_are() -> None:
    error = InputError(
        "{axis}={size} does not divide {world} ranks; sizes that do: {fits}",
        axis="tp",
        size=3,
        world=64,
        fits="1, 2, 4",
    )
    assert say(error, "zh") == "tp=3 不能整除 64 个 rank；可以用的大小：1, 2, 4"
    assert say(error, "en") == str(error)


def test_a_finding_is_said_as_an_error_is() -> None:
    cure = said("name each axis once, such as {example}", example="tp-dp")
    assert say(cure, "zh") == "每条轴只写一遍，例如 tp-dp"


def test_a_sentence_within_a_sentence_is_said_in_the_same_language() -> None:
    inner = InputError("{axis}={size}; a size is at least 1", axis="tp", size=0)
    outer = InputError("{path} cannot be read: {reason}", path="run.sh", reason=inner)
    assert say(outer, "zh") == "读不了 run.sh：tp=0 不行，大小至少是 1"
    assert say(outer, "en") == str(outer)


def test_a_sentence_without_translation_is_said_in_english() -> None:
    assert say(EnvironmentProblem("the moon is down at {hour}", hour=3), "zh") == (
        "the moon is down at 3"
    )


def test_english_needs_no_catalogue() -> None:
    assert catalogue("en") == {}


def test_every_language_but_english_has_a_catalogue() -> None:
    assert all(catalogue(lang) for lang in LANGUAGES if lang != "en")


def test_a_language_that_is_not_spoken_is_refused() -> None:
    with pytest.raises(InputError) as error:
        say(InputError("no"), "fr")
    assert str(error.value) == "language 'fr' is not known; those that are: en, zh"
