"""Columns that grow row by row while a profile is read, and become a rank's activity.

A row takes some 80 bytes as numbers, where the event that it is read from takes 300 to 1,000; a
name stands once, however many kernels have it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np

from serried.errors import InputError
from serried.limits import ACTIVITIES, TRACE_MOMENT
from serried.trace.gpu.activity import (
    CallKind,
    Calls,
    CollectiveCall,
    OperationKind,
    Operations,
    StepRanges,
    SyncKind,
    Syncs,
    Whole,
)

_OPERATION = ("name", "kind", "start", "end", "device", "stream", "correlation", "size", "exchange")
_CALL = ("name", "kind", "start", "end", "thread", "correlation")
_SYNC = ("kind", "start", "end", "stream", "correlation", "on_stream", "recorded")
_STEP = ("number", "start", "end")


class GrowingActivity:
    """Holds the rows read so far."""

    def __init__(self, path: object) -> None:
        """Takes where the rows are read, for what is said of them."""
        self._path = path
        self._names: dict[str, int] = {}
        self._threads: dict[object, int] = {}
        self._exchanges: dict[CollectiveCall, int] = {}
        self.clear()

    def clear(self) -> None:
        """Forgets all rows."""
        self._operations = tuple(array("q") for _ in _OPERATION)
        self._bandwidths = array("d")
        self._calls = tuple(array("q") for _ in _CALL)
        self._steps = tuple(array("q") for _ in _STEP)
        self._syncs = tuple(array("q") for _ in _SYNC)
        self.num_beyond = 0

    @property
    def num_operations(self) -> int:
        """How many operations of GPUs there are."""
        return len(self._bandwidths)

    @property
    def num_calls(self) -> int:
        """How many calls of the host there are."""
        return len(self._calls[0])

    def operation(
        self,
        name: str,
        kind: OperationKind,
        start_ns: int,
        end_ns: int,
        *,
        device: int = 0,
        stream: int = 0,
        correlation: int = -1,
        size_bytes: int = -1,
        gb_per_s: float = float("nan"),
        exchange: CollectiveCall | None = None,
    ) -> None:
        """Adds an operation of a GPU."""
        if not self._may_stand(start_ns, end_ns):
            return
        where = device, stream, correlation, size_bytes, self._exchange(exchange)
        row = self._name(name), int(kind), start_ns, end_ns, *where
        _append(self._operations, row)
        self._bandwidths.append(gb_per_s)

    def call(
        self,
        name: str,
        kind: CallKind,
        start_ns: int,
        end_ns: int,
        thread: object,
        correlation: int = -1,
    ) -> None:
        """Adds a call of the host."""
        if self._may_stand(start_ns, end_ns):
            number = self._threads.setdefault(thread, len(self._threads))
            row = self._name(name), int(kind), start_ns, end_ns, number, correlation
            _append(self._calls, row)

    def step(self, number: int, start_ns: int, end_ns: int) -> None:
        """Adds a step."""
        if self._may_stand(start_ns, end_ns):
            _append(self._steps, (number, start_ns, end_ns))

    def sync(
        self,
        kind: SyncKind,
        start_ns: int,
        end_ns: int,
        *,
        stream: int,
        correlation: int,
        on_stream: int,
        recorded: int,
    ) -> None:
        """Adds a wait for a GPU."""
        if self._may_stand(start_ns, end_ns):
            row = int(kind), start_ns, end_ns, stream, correlation, on_stream, recorded
            _append(self._syncs, row)

    def names(self) -> tuple[str, ...]:
        """Returns all names, each at its number."""
        return tuple(self._names)

    def exchanges(self) -> tuple[CollectiveCall, ...]:
        """Returns what communication kernels were asked to do, each at its number."""
        return tuple(self._exchanges)

    def operations(self) -> Operations:
        """Returns the operations by start."""
        columns = dict(zip(_OPERATION, map(_column, self._operations), strict=True))
        order = np.lexsort((columns["end"], columns["start"]))
        by_start = {name: column[order] for name, column in columns.items()}
        return Operations(
            name=by_start["name"],
            kind=by_start["kind"],
            start_ns=by_start["start"],
            end_ns=by_start["end"],
            device=by_start["device"],
            stream=by_start["stream"],
            correlation=by_start["correlation"],
            size_bytes=by_start["size"],
            bandwidth=np.array(self._bandwidths, dtype=np.float64)[order],
            exchange=by_start["exchange"],
        )

    def calls(self) -> Calls:
        """Returns the calls by start, of two at once the longer first."""
        name, kind, start, end, thread, correlation = map(_column, self._calls)
        order = np.lexsort((-end, start))
        columns = (start, end, name, kind, thread, correlation)
        return Calls(*(column[order] for column in columns))

    def steps(self) -> StepRanges:
        """Returns the steps by start."""
        number, start, end = map(_column, self._steps)
        order = np.argsort(start, kind="stable")
        return StepRanges(start[order], end[order], number[order])

    def syncs(self) -> Syncs:
        """Returns the waits by end."""
        kind, start, end, *rest = map(_column, self._syncs)
        order = np.argsort(end, kind="stable")
        return Syncs(*(column[order] for column in (start, end, kind, *rest)))

    def _name(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))

    def _exchange(self, exchange: CollectiveCall | None) -> int:
        if exchange is None:
            return -1
        return self._exchanges.setdefault(exchange, len(self._exchanges))

    def _may_stand(self, start_ns: int, end_ns: int) -> bool:
        """Tells whether times are such as a clock shows; counts those that are not."""
        if not -TRACE_MOMENT.most < start_ns <= end_ns < TRACE_MOMENT.most:
            self.num_beyond += 1
            return False
        if self.num_operations + self.num_calls >= ACTIVITIES.most:
            raise InputError(
                "{path} holds more than {limit:,} kernels and calls, the most that serried reads "
                "of a file; profile fewer steps",
                path=self._path,
                limit=ACTIVITIES.most,
            )
        return True


def _append(columns: Iterable[array[int]], row: Iterable[int]) -> None:
    for column, value in zip(columns, row, strict=True):
        column.append(value)


def _column(values: array[int]) -> Whole:
    return np.array(values, dtype=np.int64)
