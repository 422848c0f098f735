"""The twelve lessons: a card each, and the state of the page that shows it on sixteen GPUs.

dp   ?tp=2&pp=4&dims=dp      Ranks 0 and 2 have one colour: they hold the same weights …
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from serried.launch.request import LayoutRequest
from serried.mesh.sizes import SIZES
from serried.views.explain.content import line, localized, table
from serried.views.learn.cards import TermCard, card

Words = Mapping[str, str]

GPUS = "16"
_USUAL = {"world_size": GPUS, "tp": "2", "pp": "4"}
LESSONS: Mapping[str, Words] = {
    "world": {**_USUAL, "dims": "dp,tp,pp"},
    "node": {**_USUAL, "dims": "pp"},
    "rank": {**_USUAL, "dims": "dp,tp,pp", "rank": "5"},
    "local_rank": {**_USUAL, "dims": "tp", "rank": "11"},
    "dp": {**_USUAL, "dims": "dp", "pinned_group": "dp:0"},
    "tp": {"world_size": GPUS, "tp": "4", "pp": "2", "dims": "tp", "pinned_group": "tp:0"},
    "pp": {**_USUAL, "dims": "pp", "arrange": "stage", "pinned_group": "pp:0"},
    "cp": {"world_size": GPUS, "tp": "2", "pp": "1", "cp": "4", "dims": "dp,cp"},
    "ep": {
        **{"world_size": GPUS, "tp": "2", "pp": "1", "ep": "4", "etp": "2"},
        **{"dims": "ep", "kind": "expt_tp"},
    },
    "zero": {"world_size": GPUS, "tp": "2", "pp": "1", "zero": "1", "dims": "dp", "sharded": "1"},
    "numbering": {**_USUAL, "order": "tp-cp-ep-pp-dp", "dims": "dp,pp", "rank": "0"},
    "bubble": {**_USUAL, "view": "schedule", "stages": "4", "microbatches": "8"},
}
"""By the key of their card, the words of the address that shows each."""


@dataclass(frozen=True)
class LessonShown:
    """Holds one lesson: its card with the numbers of its own job, and what to look at."""

    card: TermCard
    title: str
    look: str
    words: Words
    """The words of the address."""

    @property
    def address(self) -> str:
        """The part of an address behind the question mark."""
        return urlencode(self.words, safe=",:")


def lessons(lang: str) -> tuple[LessonShown, ...]:
    """Returns the lessons in the order in which they build on one another.

    >>> [each.card.key for each in lessons("en")][:4]
    ['world', 'node', 'rank', 'local_rank']
    """
    return tuple(lesson(key, lang) for key in LESSONS)


def lesson(key: str, lang: str) -> LessonShown:
    """Returns the lesson of a card."""
    words = LESSONS[key]
    rank = int(words["rank"]) if "rank" in words else None
    layout, placement = job_of(key).laid_out()
    written = localized("lessons", lang)
    made = card(key, layout, placement, lang=lang, rank=rank)
    title = line(table(written["titles"]).get(key, made.title))
    return LessonShown(made, title, line(written[key]), words)


def job_of(key: str) -> LayoutRequest:
    """Returns the job that a card is shown on where nobody names one: that of its lesson.

    >>> job_of("etp").sizes().ep, job_of("mfu").sizes().pp
    (4, 4)
    """
    words = LESSONS.get({"etp": "ep"}.get(key, key), _USUAL)
    sizes = {name: SIZES[name].read(text) for name, text in words.items() if name in SIZES}
    return LayoutRequest.of(sizes)
