"""Whether a job went on after what a line of its log tells: the numbers of steps that follow.

    line  80  upload failed (attempt 1 of 5)        ─┐
    line  81  iteration 201/5000 ...                 │ so many steps follow that the job
    ...                                              │ got over it
    line 120  iteration 240/5000 ...                ─┘

Where numbers begin anew, as where the logs of two ranks or of two runs stand in one file, what
follows says nothing of what came before.

>>> going_on, nobody = GoingOn(), Speaker()
>>> going_on.hear("job.log", nobody, 1, [b"upload failed", *(b"step %d" % n for n in range(30))])
>>> going_on.has_passed("job.log", 1), going_on.has_passed("job.log", 12)
(True, False)
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

from serried.diagnose.evidence.quote import Speaker

ENOUGH = 20
"""Steps that must follow: ranks that lack one of them stop within very few."""
MOST_LINES = 400
"""Lines at the end of a block that are looked at; of a long log only the last count."""
MOST_SAMPLES, SAMPLE = 200, 4
"""Places of a block, and lines at each, where numbers are followed: they may begin anew there."""
_LONGEST = 600
_KEPT = 3 * ENOUGH

_STEP = re.compile(  # bars of what a rank does alone, such as reading data, tell nothing
    rb"\b(?:[iI]ter(?:ation)?|(?:global_)?[sS]tep)s?\b[ :=\[(#]{0,12}(\d+)|"
    rb"[eE]poch\W{1,3}\[?\d+\]?\W{0,3}\[\s*(\d+)/|'loss': ([\d.]+)|"
    rb"^(?=[^\n]*(?:[lL]oss|[eE]poch|[tT]rain))[^\n]*?(\d+)/\d+ \[[^\]]*(?:it/s|s/it)"
)
_WORDS = (b"iter", b"Iter", b"step", b"Step", b"poch", b"'loss'", b"it/s", b"s/it")
"""One of these is in every line that tells of a step: quicker to look for than the whole."""
_EPOCH = re.compile(rb"[eE]poch\W{0,4}(\d{1,6})")
_TROUBLE = re.compile(rb"rror\b|xception|WorkNCCL|imed? ?out|  File |fail|FAIL")


class GoingOn:
    """Collects where the last steps of each log stand, as its lines are read."""

    def __init__(self) -> None:
        self._latest: dict[str, dict[bytes, int]] = {}
        self._furthest: dict[tuple[str, bool], tuple[int, int]] = {}
        self._anew: dict[str, int] = {}
        self._before: dict[str, list[tuple[int, int]]] = {}
        """For each log the parts that are over: their first line, and the last one got over."""
        self._recent: dict[str, deque[int]] = {}

    def hear(self, name: str, speaker: Speaker, first: int, lines: Sequence[bytes]) -> None:
        """Takes lines of the file ``name``, from its line ``first`` on."""
        self._follow(name, first, lines)
        found: dict[bytes, int] = {}
        for back, raw in enumerate(lines[: -MOST_LINES - 1 : -1], 1):
            step = _step(raw)
            if step is not None:
                found.setdefault(step, first + len(lines) - back)
            if len(found) == _KEPT:
                break
        latest = self._latest.setdefault(name, {})
        for step, number in reversed(found.items()):
            latest.pop(step, None)
            latest[step] = number
            if len(latest) > _KEPT:
                del latest[next(iter(latest))]

    def has_passed(self, name: str, line: int, done: int = 0) -> bool:
        """Tells whether the job of a log got over what stands at ``line``.

        That is where ``ENOUGH`` different steps follow, or its good end at line ``done``.
        """
        lines = sorted(self._latest.get(name, {}).values())
        since = lines[-ENOUGH] if len(lines) >= ENOUGH else 0
        parts = [*self._before.get(name, ()), (self._anew.get(name, 0), max(done, since))]
        return any(first <= line < last for first, last in parts)

    def _follow(self, name: str, first: int, lines: Sequence[bytes]) -> None:
        """Keeps how far a log has come, and the line from which its steps begin anew."""
        for start in range(0, len(lines), max(1, len(lines) // MOST_SAMPLES)):
            for at, raw in enumerate(lines[start : start + SAMPLE], start):
                if (number := _step(raw)) is None:
                    continue
                epoch = _EPOCH.search(raw, 0, _LONGEST)
                # Lines of one log may tell the epoch or leave it out: each kind is followed apart.
                kind = name, epoch is not None
                now = int(epoch[1]) if epoch else 0, int(number) if number.isdigit() else 0
                before = self._furthest.get(kind, now)
                recent = self._recent.setdefault(name, deque(maxlen=ENOUGH))
                if now < (before[0], before[1] - ENOUGH):
                    # Where lines of ranks alternate, numbers fall often, and nothing is got over.
                    if len(recent) == ENOUGH:
                        part = self._anew.get(name, 0), recent[0]
                        self._before.setdefault(name, []).append(part)
                    self._anew[name] = first + at
                    recent.clear()
                    before = now
                recent.append(first + at)
                self._furthest[kind] = max(before, now)
                break


def _step(raw: bytes) -> bytes | None:
    """Returns the number of the step that a line tells of, None where it tells of none."""
    if not any(word in raw for word in _WORDS):
        return None
    found = _STEP.search(raw, 0, _LONGEST)
    if found is None or _TROUBLE.search(raw, 0, _LONGEST):
        return None
    return next(group for group in found.groups() if group)
