"""What each combination of dimensions splits, sends and costs in a layout, in sections to read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from serried.errors import InputError, listed
from serried.mesh import Layout
from serried.views.explain.content import Entry, items, line, localized, paragraphs, part, table
from serried.views.explain.features import features
from serried.views.explain.filling import filled
from serried.views.explain.frameworks import Practice
from serried.views.explain.practice import practice

DIMS = ("cp", "dp", "tp", "pp", "ep")
"""The dimensions there are texts for, in the order their names are joined: ``cp+dp+tp``."""

FILES = {1: "alone", 2: "pairs"}
"""Where a text stands, by how many dimensions it treats; from three on in ``several``."""


@dataclass(frozen=True)
class ReadingLink:
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
    reading: tuple[ReadingLink, ...]


def explanation(layout: Layout, dims: Collection[str], *, lang: str) -> Explanation:
    """Returns the explanation of ``dims`` (some of cp, dp, tp, pp, ep, in any order) in a layout.

    It says what holds for the layout's framework, version and settings, in its own names; what
    else the job does, such as Ulysses or ZeRO++, follows in sections of its own.
    Raises InputError when ``dims`` is empty or names something else, or ``lang`` is unknown.

    >>> from serried.frameworks import Sizes, layout
    >>> explanation(layout("megatron", Sizes(16, tp=2)), ["tp", "dp"], lang="en").title
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
    done = practice(layout)
    explained = _explained(named, done, lang)
    more = tuple(Section(*each) for each in features(layout, done, lang))
    return replace(explained, sections=explained.sections + more)


def _explained(named: tuple[str, ...], done: Practice, lang: str) -> Explanation:
    """Reads one text; that of experts follows any other, since they mostly add a second grid."""
    if "ep" not in named or named == ("ep",):
        return _read(FILES.get(len(named), "several"), "+".join(named), done, lang)
    # DIMS ends in ep, so the names before the last are all that is not about experts.
    base = _explained(named[:-1], done, lang)
    experts = _read("alone", "+ep", done, lang)
    return Explanation(
        {"en": "{}, {}", "zh": "{}，{}"}[lang].format(base.title, experts.title),
        base.sections + experts.sections,
        base.reading + tuple(link for link in experts.reading if link not in base.reading),
    )


def _read(file: str, key: str, done: Practice, lang: str) -> Explanation:
    entry = table(localized(file, lang)[key])
    return Explanation(
        line(entry["title"]),
        tuple(_section(each, done, lang) for each in items(entry["sections"])),
        _reading(key.removeprefix("+")),
    )


def _section(entry: Entry, done: Practice, lang: str) -> Section:
    written = table(entry)
    text = filled(str(written["text"]), done, lang)
    return Section(line(written["heading"]), paragraphs(text))


def _reading(key: str) -> tuple[ReadingLink, ...]:
    """Returns the links filed under ``key``, such as ``cp+dp``."""
    reading = table(part("reading")["reading"])
    return links_of([line(name) for name in items(reading[key])])


def links_of(names: Sequence[str]) -> tuple[ReadingLink, ...]:
    """Returns links by their names in the file of reading."""
    links = table(part("reading")["links"])
    written = [table(links[name]) for name in names]
    return tuple(ReadingLink(line(w["title"]), line(w["url"]), line(w["lang"])) for w in written)
