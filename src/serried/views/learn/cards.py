"""The card of a word: what it is, what it splits, what travels when, its cost, its mistakes.

tp  +  a layout and its nodes  +  a plan, where there is one
└─> title, text, sections, this job's numbers, what it costs, further reading
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from serried.errors import InputError, listed
from serried.mesh import Layout, Placement
from serried.mesh.sizes import SIZES
from serried.plan.job_plan import JobPlan
from serried.views.explain.content import Entry, items, line, localized, paragraphs, part, table
from serried.views.explain.explanation import ReadingLink, Section, links_of
from serried.views.explain.features import features
from serried.views.explain.filling import filled
from serried.views.explain.frameworks import Practice
from serried.views.explain.practice import practice
from serried.views.learn.card_job import CardJob
from serried.views.learn.job_costs import cost_lines
from serried.views.learn.job_numbers import here_lines
from serried.views.sentences import LANGUAGES

HEADINGS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "split": "What is split",
        "repeated": "What is repeated",
        "travels": "What travels, and when",
        "matters": "Why it matters",
        "use": "When to use it",
        "mistakes": "Common mistakes",
    },
    "zh": {
        "split": "切了什么",
        "repeated": "重复了什么",
        "travels": "传什么，什么时候传",
        "matters": "为什么重要",
        "use": "什么时候用",
        "mistakes": "常见错误",
    },
}
"""What a card may say beside its text, in the order in which it says it."""
OWN_HEADINGS: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("bubble", "use"): {"en": "What makes it smaller", "zh": "怎样减小"},
    ("bubble", "matters"): {"en": "How large it is", "zh": "有多大"},
    ("numbering", "use"): {"en": "Which order to choose", "zh": "怎样选顺序"},
}
"""Headings of cards of which the usual ones are not true."""


@dataclass(frozen=True)
class TermCard:
    """Explains one word, in general and with the numbers of a job."""

    key: str
    """The same in every language: ``etp``."""
    name: str
    title: str
    also: tuple[str, ...]
    """What else it is called; each finds the card."""
    text: str
    here: tuple[str, ...]
    """This job's numbers, a sentence each."""
    cost: tuple[str, ...]
    """What it costs: of a plan in seconds, else by bytes."""
    sections: tuple[Section, ...]
    reading: tuple[ReadingLink, ...]


def card_keys() -> tuple[str, ...]:
    """Returns the key of every card, in the order of the file.

    >>> card_keys()[:5]
    ('world', 'node', 'rank', 'local_rank', 'dp')
    """
    return tuple(localized("cards", "en"))


def card(
    term: str,
    layout: Layout,
    placement: Placement,
    *,
    lang: str,
    rank: int | None = None,
    plan: JobPlan | None = None,
) -> TermCard:
    """Returns the card of a term, by its key or any of its names, with the numbers of a job.

    Raises InputError for a term that has none, or a rank outside the world.

    >>> from serried.launch.request import LayoutRequest
    >>> job = LayoutRequest.of({"world_size": 16, "tp": 2, "pp": 4}).laid_out()
    >>> card("expert tensor parallel", *job, lang="en").title
    'Expert tensor parallelism (ETP)'
    """
    key = key_of(term)
    entry = table(localized("cards", lang)[key])
    done = practice(layout)
    job = CardJob(layout, placement, done, rank, plan)
    return TermCard(
        key,
        line(entry["name"]),
        line(entry["title"]),
        tuple(line(each) for each in items(entry.get("also", []))),
        line(entry["text"]),
        tuple(here_lines(key, job, lang)),
        tuple(cost_lines(key, job, lang)),
        tuple(_sections(key, entry, layout, done, lang)),
        _reading(key),
    )


def key_of(term: str) -> str:
    """Returns the key of the card that a term names; raises InputError with the nearest.

    >>> key_of("Data parallelism (DP)"), key_of("专家张量并行"), key_of("local-rank")
    ('dp', 'etp', 'local_rank')
    """
    names = _names()
    asked = _plain(term)
    if asked in names:
        return names[asked]
    near = difflib.get_close_matches(asked, list(names), n=1, cutoff=0.75)
    if near:
        raise InputError(
            "there is no card on '{term}'; did you mean '{near}'?",
            term=term[:40],
            near=names[near[0]],
        )
    raise InputError(
        "there is no card on '{term}'; those there are: {known}",
        term=term[:40],
        known=listed(card_keys(), limit=len(card_keys())),
    )


def _names() -> dict[str, str]:
    """Returns every way to name a card, written plainly, and its key."""
    found: dict[str, str] = {}
    for lang in LANGUAGES:
        for key, entry in localized("cards", lang).items():
            written = table(entry)
            title = line(written["title"])
            names = [key, line(written["name"]), title, re.split(r" ?[(:（：]", title)[0]]
            names += [line(each) for each in items(written.get("also", []))]
            found |= {_plain(name): key for name in names if _plain(name) not in found}
    return found


def _plain(text: str) -> str:
    """Returns a name without case, spaces and marks, and without the -ism that some add.

    >>> _plain("Expert-tensor parallelism"), _plain("LOCAL_RANK")
    ('experttensorparallel', 'localrank')
    """
    return re.sub(r"[\W_]+", "", text.lower()).removesuffix("ism")


def _sections(
    key: str, entry: Mapping[str, Entry], layout: Layout, done: Practice, lang: str
) -> list[Section]:
    made = []
    for name, usual in HEADINGS[lang].items():
        if name not in entry:
            continue
        heading = OWN_HEADINGS.get((key, name), {}).get(lang, usual)
        told = filled(str(entry[name]).strip("\n"), done, lang)
        if key == "etp" and name == "travels":
            told = _expert_exchange(layout, done, lang) or told
        # What a framework without the dimension cannot name is left out.
        known = [each for each in paragraphs(told) if "{" not in each] if told.strip() else []
        if known:
            made.append(Section(heading, tuple(map(_capital, known))))
    return made


def _expert_exchange(layout: Layout, done: Practice, lang: str) -> str:
    """Returns what travels where the layout splits its experts; "" where it does not."""
    heading = str(table(localized("features", lang)["etp"])["heading"])
    found = dict(features(layout, done, lang))
    return "\n\n".join(found.get(heading, ()))


def _capital(text: str) -> str:
    # A size is written as it is given: tp, not Tp.
    return text if text.partition(" ")[0] in SIZES else text[:1].upper() + text[1:]


def _reading(key: str) -> tuple[ReadingLink, ...]:
    file = part("reading")
    named = table(file["cards"]).get(key) or table(file["reading"]).get(key) or []
    return links_of([line(name) for name in items(named)])
