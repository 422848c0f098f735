"""Errors and findings said in the reader's language: templates translated, values as they are."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from serried.errors import InputError, SerriedError, listed
from serried.finding import Sentence

LANGUAGES = ("en", "zh")
"""The languages that errors and explanations are written in."""

__all__ = ["LANGUAGES", "catalogue", "require_language", "say"]


def say(sentence: SerriedError | Sentence, lang: str) -> str:
    """Returns an error or a finding's sentence in ``lang``; in English without a translation.

    Values stay as they are, but those that are sentences themselves are said in ``lang`` too.

    >>> say(InputError("{axis}={size}; a size is at least 1", axis="tp", size=0), "zh")
    'tp=0 不行，大小至少是 1'

    Raises InputError for a language there is no catalogue of.
    """
    template = catalogue(lang).get(sentence.template, sentence.template)
    values = {
        name: say(value, lang) if isinstance(value, SerriedError | Sentence) else value
        for name, value in sentence.values.items()
    }
    return template.format(**values)


@cache
def catalogue(lang: str) -> Mapping[str, str]:
    """Returns the templates of ``lang`` by their English originals; none for English itself."""
    if require_language(lang) == "en":
        return {}
    text = files(__name__).joinpath(f"{lang}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def require_language(lang: str) -> str:
    """Returns ``lang``; raises InputError when nothing is written in it."""
    if lang not in LANGUAGES:
        raise InputError(
            "language '{lang}' is not known; those that are: {known}",
            lang=lang,
            known=listed(LANGUAGES),
        )
    return lang
