"""Every collective is explained in both languages: what, who, costs, mistakes, further reading."""

from __future__ import annotations

import pytest

from serried.collective.registry import COLLECTIVES
from serried.views.explain.collectives import HEADINGS, explained_collective
from serried.views.sentences import LANGUAGES
from tests.conftest import Call
from tests.views.explain.reader import has_chinese


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", COLLECTIVES)
def test_every_collective_is_explained(name: str, lang: str) -> None:
    explained = explained_collective(name, lang=lang)
    assert [section.heading for section in explained.sections] == list(HEADINGS[lang].values())
    assert len(explained.reading) >= 2
    for section in explained.sections:
        assert has_chinese(" ".join(section.paragraphs)) == (lang == "zh")


def test_both_languages_give_the_same_formulas_and_links() -> None:
    for name in COLLECTIVES:
        english, chinese = (explained_collective(name, lang=lang) for lang in LANGUAGES)
        assert english.reading == chinese.reading
        told = [" ".join(section.paragraphs) for section in chinese.sections]
        for formula in ("2 (n - 1) / n S", "(n - 1) / n S", "log2 n"):
            costs = " ".join(english.sections[2].paragraphs)
            assert (formula in costs) == (formula in told[2]), (name, formula)


def test_the_command_line_explains(serried: Call) -> None:
    out = serried("collective", "all_reduce", "--explain").out
    assert out.startswith("All-reduce: every rank gets the sum\n")
    assert "PERFORMANCE.md" in out
    assert serried("collective", "no-such", "--explain").code == 2
