"""Diagnoses whose evidence may still change: it is looked at while a page shows them.

    page   cases/events?case=0   server-sent events, as long as the Diagnose tab shows it
    here   looks at the files now and then, and reads them again where they changed, or where ranks
           that live have written nothing for long; not sooner than some times as long as it took

What was found stays where the evidence is gone, or cannot be read in this moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any

from serried.errors import InputError, SerriedError
from serried.finding import Sentence, said
from serried.trace.model.progress import size_bytes, unheard
from serried.views.sentences import LANGUAGES, say
from serried.views.web.diagnose.cases import NamedCase, read_case
from serried.views.web.diagnose.evidence_mark import EvidenceMark, Marks
from serried.views.web.opening.apart import APART_BYTES, ReaderProcess
from serried.views.web.opening.kinds import Kind

LOOK_S = 2.0
"""Seconds from one look at the files to the next."""
REST = 10.0
"""Looks and readings wait so many times as long as the last of them took, so that one page's
diagnosis takes a tenth of a core at most."""
LEAST_REST_S = 5.0
SILENT_S, LONGEST_SILENT_S = 5.0, 3600.0
"""Silence of ranks that live is evidence too: after so long, and each time that it has doubled."""
SCHEMA = "serried.case-growth/1"


@dataclass
class FollowedCase:
    """Follows the evidence of one diagnosis; ``look`` may diagnose it anew."""

    case: NamedCase
    clock: Callable[[], float] = time.monotonic
    _mark: EvidenceMark | None = None
    _seen: Marks | None = None
    _since: float = 0.0
    """When the evidence was last seen to change."""
    _silent_s: float = SILENT_S
    _told_at: dict[Path, int] = field(default_factory=dict)
    """How far ranks had come when they were last diagnosed."""
    _is_due: bool = False
    _not_before: float = 0.0
    _next_look: float = 0.0
    _problem: Sentence | None = None
    _lock: Lock = field(default_factory=Lock)

    def look(self) -> dict[str, Any]:
        """Returns what a page is told of it: whether it is followed, and how often it changed."""
        with self._lock:
            now = self.clock()
            if self.case.place is not None and now >= self._next_look:
                self._look(now)
            return self._told()

    def _look(self, now: float) -> None:
        assert self.case.place is not None
        self._mark = self._mark or EvidenceMark(self.case.place)
        try:
            marks = self._mark.look()
        except (InputError, OSError):
            self._problem = said(
                "{name} is not there any more; what was found stays here until the server ends",
                name=self.case.place,
            )
            return
        took = self.clock() - now
        self._next_look = now + max(LOOK_S, REST * took)
        self._weigh(marks, now)
        if self._is_due and now >= self._not_before:
            self._diagnose()

    def _weigh(self, marks: Marks, now: float) -> None:
        """Decides whether what a look saw is worth a fresh diagnosis."""
        assert self._mark is not None
        if marks != self._seen:
            # At the first look nothing is known of what came while it was opened.
            is_first, self._seen = self._seen is None, marks
            self._since, self._silent_s = now, SILENT_S
            self._is_due = self._is_due or not is_first or self._mark.is_newer(self.case.read_at)
        elif self._mark.is_live and now - self._since >= self._silent_s <= LONGEST_SILENT_S:
            self._silent_s *= 2
            self._is_due = True

    def _diagnose(self) -> None:
        begin = self.clock()
        try:
            found, self._problem = self._read(), None
        except SerriedError as error:
            self._problem = said("the evidence cannot be read now: {why}", why=error)
            found = self.case
        found = self._stood(found)
        took = self.clock() - begin
        self._not_before = self.clock() + max(LEAST_REST_S, REST * took)
        self._is_due = False
        is_same = found.told == self.case.told and found.whole == self.case.whole
        revision = self.case.revision + (not is_same)
        self.case = replace(found, name=self.case.name, revision=revision)

    def _stood(self, found: NamedCase) -> NamedCase:
        """Returns what to show: why ranks stood still, also once somebody has ended them.

        Nothing tells it any more then, and it is what one wants to know.
        """
        assert self._mark is not None
        counts, before = self._mark.counts, self._told_at
        is_over = bool(self.case.diagnosis.causes) and not found.diagnosis.causes
        if before and counts == before and is_over and not self._mark.is_live:
            self._problem = said(
                "its processes have ended since, and their ranks had not gone on: this is why they "
                "stood still"
            )
            return self.case
        self._told_at = counts
        return found

    def _read(self) -> NamedCase:
        place, name = self.case.place, self.case.name
        assert place is not None
        if size_bytes(place) < APART_BYTES:
            return read_case(place, name)
        (found,) = ReaderProcess(Kind.LOG, [place], name).read(unheard).cases
        return found

    def _told(self) -> dict[str, Any]:
        note = self._problem
        return {
            "schema": SCHEMA,
            "state": "still" if self.case.place is None else "followed",
            "revision": self.case.revision,
            "read_at": self.case.read_at,
            "note": {lang: say(note, lang) for lang in LANGUAGES} if note else None,
        }


class FollowedCases:
    """Follows those cases of a list that are asked about, and puts what was found in its place."""

    def __init__(self, cases: list[NamedCase]) -> None:
        """Takes the list that is on offer."""
        self._cases = cases
        self._followed: dict[int, FollowedCase] = {}

    def look(self, number: int) -> dict[str, Any]:
        """Returns what is new of one of the cases."""
        followed = self._followed.setdefault(number, FollowedCase(self._cases[number]))
        told = followed.look()
        self._cases[number] = followed.case
        return told
