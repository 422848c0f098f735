"""Which files, and which lines of logs, are of an earlier start of a job that was started anew.

    tlogs/none_x/attempt_0/3/stderr.log    guard/rank-00003.failed                ─┐ earlier
    console.log, down to the last line that is known to be earlier                 ─┘
    tlogs/none_x/attempt_1/3/stderr.log    guard/restart-1/rank-00003.failed      ─── the last start

A launcher's own log goes over all starts and seldom says where the next begins. A line of it is
known to be earlier by the process that it names, of which an earlier guard's file tells, or since
it stands in a file of an earlier start and in none of the last.

>>> sorted(map(str, earlier_files([Path("t/attempt_0/1/stderr.log"), Path("t/attempt_1/1/a.log")])))
['t/attempt_0/1/stderr.log']
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from serried.diagnose.evidence.sign import Sign

_ATTEMPT = re.compile(r"attempt_(\d{1,6})")
_RESTART = re.compile(r"restart-(\d{1,6})")
_OF_RANK = re.compile(r"rank-\d+\.")
_TEED = re.compile(r"^(?:\[[A-Za-z_]\w*\d+\]:\s?)+")
"""What torchrun puts before a line of a rank that it copies to its own log, and torch before it."""


def earlier_files(files: Iterable[Path]) -> frozenset[Path]:
    """Returns those files that a later start of the same job, by its folder, has others of."""
    starts: dict[Path, dict[Path, int]] = defaultdict(dict)
    for file in files:
        if found := _start(file):
            folder, start = found
            starts[folder][file] = start
    return frozenset(
        file
        for of_job in starts.values()
        for file, start in of_job.items()
        if start < max(of_job.values())
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
) -> tuple[list[Sign], list[Sign]]:
    """Returns the signs of the last start and those of earlier ones, by the signs of each file.

    ``earlier`` are files of earlier starts, ``pids`` the processes that ran in them.
    """
    apart = {file for file in told if is_of_attempt(file)} | {*earlier}
    latest = _texts(told, apart - {*earlier})
    before = _texts(told, earlier) - latest
    last: list[Sign] = []
    gone: list[Sign] = []
    for file, signs in told.items():
        if file in earlier:
            gone += signs
            continue
        known = [s.quote.line for s in signs if s.speaker.pid in pids or _text(s) in before]
        until = max(known, default=0) if file not in apart else 0
        gone += (sign for sign in signs if sign.quote.line <= until)
        last += (sign for sign in signs if sign.quote.line > until)
    return last, gone


def _texts(told: Mapping[Path, Sequence[Sign]], files: Iterable[Path]) -> set[str]:
    """Returns the lines of files that say more than that a traceback follows."""
    signs = (sign for file in files for sign in told.get(file, ()))
    return {_text(sign) for sign in signs if sign.kind != "traceback"}


def _text(sign: Sign) -> str:
    return _TEED.sub("", sign.quote.text).strip()
