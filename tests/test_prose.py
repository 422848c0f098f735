"""Prose: one word for one thing, by the house's word list, and sentences that can be read at once.

Read are the pages, and what the command line and the page say in both languages.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache

import pytest

from tests.test_docs import PAGES, ROOT

SOURCE = ROOT / "src" / "serried"
WORDS = tomllib.loads((ROOT / "docs" / "words.toml").read_text(encoding="utf-8"))
MOST_WORDS = 60
"""Words of an English sentence on a page."""
MOST_LETTERS = 100
"""Chinese characters of a sentence on a page, up to its full stop, colon or semicolon."""
ALSO_KNOWN_AS = "cards.en.toml"
"""Explains words that others use, so it names those that we do not."""


def prose(text: str) -> str:
    """Returns a page's text without code, and without the addresses of links."""
    text = re.sub(r"^( *)```.*?^\1```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`]*`", "`X`", re.sub(r"\]\([^)]*\)", "]", text))


def said(tree: object) -> Iterator[str]:
    """Yields every text of a catalogue."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict):
        for each in tree.values():
            yield from said(each)
    elif isinstance(tree, list):
        for each in tree:
            yield from said(each)


@cache
def texts(lang: str) -> dict[str, str]:
    """Returns all prose of a language, by where it stands."""
    pages = {
        str(page.relative_to(ROOT)): prose(page.read_text(encoding="utf-8"))
        for page in PAGES
        if (".zh." in page.name) == (lang == "zh")
    }
    catalogues = [*SOURCE.rglob(f"*.{lang}.toml")]
    catalogues += [SOURCE / "views" / "sentences" / "zh.toml"] if lang == "zh" else []
    read = {
        str(path.relative_to(ROOT)): "\n".join(said(tomllib.loads(path.read_text("utf-8"))))
        for path in catalogues
        if path.name != ALSO_KNOWN_AS
    }
    page = SOURCE / "views" / "web" / "static" / "i18n" / f"{lang}.json"
    shown = {page.name: "\n".join(said(json.loads(page.read_text(encoding="utf-8"))))}
    return pages | read | shown


@pytest.mark.parametrize(
    ("lang", "never", "say"),
    [
        pytest.param(lang, each["never"], each["say"], id=f"{lang} {each['say']}")
        for lang, listed in WORDS.items()
        for each in listed
    ],
)
def test_one_thing_has_one_word(lang: str, never: str, say: str) -> None:
    found = [
        f"{where}: {text[max(0, match.start() - 20) : match.end() + 20]!r}"
        for where, text in texts(lang).items()
        for match in re.finditer(never, re.sub(r"\{[^}]*\}", "{}", text))
    ]
    assert found == [], f"say: {say}"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_sentence_of_a_page_is_read_at_once(lang: str) -> None:
    long = [
        f"{where}: {sentence}"
        for where, text in texts(lang).items()
        if where.endswith(".md")
        for sentence in sentences(text, lang)
        if length(sentence, lang) > (MOST_LETTERS if lang == "zh" else MOST_WORDS)
    ]
    assert long == []


def sentences(text: str, lang: str) -> list[str]:
    """Returns the sentences of a page; a cell of a table and an entry of a list end one."""
    ends = r"[。；：？！]" if lang == "zh" else r"(?<=[.?!:;])\s+"
    parts = re.split(rf"{ends}|\n\s*\n|\n\s*(?:[-*]|\d+\.)\s|\|", text)
    return [" ".join(part.split()) for part in parts]


def length(sentence: str, lang: str) -> int:
    """Returns the words of an English sentence, or the characters of a Chinese one."""
    return len(re.findall(r"[\u4e00-\u9fff]", sentence) if lang == "zh" else sentence.split())
