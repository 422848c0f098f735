r"""A pattern: one sentence that a program prints, the kind of sign it is, and the facts in it.

    Pattern("exit", r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<local_rank>\d+)")
            └── kind                       └── a named group becomes a fact; digits a number

Four names say more than a fact: ``rank``, ``local_rank``, ``group_rank`` and ``task`` become the
speaker, ``host``, ``gpu`` and ``pid`` stand with it, ``code`` becomes the sign's code.

>>> from serried.diagnose.evidence.log_line import log_line
>>> exits = Pattern("exit", r"exitcode: (?P<code>-?\d+)\) local_rank: (?P<local_rank>\d+)")
>>> sign = exits.sign(log_line("failed (exitcode: -9) local_rank: 5 (pid: 2630)", "job.log", 1))
>>> sign.code, sign.speaker.rank, sign.speaker.numbering
(-9, 5, <Numbering.LOCAL: 'local'>)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.quote import Numbering, Speaker
from serried.diagnose.evidence.sign import Sign

_NUMBERINGS = {
    "rank": Numbering.GLOBAL,
    "local_rank": Numbering.LOCAL,
    "group_rank": Numbering.GROUP,
    "task": Numbering.TASK,
}
LONGEST_NUMBER = 18
MOST_RANKS = 1 << 24
"""A number from here on is no rank, whatever the line calls it: Open MPI prints some by mistake."""


class Pattern:
    """Finds one sentence in a line."""

    def __init__(self, kind: str, expression: str) -> None:
        self.kind = kind
        self._regex = re.compile(expression)

    def sign(self, line: LogLine) -> Sign | None:
        """Returns the sign that a line states, None where it does not hold the sentence."""
        found = self._regex.search(line.text)
        if not found:
            return None
        facts = {name: _value(text) for name, text in found.groupdict().items() if text}
        code = facts.pop("code", None)
        return Sign(
            self.kind,
            line.quote,
            _speaker(line.speaker, facts),
            line.time,
            code=code if isinstance(code, int) else None,
            text=line.text[found.start() :].strip(),
            facts=facts,
        )


def first_signs(patterns: Iterable[Pattern], line: LogLine) -> Iterator[Sign]:
    """Yields the sign of the first pattern that a line holds, and no other."""
    for pattern in patterns:
        if sign := pattern.sign(line):
            yield sign
            return


def all_signs(patterns: Iterable[Pattern], line: LogLine) -> Iterator[Sign]:
    """Yields the signs of every pattern that a line holds: two processes may share a line."""
    for pattern in patterns:
        if sign := pattern.sign(line):
            yield sign


def whole_number(text: str | None) -> int | None:
    """Returns a whole number; None for what is absent, unset or too long to be one.

    >>> whole_number("7753"), whole_number("18446744073709551615"), whole_number(None)
    (7753, None, None)
    """
    if not text or len(text.lstrip("-")) > LONGEST_NUMBER:
        return None
    return int(text)


def _value(text: str) -> object:
    number = re.fullmatch(r"-?\d+", text, re.ASCII) and whole_number(text)
    return text if number is None else number


def _speaker(speaker: Speaker, facts: Mapping[str, object]) -> Speaker:
    """Returns who a sentence speaks of; a global rank in front of the line stays."""
    for name, numbering in _NUMBERINGS.items():
        rank = facts.get(name)
        if not isinstance(rank, int) or rank >= MOST_RANKS:
            continue
        is_vague = speaker.rank is None or speaker.numbering is Numbering.TASK
        if numbering is Numbering.GLOBAL or is_vague:
            speaker = replace(speaker, rank=rank, numbering=numbering)
            break
    host, gpu, pid = facts.get("host"), facts.get("gpu"), facts.get("pid")
    return replace(
        speaker,
        host=host if isinstance(host, str) else speaker.host,
        gpu=gpu if isinstance(gpu, int) else speaker.gpu,
        pid=pid if isinstance(pid, int) else speaker.pid,
    )
