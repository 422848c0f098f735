"""The terms, the legend that is always in view, and what travels in each kind of group."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from serried.errors import listed
from serried.frameworks import FRAMEWORKS
from serried.mesh import GroupKind, Layout
from serried.views.explain.content import Entry, line, localized, part, table
from serried.views.sentences import require_language, say


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
    notes = _notes(framework, require_language(lang))
    other_names = table(part("kind_names").get(framework, {}))
    for name in (kind, family):
        note = notes.get(line(other_names.get(name, name)))
        if note is not None:
            return line(note).replace("{n}", number)
    return ""


def note_in(layout: Layout, kind: str, lang: str) -> str:
    """Returns the note on a kind of ``layout``: the written one, else one made by rule.

    Rules speak of kinds that a user names: axes, axes folded into one, lists of ranks, hosts.

    >>> from serried.frameworks import Sizes, layout
    >>> mine = layout("custom", Sizes(4, options={"axes": "blue=2 red=2"}))
    >>> note_in(mine, "blue", "en")[:58]
    'An axis of your own: ranks that differ along blue and in n'
    """
    made = layout.kind(kind)
    return kind_note(layout.framework, kind, lang) or _by_rule(made, lang)


def about_in(kind: GroupKind, lang: str) -> str:
    """Returns the clause of a kind's ``about`` in ``lang``; in English where none is written.

    >>> about_in(GroupKind("tp", ("tp",), about="parts of every layer"), "zh")
    '每层的各个部分'
    """
    if require_language(lang) == "en" or not kind.about:
        return kind.about
    family, number = _numbered(kind.about, anywhere=True)
    return line(localized("abouts", lang).get(family, kind.about)).replace("{n}", number)


NAMED_BY_USERS = {"devicemesh": "named", "custom": "named"}
"""Frameworks whose kinds are what the user calls them: their notes go by common names."""


def _notes(framework: str, lang: str) -> Mapping[str, Entry]:
    """Returns what is written on a framework's kinds; nothing for one that is not known."""
    file = f"kinds/{NAMED_BY_USERS.get(framework, framework)}"
    return localized(file, lang) if framework in FRAMEWORKS else {}


def _by_rule(kind: GroupKind, lang: str) -> str:
    axes = say(listed(kind.axes, last="and"), lang)
    if kind.mesh == "hosts":
        rule = "host"
    elif kind.name.startswith("axis:"):
        rule = "list"
    else:
        rule = "axis" if len(kind.axes) == 1 else "merged"
    written = line(localized("kinds/by_rule", lang)[rule])
    return written.replace("{axes}", axes).replace("{name}", kind.name)


def _numbered(text: str, *, anywhere: bool = False) -> tuple[str, str]:
    """Returns a name with its last number replaced by ``{n}``, and that number.

    The number ends the name, but for a closing bracket; ``anywhere`` takes any other too.

    >>> _numbered("HYBRID_DP_CP_GROUP_16"), _numbered("pp[2]")
    (('HYBRID_DP_CP_GROUP_{n}', '16'), ('pp[{n}]', '2'))
    """
    number = re.search(r"\b\d+\b" if anywhere else r"\d+(?=\]?$)", text)
    if number is None:
        return text, ""
    return f"{text[: number.start()]}{{n}}{text[number.end() :]}", number[0]
