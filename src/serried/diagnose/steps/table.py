"""How long every rank took for every step, and for what: one table from whatever source.

                 rank 0   rank 1   rank 2   rank 3
    step 4         …        …        …        …       period, waits, computing, and its parts
    step 5         …        …        …        …

Whatever was read (spans of a recording, moments at which collectives were issued, lines of logs)
becomes this table, so that one way of judging does for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serried.trace.measure.ranks.spent import Spent

Whole = NDArray[np.int64]
UNKNOWN_NS = -1
"""Stands for a moment that nothing tells."""


@dataclass(frozen=True)
class Alike:
    """Says which ranks do equal work, and by what they can be compared."""

    stages: tuple[int, ...]
    places: tuple[int, ...]
    """Their columns in the table."""
    evidence: str
    """What they waited, how long they computed, or nothing, as ``ranks.slowest`` has it."""


@dataclass(frozen=True, eq=False)
class JobSteps:
    """Holds a job's steps by rank; a row is a step, or as many as ``width`` says."""

    ranks: Whole
    """Ascending."""
    steps: Whole
    """The first step of each row."""
    began_ns: Whole
    """When each row began, nanoseconds since 1970; -1 where it is not known."""
    spent: Spent
    """One row per row, one column per rank; means, where a row is several steps."""
    alike: tuple[Alike, ...]
    hosts: Mapping[int, str] = field(default_factory=dict)
    has_pipeline: bool = False
    has_data: bool = False
    """Whether the loading of data was recorded by itself."""
    width: int = 1
    exchange: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """By rank those whose waits for one another may hide in its computing, itself among them,
    where lines of logs tell where ranks stand."""
    lacking: frozenset[int] = frozenset()
    """Those of whom some that they exchange with told nothing."""
    counts_rounds: bool = False
    """Whether rows are rounds of collectives, for nothing tells the steps."""

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def period_ns(self) -> NDArray[np.float64]:
        """How long each row's steps took, the median of the ranks."""
        return np.asarray(np.median(self.spent.period, axis=1))

    def rows(self, first: int, last: int) -> JobSteps:
        """Returns the rows from ``first`` to before ``last``."""
        return replace(
            self,
            steps=self.steps[first:last],
            began_ns=self.began_ns[first:last],
            spent=spent_rows(self.spent, slice(first, last)),
        )

    def moment_of(self, row: int) -> str:
        """Returns when a row began, in UTC to the second; nothing where that is not known."""
        began = int(self.began_ns[row])
        if began <= 0:
            return ""
        return datetime.fromtimestamp(began / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def spent_rows(spent: Spent, rows: slice | NDArray[Any]) -> Spent:
    """Returns some rows of what ranks spent their steps on."""
    tables = {
        each.name: getattr(spent, each.name)[rows] for each in fields(Spent) if each.name != "parts"
    }
    return Spent(**tables, parts={name: table[rows] for name, table in spent.parts.items()})


def folded_rows(job: JobSteps, width: int) -> JobSteps:
    """Returns rows of ``width`` steps each, the means of those that are there of them.

    Rows of one number are one row: a step belongs to that of its number over ``width``.
    """
    if width == 1 or not len(job):
        return job
    starts = np.flatnonzero(np.diff(job.steps // width, prepend=-1))
    counts = np.diff([*starts.tolist(), len(job)])[:, None]

    def mean(table: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.add.reduceat(table, starts, axis=0) / counts)

    return replace(
        job,
        steps=job.steps[starts],
        began_ns=job.began_ns[starts],
        spent=_each_table([job.spent], lambda tables: mean(tables[0])),
        width=width,
    )


def joined_rows(jobs: Sequence[JobSteps]) -> JobSteps:
    """Returns the rows of several tables of the same ranks, one below the other."""
    return replace(
        jobs[0],
        steps=np.concatenate([each.steps for each in jobs]),
        began_ns=np.concatenate([each.began_ns for each in jobs]),
        spent=_each_table([each.spent for each in jobs], np.concatenate),
        has_pipeline=any(each.has_pipeline for each in jobs),
    )


def _each_table(
    of: Sequence[Spent], make: Callable[[list[NDArray[np.float64]]], NDArray[np.float64]]
) -> Spent:
    """Returns the tables that are made of the like tables of several."""
    tables = {
        each.name: make([getattr(spent, each.name) for spent in of])
        for each in fields(Spent)
        if each.name != "parts"
    }
    parts = {name: make([spent.parts[name] for spent in of]) for name in of[0].parts}
    return Spent(**tables, parts=parts)
