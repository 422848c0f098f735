"""Which files that guards left are of the last run, where an earlier one used the same folder.

    rank-00000.guard  .stacks  .failed  .fr.json     run of today, 3 ranks
    rank-00003.guard  .stacks  .failed  .fr.json     run of Monday, which had 4    ── left out

A run writes over the files of those ranks that it has, and leaves the others. A guard's file says
which run it is of; what lies beside it is of the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from serried.diagnose.evidence.records.guard_file import (
    HEADER_BYTES,
    SUFFIX,
    guard_file,
    is_guard_file,
)
from serried.errors import InputError, listed
from serried.finding import Sentence, said
from serried.user_file import opened

SAME_MOMENT_NS = 1_000_000_000
"""Runs that gave their last signs of life closer than this: that of more ranks stays."""
BETWEEN_NS = 5_000_000_000
"""How long after a rank's last sign of life others begin, for them to be of a later run."""


@dataclass(frozen=True)
class OfOtherRuns:
    """Holds the files that are of other runs than the last, and what is said of them."""

    files: frozenset[Path] = frozenset()
    notes: tuple[Sentence, ...] = ()


def of_other_runs(files: Iterable[Path]) -> OfOtherRuns:
    """Returns those files that guards of earlier runs left; files of no guard are not looked at."""
    files = list(files)
    told = [one for path in files if path.suffix == SUFFIX and (one := _told(path))]
    runs: dict[str, list[_Told]] = defaultdict(list)
    for one in told:
        runs[one.run].append(one)
    last = _last(runs) if runs else ""
    earlier = [[*held] for run, held in runs.items() if run != last]
    earlier += _before(runs[last])
    stems = {_stem(one.path) for held in earlier for one in held}
    notes = [
        said(
            "{files}: left by a guard in another run ({run}) than the last, and left out with "
            "what lies beside",
            files=listed(sorted(one.path.name for one in held), limit=4),
            run=held[0].run,
        )
        for held in earlier
    ]
    return OfOtherRuns(frozenset(each for each in files if _stem(each) in stems), tuple(notes))


@dataclass(frozen=True)
class _Told:
    """Holds what the head of a guard's file says of its run, in nanoseconds of its host's clock."""

    path: Path
    run: str
    host: tuple[str, int]
    """The boot of its host, and how often the job had been started anew."""
    begun_ns: int
    alive_ns: int
    """The time of its last sign of life; that of its begin where it gave none."""


def _last(runs: Mapping[str, Sequence[_Told]]) -> str:
    alive = {run: max(one.alive_ns for one in held) for run, held in runs.items()}
    latest = max(alive.values())
    near = [run for run in runs if latest - alive[run] < SAME_MOMENT_NS]
    return max(near, key=lambda run: (len(runs[run]), alive[run]))


def _before(held: Sequence[_Told]) -> list[list[_Told]]:
    """Returns files of one name of a run that are of an earlier one all the same.

    torchrun gives each run the same name where it is given none. All ranks of a host begin
    together, so that a file whose last sign of life lies before the others begin is no part of it.
    """
    of_host: dict[tuple[str, int], list[_Told]] = defaultdict(list)
    for one in held:
        of_host[one.host].append(one)
    latest = {host: max(one.begun_ns for one in those) for host, those in of_host.items()}
    gone = [one for one in held if one.alive_ns + BETWEEN_NS < latest[one.host]]
    return [gone] if gone else []


def _told(path: Path) -> _Told | None:
    """Returns what a file says of its run; None where it is damaged, which is told later."""
    try:
        with opened(path) as file:
            head = file.read(HEADER_BYTES)
        if not is_guard_file(head):
            return None
        found = guard_file(path, head)
    except InputError:
        return None
    header = found.header
    host = header.record.boot, header.attempt
    begun = header.record.wall_ns
    return _Told(path, header.record.run, host, begun, max(begun, found.alive_wall_ns))


def _stem(path: Path) -> Path:
    """Returns what the files of one rank have in common: ``rank-00003`` of ``rank-00003.fr.json``.

    >>> str(_stem(Path("evidence/rank-00003.fr.json")))
    'evidence/rank-00003'
    """
    return path.with_name(path.name.split(".", 1)[0])
