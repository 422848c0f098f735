"""The terms, the legend that is always in view, and what travels in each kind of group."""

from __future__ import annotations

import re
from dataclasses import dataclass

from serried.views.explain.content import line, localized, part, table


@dataclass(frozen=True)
class Term:
    """Explains one word; ``key`` names it in every language (``world_size``)."""

    key: str
    name: str
    text: str


@dataclass(frozen=True)
class Basic:
    """Says what one colour means for a dimension, or, as ``stage``, how to read stages."""

    dim: str
    text: str


def terms(lang: str) -> tuple[Term, ...]:
    """Returns the terms in the order a reader meets them.

    >>> [term.name for term in terms("en")][:4]
    ['World', 'World size', 'Node', 'Rank (global)']
    """
    written = {key: table(each) for key, each in table(localized("words", lang)["terms"]).items()}
    return tuple(Term(key, line(each["name"]), line(each["text"])) for key, each in written.items())


def basics(lang: str) -> tuple[Basic, ...]:
    """Returns the legend: dp, tp, pp, cp, and ``stage``.

    >>> [basic.dim for basic in basics("en")]
    ['dp', 'tp', 'pp', 'cp', 'stage']
    """
    written = table(localized("words", lang)["basics"])
    return tuple(Basic(dim, line(text)) for dim, text in written.items())


def kind_note(framework: str, kind: str, lang: str) -> str:
    """Returns what travels in the groups of ``kind``, and when, in a sentence or two.

    A number in a kind's name, as in ``HYBRID_DP_CP_GROUP_4``, is spoken of in the note.
    Returns "" for a kind that nothing is written on; raises InputError for an unknown ``lang``.

    >>> kind_note("internlm", "expert_data", "en")[:24]
    'Gradients of the experts'
    """
    family, number = _numbered(kind)
    notes = table(localized("kinds", lang).get(framework, {}))
    other_names = table(part("kind_names").get(framework, {}))
    for name in (kind, family):
        note = notes.get(line(other_names.get(name, name)))
        if note is not None:
            return line(note).replace("{n}", number)
    return ""


def _numbered(kind: str) -> tuple[str, str]:
    """Returns the name with its last number replaced by ``{n}``, and that number.

    >>> _numbered("HYBRID_DP_CP_GROUP_16"), _numbered("pp[2]")
    (('HYBRID_DP_CP_GROUP_{n}', '16'), ('pp[{n}]', '2'))
    """
    number = re.search(r"\d+(?=\]?$)", kind)
    if number is None:
        return kind, ""
    return f"{kind[: number.start()]}{{n}}{kind[number.end() :]}", number[0]
