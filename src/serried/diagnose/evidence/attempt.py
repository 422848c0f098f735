"""Which files, and which lines of logs, are of an earlier start of a job that was started anew.

    tlogs/none_x/attempt_0/3/stderr.log    guard/rank-00003.failed                ─┐ earlier
    console.log, down to the last line that is known to be earlier                 ─┘
    tlogs/none_x/attempt_1/3/stderr.log    guard/restart-1/rank-00003.failed      ─── the last start

A launcher's own log goes over all starts and seldom says where the next begins. A line of it is
known to be earlier by the process that it names, of which an earlier guard's file tells, since it
stands in a file of an earlier start and in none of the last, or as the end before the last restart.

>>> sorted(map(str, earlier_files([Path("t/attempt_0/1/stderr.log"), Path("t/attempt_1/1/a.log")])))
['t/attempt_0/1/stderr.log']
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from serried.diagnose.evidence.sign import Sign

_ATTEMPT = re.compile(r"attempt_(\d{1,6})")
_RESTART = re.compile(r"restart-(\d{1,6})")
_OF_RANK = re.compile(r"rank-\d+\.")
_AGENT = "failed (exitcode: "
"""What torchrun's agent says of the process that was the first to end in a start."""
_TEED = re.compile(r"^(?:\[[A-Za-z_]\w*\d+\]:\s?)+")
"""What torchrun puts before a line of a rank that it copies to its own log, and torch before it."""


def earlier_files(files: Iterable[Path]) -> frozenset[Path]:
    """Returns those files that a later start of the same job, by its folder, has others of."""
    starts: dict[Path, dict[Path, int]] = defaultdict(dict)
    for file in files:
        if found := _start(file):
            folder, start = found
            starts[folder][file] = start
    last = {folder: max(of_job.values()) for folder, of_job in starts.items()}
    return frozenset(
        file
        for folder, of_job in starts.items()
        for file, start in of_job.items()
        if start < last[folder]
    )


def is_of_attempt(file: Path) -> bool:
    """Tells whether a file is what torchrun keeps of one rank in one start of a job."""
    return any(map(_ATTEMPT.fullmatch, file.parts[:-1]))


def _start(file: Path) -> tuple[Path, int] | None:
    """Returns the folder of a file's job, and which start of it the file is of, where it tells."""
    for above in file.parents:
        if found := _ATTEMPT.fullmatch(above.name):
            return above.parent, int(found[1])
    if not _OF_RANK.match(file.name):
        return None
    if found := _RESTART.fullmatch(file.parent.name):
        return file.parent.parent, int(found[1])
    return file.parent, 0


def parted(
    told: Mapping[Path, Sequence[Sign]], earlier: Collection[Path], pids: Collection[int]
) -> tuple[list[Sign], dict[int, list[Sign]]]:
    """Returns the signs of the last start, and those of each earlier one by its number.

    ``earlier`` are files of earlier starts, ``pids`` the processes that ran in them.
    """
    apart = {file for file in told if is_of_attempt(file)} | {*earlier}
    latest = _texts(told, apart - {*earlier})
    restarts = max((start[1] for f in told if is_of_attempt(f) and (start := _start(f))), default=0)
    numbers = {file: start[1] for file in earlier if (start := _start(file))}
    before = _first_starts(told, numbers, latest)
    last: list[Sign] = []
    gone: dict[int, list[Sign]] = defaultdict(list)
    for file, signs in told.items():
        if file in earlier:
            gone[numbers.get(file, 0)] += signs
            continue
        known = [s.quote.line for s in signs if s.speaker.pid in pids or _text(s) in before]
        if end := _end_of_earlier(signs, restarts, latest):
            known.append(end)
        until = max(known, default=0) if file not in apart else 0
        for number, sign in _numbered([s for s in signs if s.quote.line <= until], before):
            gone[number].append(sign)
        last += (sign for sign in signs if sign.quote.line > until)
    return last, dict(gone)


def _first_starts(
    told: Mapping[Path, Sequence[Sign]], numbers: Mapping[Path, int], latest: Collection[str]
) -> dict[str, int]:
    """Returns by the lines of files of earlier starts, but the last, in which each came first."""
    found: dict[str, int] = {}
    for file, number in sorted(numbers.items(), key=lambda item: item[1]):
        for text in _texts(told, [file]):
            if text not in latest:
                found.setdefault(text, number)
    return found


def _numbered(signs: Sequence[Sign], before: Mapping[str, int]) -> Iterator[tuple[int, Sign]]:
    """Yields what a launcher's log tells of earlier starts, each with the number of its start.

    A line that stands in a start's own file is of that start, or of a later one; others are of the
    start that came before them, until torchrun says which process ended it.
    """
    start = 0
    for sign in sorted(signs, key=lambda each: each.quote.line):
        start = max(start, before.get(_text(sign), 0))
        yield start, sign
        start += _is_agents_end(sign)


def _end_of_earlier(signs: Sequence[Sign], restarts: int, latest: Collection[str]) -> int | None:
    """Returns the line at which a launcher's log tells of the end that its last restart followed.

    torchrun says of each start that fails which process was the first to end, and starts anew. The
    log of a node on which nothing failed in earlier starts may say so of the last start alone,
    behind what its ranks said. A log that says itself where it starts anew needs no counting.
    """
    if any(sign.kind == "restarted" for sign in signs):
        return None
    ends = [sign.quote.line for sign in signs if _is_agents_end(sign)]
    if not 0 < restarts <= len(ends):
        return None
    of_last = min((s.quote.line for s in signs if _text(s) in latest), default=None)
    end = ends[restarts - 1]
    return end if of_last is None or end < of_last else None


def _is_agents_end(sign: Sign) -> bool:
    return sign.kind == "exit" and _AGENT in sign.quote.text


def _texts(told: Mapping[Path, Sequence[Sign]], files: Iterable[Path]) -> set[str]:
    """Returns the lines of files that say more than that a traceback follows."""
    signs = (sign for file in files for sign in told.get(file, ()))
    return {_text(sign) for sign in signs if sign.kind != "traceback"}


def _text(sign: Sign) -> str:
    return _TEED.sub("", sign.quote.text).strip()
