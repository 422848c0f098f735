"""What a diagnosis rests on, at a glance: two looks that give the same mark saw the same evidence.

rank-*.spans    how many spans it holds, and whether it has its end: the time of a mapped file
rank-*.guard    how far its rank is, and what became of its process: tells little
anything else   its size and the time of its last change
processes       of ranks whose files grow no more: running, stopped or gone
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path

from serried.diagnose.evidence.records.guard_file import SUFFIX as GUARD_SUFFIX
from serried.diagnose.evidence.records.process import DEAD, STOPPED, holders_of, start_of, state_of
from serried.diagnose.gather import files_of
from serried.diagnose.watch.look import RankIs
from serried.diagnose.watch.tails import GuardTail, SpanTail
from serried.errors import InputError
from serried.trace.merge.files import PATTERN

Marks = dict[Path, Hashable]


@dataclass
class EvidenceMark:
    """Looks at the files of a place; ``look`` returns a mark of each."""

    place: Path
    _tails: dict[Path, SpanTail | GuardTail] = field(default_factory=dict)
    _counts: dict[Path, int] = field(default_factory=dict)
    _processes: dict[Path, tuple[int, int]] = field(default_factory=dict)
    """The process that holds a rank's record, and when it began."""
    _newest_s: float = 0.0

    def look(self) -> Marks:
        """Returns a mark of each file, and of the processes that write no more though they could.

        Raises InputError where the place is gone.
        """
        if not self.place.exists():
            raise InputError("{path} is not there", path=self.place)
        marks = {path: self._mark(path) for path in files_of(self.place)}
        open_ = {
            path: tail.count
            for path, tail in self._tails.items()
            if path in marks and isinstance(tail, SpanTail) and not tail.is_closed
        }
        still = [path for path, count in open_.items() if self._counts.get(path) == count]
        # What is written anew under the same name is another process's.
        self._processes = {path: each for path, each in self._processes.items() if path in still}
        self._counts = open_
        return marks | {path: (marks[path], self._process(path, still)) for path in still}

    @property
    def is_live(self) -> bool:
        """Whether the process of some rank still runs, or is held: silence tells of it then."""
        guards = (each for each in self._tails.values() if isinstance(each, GuardTail))
        running = (RankIs.RUNNING, RankIs.STOPPED)
        held = (state_of(*process) not in DEAD for process in self._processes.values())
        return any(held) or any(each.count and each.state in running for each in guards)

    @property
    def counts(self) -> dict[Path, int]:
        """How much each rank had recorded at the last look: it went on where this grows."""
        return {path: tail.count for path, tail in self._tails.items()}

    def is_newer(self, than: float | None) -> bool:
        """Tells whether something was written after a moment, or may be: mapped files do not say.

        ``than`` is in seconds since 1970.
        """
        open_ = (isinstance(each, SpanTail) and not each.is_closed for each in self._tails.values())
        return than is None or any(open_) or self._newest_s > than

    def _mark(self, path: Path) -> Hashable:
        try:
            if path.match(PATTERN) or path.suffix == GUARD_SUFFIX:
                return self._followed(path)
            told = path.stat()
        except (InputError, OSError):
            return None  # its header is written in this moment, or it has just gone
        self._newest_s = max(self._newest_s, told.st_mtime)
        return told.st_size, told.st_mtime_ns

    def _followed(self, path: Path) -> Hashable:
        tail = self._tails.get(path)
        if tail is None:
            tail = SpanTail(path) if path.match(PATTERN) else GuardTail(path)
        tail.look()
        self._tails[path] = tail
        if isinstance(tail, SpanTail):
            return tail.count, tail.is_closed
        return tail.count, tail.step, tail.state

    def _process(self, path: Path, still: list[Path]) -> str:
        """Returns what became of the process that writes a record, "" where none is known."""
        if path not in self._processes:
            found = holders_of(each for each in still if each not in self._processes)
            self._processes |= {each: (pid, start_of(pid)) for each, pid in found.items()}
        if path not in self._processes:
            self._processes[path] = (0, 0)
        letter = state_of(*self._processes[path])
        return "stopped" if letter in STOPPED else "gone" if letter in DEAD else "runs"
