"""The folder in which a running job writes, looked at again and again.

    rank-*.spans    also in the folders of restarts    how far each rank is, and who is slow
    rank-*.guard                                       the same, and what became of its process
    logs                                               a loss that is no number, times of steps

What is not there yet, vanishes, or cannot be read is passed over: the next look may find it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from serried.diagnose.diagnosis import Cause
from serried.diagnose.evidence.log_line import log_line
from serried.diagnose.evidence.records.guard_file import SUFFIX as GUARD_SUFFIX
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.text.data import data_signs
from serried.diagnose.steps.of_lines import StepLines
from serried.diagnose.stragglers.of_log import log_causes
from serried.diagnose.watch.latest_steps import slow_in
from serried.diagnose.watch.look import JobLook, RankIs, RankLook
from serried.diagnose.watch.tails import GuardTail, LogTail, SpanTail
from serried.errors import InputError
from serried.trace.model.record import RecordHeader, Records

Tail = TypeVar("Tail", SpanTail, GuardTail)

ASKED_EVERY = 8
"""Steps after which it is asked again who is slow."""
MOST_LOGS = 2_048
MOST_FILES = 200_000
_SPANS = re.compile(r"rank-\d+\.spans$")
_LOG = re.compile(r"\.(?:log|out|err|txt|jsonl)$|^(?:stdout|stderr|log)$")
_NO_NUMBER = re.compile(rb"nan|inf", re.IGNORECASE)
_RESTART = re.compile(r"restart-(\d+)")


@dataclass
class FollowedJob:
    """Follows what a job writes below ``folder``; every ``look`` reads what is new."""

    folder: Path
    clock: Callable[[], float] = time.time
    _spans: dict[Path, SpanTail] = field(default_factory=dict)
    _guards: dict[Path, GuardTail] = field(default_factory=dict)
    _logs: dict[Path, LogTail] = field(default_factory=dict)
    _lines: StepLines = field(default_factory=StepLines)
    _asked_at: int = -1
    _latest: list[tuple[RecordHeader, Records]] = field(default_factory=list)

    def look(self) -> JobLook:
        """Returns how far the job is now."""
        self._find()
        spans = _by_rank(self._spans, lambda tail: tail.header)
        guards = _by_rank(self._guards, lambda tail: tail.record)
        signs = tuple(self._signs())
        ranks = {
            rank: _rank_look(rank, spans.get(rank), guards.get(rank))
            for rank in sorted({*spans, *guards})
        }
        attempt = max((each.attempt for each in ranks.values()), default=0)
        ranks = {rank: each for rank, each in ranks.items() if each.attempt == attempt}
        if not ranks and not self._lines.is_mixed:
            ranks = _of_lines(self._lines)
        # After an elastic restart the job may have fewer ranks: what those left that are no more
        # part of it counts no longer.
        spans = {rank: tail for rank, tail in spans.items() if rank in ranks}
        self._latest = [(tail.header, tail.table) for tail in spans.values()]
        headers = [tail.header for tail in spans.values()]
        headers += [tail.record for rank, tail in guards.items() if rank in ranks]
        return JobLook(
            self.clock(),
            ranks,
            max(headers, key=lambda each: each.wall_ns).job.world_size if headers else None,
            sum(tail.size for tail in self._logs.values()),
            signs,
            self._slow(spans, ranks),
        )

    @property
    def latest(self) -> list[tuple[RecordHeader, Records]]:
        """What was kept, at the latest look, of the steps that each rank recorded last."""
        return self._latest

    def _find(self) -> None:
        """Takes note of files that are new, and forgets those that vanished."""
        seen: set[Path] = set()
        for path in _files(self.folder):
            seen.add(path)
            if _SPANS.search(path.name) and path not in self._spans:
                try:
                    self._spans[path] = SpanTail(path)
                except (InputError, OSError):
                    continue  # its header is written in this moment
            elif path.suffix == GUARD_SUFFIX and path not in self._guards:
                self._guards[path] = GuardTail(path)
            elif path not in self._logs and _LOG.search(path.name) and len(self._logs) < MOST_LOGS:
                self._logs[path] = LogTail(path)
        for tails in (self._spans, self._guards, self._logs):
            for path in [path for path in tails if path not in seen]:
                del tails[path]

    def _signs(self) -> Iterator[Sign]:
        for path, tail in self._logs.items():
            try:
                first, lines = tail.look()
            except (InputError, OSError):
                continue
            self._lines.hear(path.name, tail.speaker, first, lines)
            for number, raw in enumerate(lines, first):
                if len(raw) < 4096 and _NO_NUMBER.search(raw):
                    text = raw.decode("utf-8", "replace")
                    line = log_line(text, path.name, number, tail.speaker)
                    yield from (sign for sign in data_signs(line) if sign.kind == "nan")

    def _slow(
        self, spans: Mapping[int, SpanTail], ranks: Mapping[int, RankLook]
    ) -> tuple[Cause, ...] | None:
        """Returns who is slow, asked anew after some steps; None in between."""
        step = min((each.step for each in ranks.values()), default=-1)
        if self._asked_at <= step < self._asked_at + ASKED_EVERY:
            return None
        self._asked_at = step
        try:
            if spans:
                return slow_in(self._latest)
            return tuple(each for each in log_causes(self._lines) if each.ranks)
        except InputError:  # spans that no job has, as of two runs in one folder
            return ()


def _by_rank(tails: Mapping[Path, Tail], header: Callable[[Tail], RecordHeader]) -> dict[int, Tail]:
    """Returns the files by rank as they are now, of one rank that which was begun last."""
    found: dict[int, Tail] = {}
    for tail in tails.values():
        try:
            tail.look()
        except (InputError, OSError):
            continue
        of = header(tail)
        known = found.get(of.rank)
        if known is None or header(known).wall_ns < of.wall_ns:
            found[of.rank] = tail
    return found


def _files(folder: Path) -> Iterator[Path]:
    count = 0
    for above, _, names in os.walk(folder):
        for name in names:
            count += 1
            if count > MOST_FILES:
                return
            yield Path(above, name)


def _rank_look(rank: int, spans: SpanTail | None, guard: GuardTail | None) -> RankLook:
    state, attempt, idle = RankIs.RUNNING, 0, list[float]()
    if guard is not None:
        state, attempt = guard.state, guard.attempt
        idle.append(guard.idle_s)
    if spans is not None:
        idle.append(spans.idle_s)
        if found := _RESTART.search(spans.path.parent.name):
            attempt = max(attempt, int(found[1]))
        if spans.is_closed and state is RankIs.RUNNING:
            state = RankIs.DONE
    tails = [each for each in (spans, guard) if each is not None]
    return RankLook(
        rank,
        sum(each.count for each in tails),
        max(each.step for each in tails),
        state,
        attempt,
        min(idle),
    )


def _of_lines(lines: StepLines) -> dict[int, RankLook]:
    """Returns how far ranks are by the steps that their logs tell."""
    latest = {rank: next(reversed(steps.latest), -1) for rank, steps in lines.steps.items()}
    return {rank: RankLook(rank, step, step) for rank, step in sorted(latest.items())}
