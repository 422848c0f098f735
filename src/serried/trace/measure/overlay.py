"""Overlay: the plan of a run laid over what was recorded, step by step, and why a span was late.

    planned    |--F0--|--F1--|------B0------|            one step of one pipeline, repeated
    recorded   |--F0--|  |----F1----|   |------B0------|
               ^         ^
               a step begins: both at 0  1F1 is late by this much, and longer by its own excess

The plan is the run's schedule with the run's own median durations and messages that take no
time (``compare.planned_step``); it begins with each step's first computation. A planned step is
the same for every pipeline and every step, so it is kept once, whatever the run's length.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE, Spans
from serried.errors import InputError
from serried.pipeline import Schedule
from serried.trace.measure.compare import pipelines_of, planned_step
from serried.trace.model.pairs import Rows
from serried.trace.model.record import UNKNOWN_SCHEDULE
from serried.trace.model.trace import Trace

Nanoseconds = NDArray[np.float64]
"""NaN for a span that the plan does not know."""


@dataclass(frozen=True, eq=False)
class Overlay:
    """Holds one planned step of one pipeline, and where each recorded step begins."""

    schedule: str
    planned: Spans
    """From 0; a span's rank is its place in the pipeline."""
    place: NDArray[np.int32]
    """The place of every rank of the world in its pipeline."""
    pipeline: NDArray[np.int32]
    """The number of the pipeline of every rank of the world."""
    steps: NDArray[np.int32]
    """The numbers of the recorded steps, ascending."""
    starts_ns: NDArray[np.int64]
    """When the first computation of each began."""

    def rows(self, spans: Spans) -> Rows:
        """Returns the planned row of each span, -1 where there is none."""
        wanted = self._codes(self.place[spans.rank], spans.kind, spans.stage, spans.microbatch)
        codes, order = self._known
        at = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
        return np.where(codes[at] == wanted, order[at], -1)

    def start_ns(self, spans: Spans) -> Nanoseconds:
        """Returns when each span was to start, on the clock of the trace."""
        rows = self.rows(spans)
        step = np.minimum(np.searchsorted(self.steps, spans.step), len(self.steps) - 1)
        is_known = (rows >= 0) & (self.steps[step] == spans.step)
        planned = self.starts_ns[step] + self.planned.start_ns[rows]
        return np.where(is_known, planned, np.nan)

    def late_ns(self, spans: Spans) -> Nanoseconds:
        """Returns how much later than planned each span started; below 0 it was early."""
        return np.asarray(spans.start_ns - self.start_ns(spans))

    def longer_ns(self, spans: Spans) -> Nanoseconds:
        """Returns how much longer than planned each span took.

        What computations waited inside them is left out where ``spans`` come without it
        (``moments.without_waits``), as the plan's do.
        """
        rows = self.rows(spans)
        planned = self.planned.end_ns[rows] - self.planned.start_ns[rows]
        return np.where(rows >= 0, spans.end_ns - spans.start_ns - planned, np.nan)

    @cached_property
    def _known(self) -> tuple[Rows, Rows]:
        """The codes of the planned spans, ascending, and the row of each."""
        planned = self.planned
        codes = self._codes(planned.rank, planned.kind, planned.stage, planned.microbatch)
        order = np.argsort(codes, kind="stable")
        return codes[order], order

    def _codes(self, *names: NDArray[np.integer[Any]]) -> Rows:
        """Returns one number per row of place, kind, stage and microbatch."""
        code = np.zeros(len(names[0]), dtype=np.int64)
        for name, largest in zip(names, self._largest, strict=True):
            # Whatever lies beyond the plan becomes one number that no planned span has.
            code = code * (largest + 3) + np.minimum(name, largest + 1) + 1
        return code

    @cached_property
    def _largest(self) -> list[int]:
        planned = self.planned
        columns = (planned.rank, planned.kind, planned.stage, planned.microbatch)
        return [int(column.max()) for column in columns]


def overlay_of(trace: Trace) -> Overlay:
    """Returns the plan to lay over ``trace``, by the schedule that it names or whose order it has.

    Raises InputError when its schedule is not known or does not have its stages, when its spans
    hold their waits, and when it holds no computation.
    """
    spans = trace.spans
    is_compute = np.isin(spans.kind, list(COMPUTE))
    if not is_compute.any():
        raise InputError(
            "{run} holds no forward and no backward, so there is no plan to lay over it",
            run=trace.run,
        )
    schedule, planned = _planned_step(trace)
    steps, row = np.unique(spans.step[is_compute], return_inverse=True)
    starts = np.full(len(steps), np.iinfo(np.int64).max)
    np.minimum.at(starts, row, spans.start_ns[is_compute])
    ranks = pipelines_of(trace)
    place, pipeline = np.zeros((2, trace.job.world_size), dtype=np.int32)
    pipeline[ranks], place[ranks] = np.indices(ranks.shape, dtype=np.int32)
    first = int(planned.start_ns.min())
    return Overlay(
        schedule.name, planned.shifted(-first), place, pipeline, steps.astype(np.int32), starts
    )


def _planned_step(trace: Trace) -> tuple[Schedule, Spans]:
    if trace.waits_inside:
        raise InputError(
            "the spans of {run} hold the waits for their inputs, so no plan can be timed by them",
            run=trace.run,
        )
    try:
        return planned_step(trace)
    except InputError as error:
        if trace.job.schedule != UNKNOWN_SCHEDULE:
            raise
        raise InputError(
            "{run} does not say which schedule ran, so there is no plan to lay over it",
            run=trace.run,
        ) from error
