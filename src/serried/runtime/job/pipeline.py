"""The schedule that a run's pipeline follows: asked for by name or CSV file, fitted to the run."""

from __future__ import annotations

from pathlib import Path

from serried.errors import InputError, listed
from serried.pipeline import ENTRIES, Request, Schedule, generate, read_csv

BOTH_WAYS = ("dualpipe", "chimera")
"""Schedules whose microbatches flow both ways, which put every stage on two ranks."""

RUNNABLE = tuple(name for name in ENTRIES if name not in BOTH_WAYS)


def is_file(schedule: str) -> bool:
    """Tells whether what is asked for is a CSV file rather than a name."""
    return schedule.lower().endswith(".csv")


def schedule_of(asked: str, request: Request) -> Schedule:
    """Makes the schedule, or reads it, for the ranks and microbatches of ``request``.

    >>> print(*schedule_of("zbv", Request(2, 1))[1])
    1F0 2F0 2I0 2W0 1I0 1W0

    Raises InputError for one that cannot be, and for one that puts a stage on two ranks.
    """
    return _read(asked, request) if is_file(asked) else _generated(asked, request)


def _generated(name: str, request: Request) -> Schedule:
    if name in BOTH_WAYS:
        raise _refused(name)
    if request.group and name in ENTRIES and not ENTRIES[name].takes_group:
        takers = [each for each in RUNNABLE if ENTRIES[each].takes_group]
        raise InputError(
            "{name} has no groups of microbatches; leave out group, or take one that has: {names}",
            name=name,
            names=listed(takers),
        )
    return generate(name, request)


def _read(path: str, request: Request) -> Schedule:
    if request.chunks or request.group:
        raise InputError(
            "{path} says itself which stages each rank holds and in which order they run; "
            "leave out chunks and group",
            path=path,
        )
    # A file fixes its own sizes: the run's must agree, for nothing in it can be stretched.
    made = read_csv(Path(path))
    if made.placement.num_directions > 1:
        raise _refused(made.name)
    for size, found, wanted in (
        ("pp", made.num_ranks, request.num_ranks),
        ("microbatches", made.num_microbatches, request.num_microbatches),
    ):
        if found != wanted:
            raise InputError(
                "{path} is made for {size}={found}, and the run has {size}={wanted}; "
                "take {size}={found}",
                path=path,
                size=size,
                found=found,
                wanted=wanted,
            )
    return made


def _refused(name: str) -> InputError:
    return InputError(
        "{name} puts every stage on two ranks, and a run holds each once; "
        "schedules that run: {names}",
        name=name,
        names=listed(RUNNABLE, limit=len(RUNNABLE)),
    )
