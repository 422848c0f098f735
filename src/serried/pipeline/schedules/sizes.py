"""The sizes a schedule can have: what is refused, and the values that would work."""

from __future__ import annotations

from serried.errors import InputError, listed


def at_least(schedule: str, what: str, value: int, least: int) -> None:
    """Refuses fewer ``what`` than the schedule needs."""
    if value < least:
        raise InputError(
            "{schedule} with {value} {what} cannot be; it needs at least {least}",
            schedule=schedule,
            value=value,
            what=what,
            least=least,
        )


def exactly(schedule: str, what: str, value: int, needed: int) -> None:
    """Refuses any number of ``what`` but the one the schedule is made for."""
    if value != needed:
        raise InputError(
            "{schedule} with {value} {what} cannot be; it needs exactly {needed}",
            schedule=schedule,
            value=value,
            what=what,
            needed=needed,
        )


def multiple_of(schedule: str, what: str, value: int, factor: int) -> None:
    """Refuses a number of ``what`` that ``factor`` does not divide, naming its neighbours."""
    if value % factor:
        below = value - value % factor
        raise InputError(
            "{schedule} with {value} {what} cannot be; it needs a multiple of {factor}, "
            "such as {near}",
            schedule=schedule,
            value=value,
            what=what,
            factor=factor,
            near=listed([below, below + factor] if below else [factor], last="or"),
        )


def groups_within(schedule: str, value: int, low: int, high: int) -> None:
    """Refuses groups of fewer or more microbatches than a range."""
    if not low <= value <= high:
        raise InputError(
            "{schedule} with groups of {value} cannot be; groups are {low} to {high}",
            schedule=schedule,
            value=value,
            low=low,
            high=high,
        )


def some_of_each(schedule: str, num_ranks: int, num_microbatches: int) -> None:
    """Refuses no ranks and no microbatches."""
    at_least(schedule, "ranks", num_ranks, 1)
    at_least(schedule, "microbatches", num_microbatches, 1)
