"""Pings: what a rank wrote down of asking another host for its time, one line each.

    asker     t1 ─────────╮               ╭────────> t4      clock-00003.jsonl
    answerer              ╰──> t2    t3 ──╯       {"peer": 4, "times": [t1, t2, t3, t4]}

All are CLOCK_MONOTONIC nanoseconds of the host they were read on. A line is written whole or,
where the process was killed, not at all usable and left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from serried.trace.align import Crossings
from serried.trace.merge import Trace

PATTERN = "clock-*.jsonl"

Ping = tuple[int, int, tuple[int, int, int, int]]
"""The asking rank, the answering one, and the four times."""


def ping_file(rank: int) -> str:
    """Returns the name of the file in which ``rank`` writes its pings.

    >>> ping_file(3)
    'clock-00003.jsonl'
    """
    return f"clock-{rank:05d}.jsonl"


def ping_line(peer: int, times: tuple[int, int, int, int]) -> str:
    """Returns the line of one ping.

    >>> ping_line(4, (10, 25, 26, 40))
    '{"peer": 4, "times": [10, 25, 26, 40]}\\n'
    """
    return json.dumps({"peer": peer, "times": times}) + "\n"


def read_pings(folders: Sequence[Path], trace: Trace) -> Crossings:
    """Returns the pings in ``folders`` as crossings, in the time of ``trace`` before alignment."""
    pings = [ping for folder in dict.fromkeys(folders) for ping in _pings(folder)]
    host_of = {rank: number for number, host in enumerate(trace.hosts) for rank in host.ranks}
    offsets = [host.offset_ns - trace.base_ns for host in trace.hosts]
    crossings = []
    for rank, peer, (sent, there, answered, back) in pings:
        if rank not in host_of or peer not in host_of:
            continue
        here, away = host_of[rank], host_of[peer]
        crossings.append((here, away, sent + offsets[here], there + offsets[away]))
        crossings.append((away, here, answered + offsets[away], back + offsets[here]))
    columns = np.array(crossings, dtype=np.int64).reshape(-1, 4).T
    apart = columns[0] != columns[1]
    return Crossings(*(column[apart] for column in columns))


def _pings(folder: Path) -> Iterator[Ping]:
    for path in sorted(folder.glob(PATTERN)) if folder.is_dir() else []:
        number = path.stem.removeprefix("clock-")
        if not number.isdecimal():
            continue
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if (ping := _ping(line)) is not None:
                yield int(number), *ping


def _ping(line: str) -> tuple[int, tuple[int, int, int, int]] | None:
    try:
        found = json.loads(line)
        peer, times = found["peer"], found["times"]
        sent, there, answered, back = times
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    numbers = (peer, sent, there, answered, back)
    if not all(type(each) is int and 0 <= each < 2**62 for each in numbers):
        return None
    if back < sent or answered < there:
        return None
    return peer, (sent, there, answered, back)
