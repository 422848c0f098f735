"""What torchrun and its relatives print: exits, signals, the summary of failures, closing signals.

Signs: ``exit`` (code, local rank, pid), ``first_failure`` (torchrun's own word for the root: the
first process that it saw end), ``other_failure``, ``agent_signal`` (the launcher itself got a
signal), ``closing`` (it stops the rest), ``word_killed``.

>>> from serried.diagnose.evidence.log_line import log_line
>>> raw = "E0325 20:57:27.62 2606 api.py:869] failed (exitcode: -9) local_rank: 5 (pid: 2630)"
>>> [sign] = exits(log_line(raw, "job.log", 1))
>>> sign.kind, sign.code, sign.speaker.rank
('exit', -9, 5)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.quote import Numbering, Speaker
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.text.pattern import Pattern, first_signs, whole_number

# DeepSpeed's launcher and torch's before 1.9 print the command of the process that they started
# last, whichever ended: its --local_rank names nobody.
_PATTERNS = (
    Pattern("exit", r"Child process with PID (?P<pid>\d+) terminated with code (?P<code>-?\d+)"),
    Pattern(
        "exit",
        r"process rank (?P<rank>\d+) with PID (?P<pid>\d+) on node (?P<host>\S+) exited on signal "
        r"(?P<signal>\d+)",
    ),
    Pattern(
        "exit",
        r"failed \(exitcode: ?(?P<code>-?\d+)\)(?: ?\((?P<name>SIG\w+)\))? "
        r"local_rank: (?P<local_rank>\d+)(?: \(pid: (?P<pid>\d+)\))?",
    ),
    Pattern(
        "exit",
        r"[Ww]orker (?P<local_rank>\d+) \(pid: (?P<pid>\d+)\) exited with code (?P<code>-?\d+)",
    ),
    Pattern(
        "exit",
        r"launch\.py:\d+:sigkill_handler\].*exits with return code = (?P<code>-?\d+)",
    ),
    Pattern("exit", r"Subprocess (?P<pid>\d+) exit(?:s|ed)? with return code = (?P<code>-?\d+)"),
    Pattern(
        "exit",
        r"(?:^|[:\s])process (?P<local_rank>\d+) terminated with "
        r"(?:exit code (?P<code>\d+)|signal (?P<name>SIG\w+))",
    ),
    Pattern("exit", r"CalledProcessError: Command .* died with <Signals\.(?P<name>SIG\w+): \d+>"),
    Pattern("exit", r"CalledProcessError: Command .* returned non-zero exit status (?P<code>\d+)"),
    Pattern(
        "agent_signal",
        r"(?:SignalException: Process (?P<pid>\d+) got signal: |Received )(?P<signal>\d+)"
        r"(?: death signal)?",
    ),
    Pattern("closing", r"Sending process (?P<pid>\d+) closing signal (?P<name>SIG\w+)"),
    Pattern("closing", r"Unable to shutdown process (?P<pid>\d+) via (?P<name>SIG\w+)"),
)
_TRAINERS = re.compile(r"trainer process with rank=\[([\d, ]{1,2000})\] was aborted")
"""Paddle's launcher names every trainer that ended."""
_SUMMARY = re.compile(
    r"^\s*(?P<name>time|host|rank|exitcode|error_file|traceback)\s*:\s*(?P<value>.*)$"
)
_RANK = re.compile(r"(\d+) \(local_rank: (\d+)\)")
_CODE = re.compile(r"(-?\d+) \(pid: (\d+)\)")
_ROOT = re.compile(r"^Root Cause \(first observed failure\):")
_OTHERS = re.compile(r"^(?:Other )?Failures:")


def exits(line: LogLine) -> Iterator[Sign]:
    """Yields the signs of a single line."""
    for sign in first_signs(_PATTERNS, line):
        if sign.kind == "agent_signal" and "signal" not in sign.text:
            continue
        yield sign
    if found := _TRAINERS.search(line.text):
        for rank in re.findall(r"\d{1,6}", found[1]):
            speaker = replace(line.speaker, rank=int(rank), numbering=Numbering.GLOBAL)
            yield Sign("exit", line.quote, speaker, line.time, text=found[0])


class FailureSummary:
    """Reads torchrun's table of failures, a few lines for each, as it comes by.

    Rows whose heading was cut off are signs ``exit``.

    >>> from serried.diagnose.evidence.log_line import log_line
    >>> summary = FailureSummary()
    >>> rows = ["Root Cause (first observed failure):", "[0]:", "  rank      : 7 (local_rank: 3)",
    ...         "  exitcode  : -9 (pid: 99)"]
    >>> [sign] = [s for row in rows for s in summary.read(log_line(row, "x", 1))]
    >>> sign.kind, sign.speaker.rank, sign.code
    ('first_failure', 7, -9)
    """

    def __init__(self) -> None:
        self._kind = "exit"
        self._rank: tuple[int, int] | None = None
        self._host: str | None = None

    def read(self, line: LogLine) -> Iterator[Sign]:
        """Yields a sign for each failure, at the line of its exit code."""
        if _ROOT.match(line.text):
            self._kind = "first_failure"
        elif _OTHERS.match(line.text):
            self._kind = "other_failure"
        found = _SUMMARY.match(line.text)
        if not found:
            return
        if found["name"] == "host":
            self._host = found["value"].strip()
        elif found["name"] == "rank" and (rank := _RANK.match(found["value"])):
            self._rank = int(rank[1]), int(rank[2])
        elif found["name"] == "exitcode" and (code := _CODE.match(found["value"])):
            named, local = self._rank if self._rank is not None else (None, None)
            speaker = Speaker(named, Numbering.GLOBAL, self._host, pid=int(code[2]))
            yield Sign(
                self._kind,
                line.quote,
                speaker,
                code=whole_number(code[1]),
                text=line.text.strip(),
                facts={"local_rank": local},
            )
            self._rank = None
