"""Pings: what a rank wrote down of asking another host for its time, one line each.

    asker     t1 ─────────╮               ╭────────> t4      clock-00003.jsonl
    answerer              ╰──> t2    t3 ──╯       {"run": "b48303dd", "rank": 3}
                                                  {"peer": 4, "times": [t1, t2, t3, t4]}

All are nanoseconds of the clock that stamps the spans of the host they were read on. A line is
written whole or, where the process was killed, not usable and left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from serried.errors import InputError, listed
from serried.finding import Finding, Sentence, said
from serried.limits import PINGS_BYTES
from serried.trace.clocks.align import Crossings
from serried.trace.model.trace import Trace
from serried.user_file import read_text

PATTERN = "clock-*.jsonl"

Ping = tuple[int, int, tuple[int, int, int, int]]
"""The asking rank, the answering one, and the four times."""


def ping_file(rank: int) -> str:
    """Returns the name of the file in which ``rank`` writes its pings.

    >>> ping_file(3)
    'clock-00003.jsonl'
    """
    return f"clock-{rank:05d}.jsonl"


def ping_heading(*, run: str, rank: int) -> str:
    """Returns the first line of a rank's file of pings.

    >>> ping_heading(run="b48303dd", rank=3)
    '{"run": "b48303dd", "rank": 3}\\n'
    """
    return json.dumps({"run": run, "rank": rank}) + "\n"


def ping_line(peer: int, times: tuple[int, int, int, int]) -> str:
    """Returns the line of one ping.

    >>> ping_line(4, (10, 25, 26, 40))
    '{"peer": 4, "times": [10, 25, 26, 40]}\\n'
    """
    return json.dumps({"peer": peer, "times": times}) + "\n"


def read_pings(folders: Sequence[Path], trace: Trace) -> Crossings:
    """Returns the pings in ``folders`` as crossings, in the time of ``trace`` before alignment.

    What is no ping of this run is left out, and its findings say so.
    """
    paths = [
        path
        for folder in dict.fromkeys(folders)
        if folder.is_dir()
        for path in sorted(folder.glob(PATTERN))
        # clock-old.jsonl has the pattern, but is no rank's.
        if path.stem.removeprefix("clock-").isdecimal()
    ]
    pings, findings = [], []
    for path in paths:
        found, said_of_it = _read(path, trace.run)
        pings += found
        findings += said_of_it
    host_of = {rank: number for number, host in enumerate(trace.hosts) for rank in host.ranks}
    unknown = sorted({rank for ping in pings for rank in ping[:2]} - {*host_of})
    findings += [_unknown(unknown)] if unknown else []
    return _crossings(pings, trace, host_of, tuple(findings))


def _crossings(
    pings: Sequence[Ping], trace: Trace, host_of: Mapping[int, int], findings: tuple[Finding, ...]
) -> Crossings:
    offsets = [host.offset_ns - trace.base_ns for host in trace.hosts]
    crossings = []
    for rank, peer, (sent, there, answered, back) in pings:
        if rank not in host_of or peer not in host_of:
            continue
        here, away = host_of[rank], host_of[peer]
        # A ping crosses twice: what was sent at t1 was there at t2, the answer of t3 back at t4.
        crossings.append((here, away, sent + offsets[here], there + offsets[away]))
        crossings.append((away, here, answered + offsets[away], back + offsets[here]))
    columns = np.array(crossings, dtype=np.int64).reshape(-1, 4).T
    # Two ranks of one host share its clock: their pings say nothing of any offset.
    from_host, to_host, left_ns, arrived_ns = columns[:, columns[0] != columns[1]]
    return Crossings(from_host, to_host, left_ns, arrived_ns, findings)


def _read(path: Path, run: str) -> tuple[list[Ping], list[Finding]]:
    """Returns the pings of a file, and what is to be said of what else is in it."""
    try:
        lines = read_text(path, PINGS_BYTES.most, said("a rank's pings")).splitlines()
    except InputError as error:
        # A trace is worth reading without its pings, so what is wrong with them is only said.
        return [], [Finding("clock", (Sentence(error.template, error.values),))]
    lines = [line for line in lines if line.strip()]
    of = _run_of(lines[0]) if lines else None
    if of is not None and of != run:
        return [], [_of_another_run(path, of, run)]
    rest = lines if of is None else lines[1:]
    rank = int(path.stem.removeprefix("clock-"))
    found = [(rank, *ping) for ping in map(_ping, rest) if ping is not None]
    # A heading and no ping is told too: the rank ended before it asked.
    if len(found) == len(rest) and found:
        return found, []
    return found, [_no_pings(path, len(rest) - len(found), len(rest))]


def _run_of(line: str) -> str | None:
    """Returns the run that a heading names; None for a line that is none."""
    try:
        run = json.loads(line)["run"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return run if isinstance(run, str) else None


def _ping(line: str) -> tuple[int, tuple[int, int, int, int]] | None:
    try:
        found = json.loads(line)
        peer, times = found["peer"], found["times"]
        sent, there, answered, back = times
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    numbers = (peer, sent, there, answered, back)
    # isinstance would take `true` for an int. Below 2**62 sums of times stay within 64 bits.
    if not all(type(each) is int and 0 <= each < 2**62 for each in numbers):
        return None
    # A clock that went back between its two readings bounds nothing.
    if back < sent or answered < there:
        return None
    return peer, (sent, there, answered, back)


# ----------------------------------------------------------------------- what is said


def _of_another_run(path: Path, of: str, run: str) -> Finding:
    evidence = said(
        "{path} holds the clocks of run {of}, not of {run}; left out", path=path, of=of, run=run
    )
    return Finding("clock", (evidence,))


def _no_pings(path: Path, bad: int, lines: int) -> Finding:
    evidence = (
        said(
            "{bad} of {lines} lines of {path} are no pings; left out",
            bad=bad,
            lines=lines,
            path=path,
        )
        if bad
        else said("{path} holds no ping: its rank ended before it asked a host", path=path)
    )
    return Finding("clock", (evidence,))


def _unknown(ranks: Sequence[int]) -> Finding:
    evidence = said(
        "pings of rank {ranks} are left out: without its recording its host is not known",
        ranks=listed(ranks, limit=16),
    )
    return Finding("clock", (evidence,), tuple(ranks))
