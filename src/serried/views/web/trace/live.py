"""Runs that are still being written: what was added since they were read, and reading them again.

    page   trace/growth?trace=0    every two seconds while it is looked at
    here   looks at the ends of the ranks' files, and reads the run again once every rank has
           finished another step; not sooner than some times as long as the last reading took

What stands in files that vanish stays as it was read. Files to which nobody writes any more though
they have no proper end are a job that hangs or was killed, which is said.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from serried.diagnose.watch.tails import SpanTail
from serried.errors import InputError
from serried.finding import Sentence, said
from serried.trace.formats.reading import read_recording
from serried.trace.model.trace import Trace
from serried.views.sentences import LANGUAGES, say
from serried.views.web.trace.payload import NamedTrace

REST = 4.0
"""A run is read again once so many times as long as reading took have passed."""
SILENT_S = 30
"""After so many seconds without a span it is said that none came; they are counted by as many."""
SCHEMA = "serried.trace-growth/1"
STILL = {"schema": SCHEMA, "state": "still", "revision": 0, "note": None}
"""What is said of a trace that nobody writes to."""


@dataclass
class LiveRun:
    """Follows the files of one run; ``look`` may read it again."""

    named: NamedTrace
    clock: Callable[[], float] = time.monotonic
    revision: int = 0
    """How often it was read again."""
    _tails: list[SpanTail] = field(default_factory=list)
    _read_step: int = -1
    _not_before: float = 0.0
    _seen: tuple[int, float] = (-1, 0.0)
    """How many spans there were when some came last, and when that was."""
    _lock: Lock = field(default_factory=Lock)

    def look(self) -> dict[str, Any]:
        """Returns whether the run grows, has ended or is gone, and how often it was read again."""
        with self._lock:
            paths = _files(self.named.place)
            if self.named.gpus is not None or (not paths and not self._tails):
                return STILL
            if not paths:
                return self._told("gone")
            try:
                self._follow(paths)
                return self._read_on()
            except InputError:
                return self._told("gone")

    def _follow(self, paths: list[Path]) -> None:
        known = {each.path for each in self._tails}
        self._tails += [SpanTail(path) for path in paths if path not in known]
        for each in self._tails:
            each.look()
        if self._read_step < 0:
            self._read_step = _whole_step(self.named.trace)

    def _read_on(self) -> dict[str, Any]:
        ended = all(each.is_closed for each in self._tails)
        # The last step of the slowest rank is still being written.
        step = min(each.step for each in self._tails) - (0 if ended else 1)
        if step > self._read_step and self.clock() >= self._not_before:
            self._read(step)
        if ended and self._read_step >= step:
            return self._told("ended")
        idle = self._idle_s()
        return self._told("growing", self._silence(idle) if idle >= SILENT_S else None)

    def _read(self, step: int) -> None:
        place, begin = self.named.place, self.clock()
        assert place is not None  # there are files of it
        self.named = NamedTrace.read(self.named.name, read_recording([place]), place)
        self._read_step, self.revision = step, self.revision + 1
        self._not_before = self.clock() + REST * (self.clock() - begin)

    def _idle_s(self) -> float:
        """Returns for how long no span has come, as this machine's clock or the files say."""
        count, now = sum(each.count for each in self._tails), self.clock()
        if count != self._seen[0]:
            self._seen = count, now
        return max(now - self._seen[1], min(each.idle_s for each in self._tails))

    def _silence(self, idle_s: float) -> Sentence:
        return said(
            "no rank has recorded a span for {seconds} s: the job hangs, was killed, or does what "
            "is not recorded; the Diagnose tab, or serried diagnose {place}, tells more",
            seconds=int(idle_s // SILENT_S) * SILENT_S,
            place=self.named.place,
        )

    def _told(self, state: str, note: Sentence | None = None) -> dict[str, Any]:
        if state == "gone":
            note = said(
                "{name} is not there any more; what was read of it stays here until the server "
                "ends",
                name=self.named.place or self.named.name,
            )
        told = {lang: say(note, lang) for lang in LANGUAGES} if note else None
        return {"schema": SCHEMA, "state": state, "revision": self.revision, "note": told}


class LiveRuns:
    """Follows those traces of a list that are asked about, and puts what was read in its place."""

    def __init__(self, traces: list[NamedTrace]) -> None:
        """Takes the list that is on offer."""
        self._traces = traces
        self._runs: dict[int, LiveRun] = {}

    def look(self, number: int) -> dict[str, Any]:
        """Returns what is new of one of the traces."""
        run = self._runs.setdefault(number, LiveRun(self._traces[number]))
        told = run.look()
        self._traces[number] = run.named
        return told


def _files(place: Path | None) -> list[Path]:
    """Returns the files that ranks write below ``place``; none for what is no recording."""
    if place is None or not place.is_dir():
        return []
    return sorted(place.glob("rank-*.spans"))


def _whole_step(trace: Trace) -> int:
    """Returns the last step that every rank had finished when a trace was read, -1 for none."""
    spans = trace.spans
    last = np.full(trace.job.world_size, -1, np.int64)
    np.maximum.at(last, spans.rank, spans.step)
    return int(min(last[list(trace.ranks)], default=0)) - bool(trace.torn)
