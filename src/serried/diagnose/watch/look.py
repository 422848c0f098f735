"""A look at a running job: how far every rank has come, and what was new since the look before.

rank 0   step 41   4,410 spans     runs
rank 1   step 41   4,402 spans     runs          one look; the next compares with it
rank 2   step 40   4,388 spans     stopped
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from serried.diagnose.diagnosis import Cause
from serried.diagnose.evidence.sign import Sign


class RankIs(Enum):
    """Says what became of a rank, as far as its files and its host tell."""

    RUNNING = "running"
    STOPPED = "stopped"
    """A signal or a debugger holds the process."""
    DONE = "done"
    FAILED = "failed"
    """An exception ended it."""
    GONE = "gone"
    """The process is no more, and did not say that it ended."""


ENDED = frozenset({RankIs.DONE, RankIs.FAILED, RankIs.GONE})


@dataclass(frozen=True)
class RankLook:
    """Holds how far one rank has come at one look."""

    rank: int
    count: int
    """What grows while it goes on: its spans and operations so far."""
    step: int = -1
    """The step that it began last; -1 where it has begun none."""
    state: RankIs = RankIs.RUNNING
    attempt: int = 0
    """Differs after every restart of the job."""
    idle_s: float = 0.0
    """For how long it has not gone on, where its clock can be read; else 0."""


@dataclass(frozen=True)
class JobLook:
    """Holds what one look at a job showed."""

    time: float
    """Seconds since 1970, on the clock of who looks."""
    ranks: Mapping[int, RankLook] = field(default_factory=dict)
    world_size: int | None = None
    log_bytes: int = 0
    """How much the job's logs hold; tells that a job goes on of which nothing else is there."""
    signs: tuple[Sign, ...] = ()
    """What lines of logs, written since the look before, say of numbers that are none."""
    slow: tuple[Cause, ...] | None = None
    """Who makes the latest steps long; None where that was not asked at this look."""
