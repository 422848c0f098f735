"""What torchrun and its relatives print: exits, signals, the summary of failures, closing signals.

Signs: ``exit`` (code, local rank, pid), ``first_failure`` (torchrun's own word for the root: the
first process that it saw end), ``other_failure``, ``agent_signal`` (the launcher itself got a
signal), ``restarted`` (it starts all anew), ``closing`` (it stops the rest), ``mpi_error`` (Open
MPI's word of the rank whose error ends the job).

>>> from serried.diagnose.evidence.log_line import log_line
>>> raw = "E0325 20:57:27.62 2606 api.py:869] failed (exitcode: -9) local_rank: 5 (pid: 2630)"
>>> [sign] = exits(log_line(raw, "job.log", 1))
>>> sign.kind, sign.code, sign.speaker.rank
('exit', -9, 5)
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from dataclasses import replace

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.quote import NOBODY, Numbering, Speaker
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.text.pattern import Pattern, first_signs, whole_number

# DeepSpeed's launcher and torch's before 1.9 print the command of the process that they started
# last, whichever ended: its --local_rank names nobody.
_PATTERNS = (
    Pattern("exit", r"Child process with PID (?P<pid>\d+) terminated with code (?P<code>-?\d+)"),
    Pattern(
        "exit",
        r"process rank (?P<rank>\d+) (?:with PID (?P<pid>\S+) )?(?:on node (?:(?P<host>\S+?) ?)?)?"
        r"exited on signal (?P<signal>\d+)",
    ),
    Pattern(
        "exit",
        r"has exited due to process rank (?P<rank>\d+) with PID (?P<pid>\d+) on node "
        r"(?P<host>\S+) exiting",
    ),
    Pattern(  # Composer's launcher, PALS and jsrun
        "exit",
        r"(?:[gG]lobal rank|\b[rR]ank) (?P<rank>\d+) (?:\(PID (?P<pid>\d+)\) )?"
        r"(?:(?:crashed|exited) with (?:exit )?code (?P<code>-?\d+)|"
        r"died from signal (?P<signal>\d+))",
    ),
    Pattern(  # a list that somebody made, whose order tells nothing
        "task_exit",
        r"^\s*(?:global )?[rR]ank[ =:]?(?P<rank>\d+)[:,]?\s+(?:exit|return)[ _]?code[ =:]{1,2}"
        r"(?P<code>-?[1-9]\d*)\s*$",
    ),
    Pattern(
        "exit",
        r"\b[rR]ank (?P<rank>\d+)(?: \([^)]{1,40}\))?:? (?:was |has |got )?"
        r"(?:killed|terminated|died|crashed|exited|ended)\b.{0,20}?"
        r"(?:\b(?P<name>SIG(?:KILL|SEGV|BUS|ABRT|TERM|FPE|ILL|HUP))\b|signal (?P<signal>\d+)|"
        r"(?P<how>Segmentation fault|Bus error))",
    ),
    Pattern("exit", r"rank (?P<rank>\d+) status failed cmd .*\bcode (?P<code>-?\d+)"),  # Paddle's
    Pattern("exit", r"first noticed rank (?P<rank>\d+)\) terminated with signal (?P<signal>\d+)"),
    Pattern(  # an event that torch writes of each worker that failed
        "exit",
        r"torchelastic\.worker\.status\.FAILED.*?\"global_rank\": (?P<rank>\d+).*?"
        r"\"worker_id\": \"(?P<pid>\d+)",
    ),
    Pattern("mpi_error", r"\*\*\* reported by process \[\d+,(?P<rank>\d+)\]"),
    Pattern(
        "exit",
        r"failed ?\( ?exitcode: ?(?P<code>-?\d+)\)(?: ?\((?P<name>SIG\w+)\))?"
        r"(?: local_rank: (?P<local_rank>\d+)(?: \(pid: (?P<pid>\d+)\))?)?",
    ),
    Pattern(
        "exit",
        r"[Ww]orker (?P<local_rank>\d+) \(pid: (?P<pid>\d+)\) exited with code (?P<code>-?\d+)",
    ),
    Pattern(  # DeepSpeed's launcher, which names a subprocess or only its command
        "exit",
        r"(?:Subprocess (?P<pid>\d+) exit(?:s|ed)?|\bexits) with return code = (?P<code>-?\d+)",
    ),
    Pattern(
        "exit",
        r"(?:^|[:\s\"'])process (?P<local_rank>\d+) terminated with "
        r"(?:exit code (?P<code>\d+)|signal (?P<name>SIG\w+))",
    ),
    Pattern("exit", r"CalledProcessError: Command .* died with <Signals\.(?P<name>SIG\w+): \d+>"),
    Pattern("exit", r"CalledProcessError: Command .* returned non-zero exit status (?P<code>\d+)"),
    Pattern(  # torch's from 1.9 to 1.10
        "exit",
        r"Child process (?P<pid>\d+) \(local_rank (?P<local_rank>\d+)\) FAILED "
        r"\(exitcode (?P<code>-?\d+)\)",
    ),
    # a row of the table of failures whose lines were joined
    Pattern(
        "exit",
        r"rank[ :]*(?P<rank>\d+) \(local[_ ]rank: (?P<inner>\d+)\)\s*exitcode ?: (?P<code>-?\d+)"
        r"(?: \(pid: (?P<pid>\d+)\))?",
    ),
    Pattern(
        "agent_signal",
        r"(?:SignalException: Process (?P<pid>\d+) got signal: |Received )"
        r"(?:(?P<signal>\d+)|Signals\.(?P<name>SIG\w+))(?: death signal)?",
    ),
    Pattern("exit", r"MPI_ABORT was invoked on rank (?P<rank>\d+)"),
    Pattern(  # an abort, also by code 0
        "exit",
        r"application called MPI_Abort\(.*?, (?:0|(?P<code>\d+))\) - process (?P<rank>\d+)",
    ),
    Pattern("restarted", r"will restart worker group|Restarting worker group"),
    Pattern("closing", r"Sending process (?P<pid>\d+) closing signal (?P<name>SIG\w+)"),
    Pattern("closing", r"Unable to shutdown process (?P<pid>\d+) via (?P<name>SIG\w+)"),
)
_PASSED_ON = ("SIGHUP", "SIGINT")
"""Signals that torch's launcher sends its processes only after it got them itself."""
_TRAINERS = re.compile(r"trainer process with rank=\[([\d, ]{1,2000})\] was aborted")
"""Paddle's launcher names every trainer that ended."""
_SUMMARY = re.compile(
    r"^\s*(?P<name>time|host|rank|exitcode|error_file|traceback)\s*:\s*(?P<value>.*)$"
)
_RANK = re.compile(r"(\d+) \(local_rank: (\d+)\)")
_CODE = re.compile(r"(-?\d+)(?: \(pid: (\d+))?")
_ROOT = re.compile(r"^Root Cause \(first observed failure\):")
_HYDRA = re.compile(r"RANK (?P<rank>\d+) PID (?P<pid>\d+) RUNNING AT (?P<host>\S+)")
"""MPICH's block, whose next line says how that rank ended."""
_HYDRA_END = re.compile(
    r"^=\s+(?:EXIT CODE: (?P<code>\d+)|KILLED BY SIGNAL: (?P<signal>\d+)|"
    r".*EXIT STRING: .*\(signal (?P<last>\d+)\))"
)
_ORTE = re.compile(r"Process name: \[\[\d+,\d+\],(?P<rank>\d+)\]")
_ORTE_END = re.compile(r"^\s*Exit code:\s+(?P<code>\d+)")
MOST_SIGNAL = 31
"""MPICH prints a signal as an exit code of that number."""
_OTHERS = re.compile(r"^(?:Other )?Failures:")


def exits(line: LogLine) -> Iterator[Sign]:
    """Yields the signs of a single line."""
    for sign in first_signs(_PATTERNS, line):
        if sign.kind == "agent_signal" and "signal" not in sign.text:
            continue
        yield _numbered(sign) if sign.kind == "agent_signal" else sign
        if sign.kind == "closing" and sign.facts.get("name") in _PASSED_ON:
            yield _numbered(replace(sign, kind="agent_signal"))
    if found := _TRAINERS.search(line.text):
        for rank in re.findall(r"\d{1,6}", found[1]):
            speaker = replace(line.speaker, rank=int(rank), numbering=Numbering.GLOBAL)
            yield Sign("exit", line.quote, speaker, line.time, text=found[0])


def _numbered(stop: Sign) -> Sign:
    """Returns the signal's sign with its number, which a log before Python 3.11 tells by name."""
    name = stop.facts.get("name")
    known = signal.Signals.__members__.get(name) if isinstance(name, str) else None
    return stop if known is None else replace(stop, facts={**stop.facts, "signal": int(known)})


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
        self._codes: set[int | None] = set()
        self._last: LogLine | None = None
        self._mpi = NOBODY

    def read(self, line: LogLine) -> Iterator[Sign]:
        """Yields a sign for each failure, at the line of its exit code."""
        if _ROOT.match(line.text):
            self._kind = "first_failure"
        elif _OTHERS.match(line.text):
            self._kind = "other_failure"
        yield from self._of_mpi(line)
        found = _SUMMARY.match(line.text)
        if not found:
            return
        if found["name"] == "host":
            self._host = found["value"].strip()
        elif found["name"] == "rank" and (rank := _RANK.match(found["value"])):
            self._rank, self._last = (int(rank[1]), int(rank[2])), line
        elif found["name"] == "exitcode" and (code := _CODE.match(found["value"])):
            named, local = self._rank if self._rank is not None else (None, None)
            speaker = Speaker(
                named,
                Numbering.GLOBAL,
                self._host,
                pid=int(code[2]) if code[2] else None,
                task=line.speaker.task,
            )
            yield Sign(
                self._kind,
                line.quote,
                speaker,
                code=whole_number(code[1]),
                text=line.text.strip(),
                facts={"local_rank": local},
            )
            self._codes.add(whole_number(code[1]))
            self._rank = None

    def cut(self) -> Iterator[Sign]:
        """Yields the row that a table breaks off in, where all before it ended by one code.

        That of the root, which comes last, is told where no row came before it too.
        """
        is_root = self._kind == "first_failure" and not self._codes
        if self._rank is None or self._last is None or not (is_root or len(self._codes) == 1):
            return
        rank, local = self._rank
        yield Sign(
            self._kind,
            self._last.quote,
            Speaker(rank, Numbering.GLOBAL, self._host),
            code=next(iter(self._codes), None),
            text=self._last.text.strip(),
            facts={"local_rank": local},
        )

    def _of_mpi(self, line: LogLine) -> Iterator[Sign]:
        """Yields how a rank ended by the blocks of MPICH and Open MPI, told over lines."""
        named = _HYDRA.search(line.text) or _ORTE.search(line.text)
        if named:
            pid = named["pid"] if "pid" in named.groupdict() else None
            host = named["host"] if "host" in named.groupdict() else None
            rank = int(named["rank"][:9])
            self._mpi = Speaker(rank, Numbering.GLOBAL, host, pid=int(pid) if pid else None)
        elif ended := _HYDRA_END.match(line.text):
            number = int(next(each for each in ended.groups() if each)[:9])
            is_signal = ended["code"] is None or 1 < number <= MOST_SIGNAL
            code = -number if is_signal else number
            yield Sign("exit", line.quote, self._mpi, line.time, code=code, text=line.text.strip())
        elif (ended := _ORTE_END.match(line.text)) and self._mpi.rank is not None:
            code = int(ended["code"][:9])
            yield Sign("exit", line.quote, self._mpi, line.time, code=code, text=line.text.strip())
