"""Texts with facts and names put in: each ``{word}`` gives way to what holds in a layout."""

from __future__ import annotations

import re

from serried.views.explain.content import localized, table
from serried.views.explain.frameworks import Practice

_WORD = re.compile(r"\{(\w+)\}")


def filled(text: str, done: Practice, lang: str) -> str:
    """Returns ``text`` with each ``{fact}`` as the sentence that holds and each ``{name}`` named.

    ``{Fact}`` begins a sentence. A word that is neither stays as it stands, such as the ``{n}``
    of a kind's number.
    """

    def put(found: re.Match[str]) -> str:
        word = found[1].lower() if found[1].istitle() else found[1]
        if word in done.facts and word in localized("practice", lang):
            variants = table(localized("practice", lang)[word])
            # A variant names further facts and kinds, so it is filled in turn.
            text = filled(str(variants[done.facts[word]]).strip("\n"), done, lang)
            return text if word == found[1] else text[:1].upper() + text[1:]
        return done.names.get(word, found[0])

    return re.sub(r" +$", "", _WORD.sub(put, text), flags=re.MULTILINE)
