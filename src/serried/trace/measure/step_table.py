"""Step table: what every rank did for every stage in every step, and how long it did nothing.

    step  rank  stage   forward  backward  weight  send  receive wait  reduce  optimizer   idle
       3     0      0      97.1     195.0       0   1.9         128.0     3.2        0.7  131.2

*Idle* is the rank's time in the step's window in which it computed nothing, so it holds its sends
and its waits, those inside computations too. On a rank of several stages it goes to the stage that
it computes next, after its last computation to that one's; what has no stage (the optimizer) to the
rank's first. Rows of a grouping, by step, by rank, by stage or by any two of them, are means over
what they leave out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE, Spans
from serried.errors import InputError, listed
from serried.trace.measure.moments import computing_ns
from serried.trace.measure.statistics import WORK
from serried.trace.model.pairs import RECEIVES, packed

AXES = ("step", "rank", "stage")
"""What rows can be grouped by."""

COLUMNS = (
    *("forward", "backward", "weight", "send", "receive_wait"),
    *("reduce", "exchange", "optimizer", "idle"),
)
"""What a rank's time is told apart into, as in ``statistics``, and waiting for messages."""

_KINDS = {**WORK, "receive_wait": RECEIVES}

Times = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StepTable:
    """Holds rows by the axes that they are grouped by, and nanoseconds by column."""

    by: tuple[str, ...]
    keys: NDArray[np.int64]
    """One row per group, one column per axis of ``by``; ascending."""
    columns: dict[str, Times]
    """``COLUMNS``, each with one number per row."""

    def __len__(self) -> int:
        return len(self.keys)

    def grouped(self, by: Sequence[str]) -> StepTable:
        """Returns the same grouped by fewer axes.

        A stage's or a rank's row is a mean over steps; a rank's is the sum of its stages, and a
        stage's or a step's the mean over its ranks. Raises InputError for an axis that is none.
        """
        unknown = [axis for axis in by if axis not in AXES]
        if unknown or not by:
            raise InputError(
                "--by {axes} cannot be; rows are grouped by {known}, or several of them",
                axes=listed(unknown or by),
                known=listed(AXES),
            )
        axes = tuple(axis for axis in AXES if axis in by)
        keys, group = _grouped(self.keys[:, [self.by.index(axis) for axis in axes]])
        # A rank's stages add up, so `stage` is never averaged over. By rank a sum is divided by the
        # steps of that rank, by stage by the pairs of a step and a rank that hold the stage.
        averaged = [axis for axis in AXES if axis not in axes and axis != "stage"]
        places = [self.by.index(axis) for axis in averaged]
        cells, _ = _grouped(np.column_stack([group, self.keys[:, places]]))
        count = np.bincount(cells[:, 0], minlength=len(keys))
        columns: dict[str, Times] = {
            name: np.asarray(np.bincount(group, column, minlength=len(keys))) / count
            for name, column in self.columns.items()
        }
        return StepTable(axes, keys, columns)


def step_table(spans: Spans) -> StepTable:
    """Returns a row per step, rank and stage of ``spans``, those of complete steps."""
    compute = spans.where(np.isin(spans.kind, sorted(COMPUTE)))
    # What a rank without any computation did has no stage to go to.
    mine = spans.where(
        np.isin(spans.kind, [kind for kinds in _KINDS.values() for kind in kinds])
        & np.isin(spans.rank, compute.rank)
    )
    idle = np.concatenate([_idle(compute), _waited_inside(mine)])
    stage = np.where(mine.stage < 0, _first_stages(compute)[mine.rank], mine.stage)
    keys = np.concatenate([np.column_stack([mine.step, mine.rank, stage]), idle[:, :3]]).astype(
        np.int64
    )
    keys, row = _grouped(keys)
    length = np.concatenate([computing_ns(mine), idle[:, 3]]).astype(np.float64)
    kind = np.concatenate([mine.kind, np.full(len(idle), -1)])
    columns: dict[str, Times] = {
        name: _sums(row, length * np.isin(kind, kinds), len(keys)) for name, kinds in _KINDS.items()
    }
    columns["idle"] = _sums(row, length * (kind == -1), len(keys))
    return StepTable(AXES, keys, {name: columns[name] for name in COLUMNS})


def _waited_inside(spans: Spans) -> NDArray[np.int64]:
    """Returns step, rank, stage and length of the waits inside every computation."""
    waited = spans.end_ns - spans.start_ns - computing_ns(spans)
    rows = np.flatnonzero(waited)
    columns = (spans.step[rows], spans.rank[rows], spans.stage[rows], waited[rows])
    return np.column_stack(columns).astype(np.int64)


def _sums(row: NDArray[np.int64], length: Times, count: int) -> Times:
    return np.asarray(np.bincount(row, length, minlength=count), dtype=np.float64)


def _grouped(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the rows that differ, ascending, and for each of ``rows`` its place among them."""
    _, first, place = np.unique(packed(list(rows.T)), return_index=True, return_inverse=True)
    return rows[first], place


def _first_stages(compute: Spans) -> NDArray[np.int64]:
    """Returns the lowest stage of every rank, by rank."""
    first = np.full(int(compute.rank.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, compute.rank, compute.stage)
    return first


def _idle(compute: Spans) -> NDArray[np.int64]:
    """Returns step, rank, stage and length of every gap between computations in the windows."""
    if not len(compute):
        return np.empty((0, 4), dtype=np.int64)
    order = np.lexsort((compute.start_ns, compute.rank, compute.step))
    step, rank, stage = (column[order] for column in (compute.step, compute.rank, compute.stage))
    start, end = compute.start_ns[order], compute.end_ns[order]
    steps, of = np.unique(step, return_inverse=True)
    begins, ends = np.full(len(steps), start.max()), np.full(len(steps), end.min())
    np.minimum.at(begins, of, start)
    np.maximum.at(ends, of, end)
    is_first = (np.diff(rank, prepend=-1) != 0) | (np.diff(step, prepend=step[0] - 1) != 0)
    is_last = np.append(is_first[1:], True)
    # Busy until the latest end of all that began before: computations may intersect.
    turn = np.cumsum(is_first)
    span_ns = int(end.max() - start.min()) + 1
    busy = np.maximum.accumulate(end - start.min() + turn * span_ns) - turn * span_ns + start.min()
    free = np.where(is_first, begins[of], np.concatenate([busy[:1], busy[:-1]]))
    before = np.column_stack([step, rank, stage, np.maximum(start - free, 0)])
    after = np.column_stack([step, rank, stage, ends[of] - busy])[is_last]
    return np.concatenate([before, after]).astype(np.int64)
