"""What each combination of dimensions splits, sends and costs, in sections for a side panel."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

from serried.errors import InputError, listed
from serried.views.explain.content import Entry, items, line, localized, paragraphs, part, table

DIMS = ("cp", "dp", "tp", "pp", "ep")
"""The dimensions there are texts for, in the order their names are joined: ``cp+dp+tp``."""

FILES = {1: "alone", 2: "pairs"}
"""Where a text stands, by how many dimensions it treats; from three on in ``several``."""


@dataclass(frozen=True)
class Link:
    """Points to further reading; ``lang`` is the language it is written in."""

    title: str
    url: str
    lang: str


@dataclass(frozen=True)
class Section:
    """Holds a heading and the paragraphs below it."""

    heading: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True)
class Explanation:
    """Explains some dimensions together: sections to read, and where to read on."""

    title: str
    sections: tuple[Section, ...]
    reading: tuple[Link, ...]


def explanation(dims: Collection[str], *, lang: str) -> Explanation:
    """Returns the explanation of ``dims`` (some of cp, dp, tp, pp, ep, in any order).

    Raises InputError when ``dims`` is empty or names something else, or ``lang`` is unknown.

    >>> explanation(["tp", "dp"], lang="en").title
    'Data and tensor parallelism (DP+TP)'
    """
    for dim in dims:
        if dim not in DIMS:
            raise InputError(
                "there is no dimension '{dim}' to explain; those there are: {known}",
                dim=dim,
                known=listed(DIMS),
            )
    named = tuple(dim for dim in DIMS if dim in dims)
    if not named:
        raise InputError(
            "no dimension to explain is named; name some of {known}", known=listed(DIMS)
        )
    return _explained(named, lang)


@cache
def _explained(named: tuple[str, ...], lang: str) -> Explanation:
    """Reads one text; that of experts follows any other, since they only add a second grid."""
    if "ep" not in named or named == ("ep",):
        return _read(FILES.get(len(named), "several"), "+".join(named), lang)
    base = _explained(named[:-1], lang)
    experts = _read("alone", "+ep", lang)
    return Explanation(
        {"en": "{}, {}", "zh": "{}，{}"}[lang].format(base.title, experts.title),
        base.sections + experts.sections,
        base.reading + tuple(link for link in experts.reading if link not in base.reading),
    )


def _read(file: str, key: str, lang: str) -> Explanation:
    entry = table(localized(file, lang)[key])
    return Explanation(
        line(entry["title"]),
        tuple(_section(each) for each in items(entry["sections"])),
        _reading(key.removeprefix("+")),
    )


def _section(entry: Entry) -> Section:
    written = table(entry)
    return Section(line(written["heading"]), paragraphs(written["text"]))


def _reading(key: str) -> tuple[Link, ...]:
    """Returns the links filed under ``key``, such as ``cp+dp``."""
    reading, links = table(part("reading")["reading"]), table(part("reading")["links"])
    written = [table(links[line(name)]) for name in items(reading[key])]
    return tuple(Link(line(w["title"]), line(w["url"]), line(w["lang"])) for w in written)
