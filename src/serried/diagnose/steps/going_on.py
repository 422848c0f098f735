"""Whether a job went on after what a line of its log tells: the numbers of steps that follow.

    line  80  upload failed (attempt 1 of 5)        ─┐
    line  81  iteration 201/5000 ...                 │ so many steps follow that the job
    ...                                              │ got over it
    line 120  iteration 240/5000 ...                ─┘

>>> going_on, nobody = GoingOn(), Speaker()
>>> going_on.hear("job.log", nobody, 1, [b"upload failed", *(b"step %d" % n for n in range(30))])
>>> going_on.since("job.log")
12
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from serried.diagnose.evidence.quote import Speaker

ENOUGH = 20
"""Steps that must follow: ranks that lack one of them stop within very few."""
MOST_LINES = 400
"""Lines at the end of a block that are looked at; of a long log only the last count."""
_LONGEST = 600
_KEPT = 3 * ENOUGH

_STEP = re.compile(  # bars of what a rank does alone, such as reading data, tell nothing
    rb"\b(?:[iI]ter(?:ation)?|(?:global_)?[sS]tep)s?\b[ :=\[(#]{0,12}(\d+)|"
    rb"[eE]poch\W{1,3}\[?\d+\]?\W{0,3}\[\s*(\d+)/|'loss': ([\d.]+)|"
    rb"^(?=[^\n]*(?:[lL]oss|[eE]poch|[tT]rain))[^\n]*?(\d+)/\d+ \[[^\]]*(?:it/s|s/it)"
)
_TROUBLE = re.compile(rb"rror\b|xception|WorkNCCL|imed? ?out|  File |fail|FAIL")


class GoingOn:
    """Collects where the last steps of each log stand, as its lines are read."""

    def __init__(self) -> None:
        self._latest: dict[str, dict[bytes, int]] = {}

    def hear(self, name: str, speaker: Speaker, first: int, lines: Sequence[bytes]) -> None:
        """Takes lines of the file ``name``, from its line ``first`` on."""
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

    def since(self, name: str) -> int:
        """Returns the line after which a log holds ``ENOUGH`` different steps; 0 where none."""
        lines = sorted(self._latest.get(name, {}).values())
        return lines[-ENOUGH] if len(lines) >= ENOUGH else 0


def _step(raw: bytes) -> bytes | None:
    """Returns the number of the step that a line tells of, None where it tells of none."""
    found = _STEP.search(raw, 0, _LONGEST)
    if found is None or _TROUBLE.search(raw, 0, _LONGEST):
        return None
    return next(group for group in found.groups() if group)
