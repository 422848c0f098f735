"""Runs that are said not to fit, though they ran: of tables that tell what is recomputed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from serried.errors import InputError
from serried.plan.calibration.rows import Measured, read_folder
from serried.plan.memory.job_memory import job_memory


@dataclass(frozen=True)
class Refused:
    """Holds a run that is said not to fit, and the part of a card that it lacks."""

    row: Measured
    lacks: float


def told_runs(folder: Path) -> list[Measured]:
    """Returns the runs of a folder's tables that say what they recompute, none where it has no
    such table."""
    try:
        rows = read_folder(folder).rows
    except InputError:
        return []
    return [row for row in rows if "recompute=none" not in row.assumed]


def refused(rows: list[Measured]) -> Iterator[Refused]:
    """Yields those of them that are said not to fit, those left out that cannot be counted."""
    for row in rows:
        try:
            fullest = job_memory(row.request).fullest
        except InputError:  # stages or modules that memory is not counted for
            continue
        if not fullest.fits:
            yield Refused(row, fullest.total / fullest.card_bytes - 1)


def print_refused(folder: Path) -> None:
    """Prints how many runs are said not to fit, by configuration."""
    rows = told_runs(folder)
    if not rows:
        return
    found = list(refused(rows))
    print(f"of {len(rows)} runs that say what they recompute, {len(found)} are said not to fit")
    for each in {each.row.configuration: each for each in found}.values():
        row = each.row
        print(f"  {row.name} {row.model} on {row.gpu} by {100 * each.lacks:.0f} % of a card")
