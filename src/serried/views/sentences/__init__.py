"""What serried says, in the reader's language: templates translated, values as they are."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TypeAlias
from unicodedata import east_asian_width

from serried.errors import InputError, Listed, SerriedError, listed
from serried.finding import Sentence

LANGUAGES = ("en", "zh")
"""The languages that errors and explanations are written in."""

LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")
"""Variables that name the language of messages; the first that is set decides."""

Sayable: TypeAlias = SerriedError | Sentence | Listed

WORDS = ("problem", "reason", "what")
"""Values that are words of a table, a parser or the system, and so are said in ``lang`` too."""

__all__ = [
    "LANGUAGES",
    "LOCALE",
    "WORDS",
    "Sayable",
    "catalogue",
    "environment_language",
    "is_wide",
    "phrase",
    "read_catalogue",
    "require_language",
    "say",
    "tell",
]


def tell(template: str, lang: str, /, **values: object) -> str:
    """Returns what ``template`` says with ``values``, in ``lang``.

    >>> tell("{low:,} to {high:,}", "zh", low=16, high=1024)
    '16 到 1,024'
    """
    return say(Sentence(template, values), lang)


def say(sentence: Sayable, lang: str) -> str:
    """Returns an error, a finding's sentence or a list in ``lang``; without Chinese, in English.

    Values stay as they are, but sentences and lists among them are said in ``lang`` too.

    >>> say(InputError("{axis}={size}; a size is at least 1", axis="tp", size=0), "zh")
    'tp=0 不行，大小至少是 1'
    >>> say(listed(["tp", "pp", "dp"], last="or"), "zh")
    'tp、pp 或 dp'
    >>> receive = Sentence("a receive from rank {peer}", {"peer": 0})
    >>> tell("rank {rank} waits in {what}", "zh", rank=1, what=receive)
    'rank 1 在从 rank 0 的接收中等待'

    Raises InputError for a language there is no catalogue of.
    """
    if isinstance(sentence, Listed):
        return _joined(sentence, require_language(lang))
    template = catalogue(lang).get(sentence.template, sentence.template)
    values = {name: _value(value, name, lang) for name, value in sentence.values.items()}
    text = template.format(**values)
    if lang == "en":
        return text
    # A name that ends in a wide bracket needs no gap behind it: rank 5（tp 1）在等.
    return _GAP.sub("", text).replace(_EDGE, "").replace("） ", "）")


_EDGE = "\0"
"""Stands at both ends of a sentence within a sentence, until gaps are closed there."""
_WIDE = "[\u3001-\u301f\u3400-\u9fff\uff01-\uff1f]"
_GAP = re.compile(f"(?<={_WIDE}) {_EDGE}(?={_WIDE})|(?<={_WIDE}){_EDGE} (?={_WIDE})")
"""Templates set a value apart by gaps, which Chinese has beside digits and Latin letters only."""


def _value(value: object, name: str, lang: str) -> object:
    if isinstance(value, SerriedError | Sentence | Listed):
        said = say(value, lang)
    elif name in WORDS:
        said = phrase(str(value), lang)
    else:
        return value
    return said if lang == "en" else f"{_EDGE}{said}{_EDGE}"


def phrase(text: str, lang: str) -> str:
    """Returns words of a table, a parser or the system in ``lang``; as they are if none are known.

    >>> phrase("'(' was never closed", "zh"), phrase("no such words", "zh")
    ('“(”没有闭合', 'no such words')
    """
    if lang == "en" or not text:
        return text
    whole, patterns = _phrases(lang)
    # A phrase that is written whole goes before patterns, whose holes take any text.
    if text in whole:
        return whole[text]
    for pattern, chinese in patterns:
        found = pattern.fullmatch(text)
        if found:
            parts = found.groupdict()
            return chinese.format(**{name: _part(name, each, lang) for name, each in parts.items()})
    return text


def _part(name: str, text: str, lang: str) -> str:
    """Returns the text that a phrase holds; ``l`` is a list in quotes, said as lists are."""
    if name == "l":
        return say(listed((word.strip("'") for word in text.split(", ")), limit=64), lang)
    return phrase(text, lang)


@cache
def _phrases(lang: str) -> tuple[dict[str, str], list[tuple[re.Pattern[str], str]]]:
    """Returns the phrases that stand as they are, and those that hold any text."""
    written = read_catalogue(Path(__file__).with_name(f"phrases.{lang}.toml"))
    whole = {english: each for english, each in written.items() if "{" not in english}
    # re.escape turns the hole {n} into \{n\}, and that becomes a group called n for any text.
    return whole, [
        (re.compile(re.sub(r"\\{(\w)\\}", r"(?P<\1>.+?)", re.escape(english))), other)
        for english, other in written.items()
        if english not in whole
    ]


def _joined(several: Listed, lang: str) -> str:
    """Returns the words in a row: ``1, 2 and 4`` in English, ``1、2 和 4`` in Chinese."""
    if lang == "en":
        return str(Listed(tuple(_item(item, lang) for item in several.items), several.last))
    *words, end = [_item(item, lang) for item in several.items] or [""]
    if not words:
        return end
    first = "、".join(words)
    # An ellipsis says that there are more and takes no link word: 1、2…
    if end == "…":
        return f"{first}…"
    link = {"and": "和", "or": "或", "": "、"}[several.last]
    return link.join((first, end)) if link == "、" else _spaced(_spaced(first, link), end)


def _item(item: object, lang: str) -> str:
    return say(item, lang) if isinstance(item, SerriedError | Sentence | Listed) else str(item)


def _spaced(left: str, right: str) -> str:
    """Joins two words, by a space where Chinese meets letters or numbers."""
    gap = "" if is_wide(left[-1:] or "、") == is_wide(right[:1] or "、") else " "
    return left + gap + right


def is_wide(character: str) -> bool:
    """Tells whether a character takes two columns, as Chinese and its punctuation do."""
    return east_asian_width(character) in "WF"


@cache
def catalogue(lang: str) -> Mapping[str, str]:
    """Returns the templates of ``lang`` by their English originals; none for English itself."""
    if require_language(lang) == "en":
        return {}
    return read_catalogue(Path(__file__).with_name(f"{lang}.toml"))


def read_catalogue(path: Path) -> Mapping[str, str]:
    """Returns the texts of a TOML file whose lines are ``"English" = "another language"``.

    A parser of all TOML takes ten times as long, which every answer in Chinese would wait for.
    """
    lines = path.read_text(encoding="utf-8").split("\n")
    pairs = (line[1:-1].split('" = "') for line in lines if line.startswith('"'))
    return {_unescaped(english): _unescaped(other) for english, other in pairs}


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text) if "\\" in text else text


def require_language(lang: str) -> str:
    """Returns ``lang``; raises InputError when nothing is written in it."""
    if lang not in LANGUAGES:
        raise InputError(
            "language '{lang}' is not known; those that are: {known}",
            lang=lang,
            known=listed(LANGUAGES),
        )
    return lang


def environment_language(environment: Mapping[str, str] = os.environ) -> str:
    """Returns the language of the environment's locale; English for one that is not spoken."""
    locale = next((environment[name] for name in LOCALE if environment.get(name)), "")
    # zh_CN.UTF-8 and zh-CN both name zh; C and POSIX name no language that is spoken.
    language = locale.replace("-", "_").partition("_")[0].lower()
    return language if language in LANGUAGES else "en"
