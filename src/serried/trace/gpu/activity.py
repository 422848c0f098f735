"""The activity of GPUs and of the hosts that drive them, as columns: a GpuTrace.

    host    ├─ aten::mm ──────────┤                       a call of the program
               ├ cudaLaunchKernel ┤                        a call of the driver's ──┐ the same
    stream 7                   ├──── gemm ────┤            an operation <───────────┘ correlation
    stream 20                        ├── ncclDevKernel ──┤

A Trace (``trace.model``) holds what a program said of itself: forwards and backwards of
microbatches. A profile of any other program has none of that; it has kernels, copies and calls,
some ten thousand a step, so they stand as numpy columns and names stand once.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import IntEnum
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from serried.finding import Finding

Whole = NDArray[np.int64]
"""A column of whole numbers: nanoseconds, or places in another column."""


class OperationKind(IntEnum):
    """Names what a GPU does in an operation, as HolisticTraceAnalysis tells them apart."""

    COMPUTATION = 0
    COMMUNICATION = 1
    MEMORY = 2
    """Copies and fills, which the copy engines do."""


class CallKind(IntEnum):
    """Names whose call a host's call is."""

    OPERATOR = 0
    """PyTorch's: ``aten::mm``, ``c10d::allreduce_``."""
    DRIVER = 1
    """CUDA's or HIP's: ``cudaLaunchKernel``."""
    RANGE = 2
    """What the program, or a profiler, names: ``ProfilerStep#3``, an NVTX range."""


@dataclass(frozen=True, eq=False)
class Timed:
    """Holds rows with a start and an end: what operations, calls, waits and steps have alike."""

    start_ns: Whole
    end_ns: Whole

    def __len__(self) -> int:
        return len(self.start_ns)

    def where(self, rows: NDArray[Any]) -> Self:
        """Returns the rows that a mask or an index chooses."""
        return replace(self, **{each.name: getattr(self, each.name)[rows] for each in fields(self)})

    def later(self, by_ns: int) -> Self:
        """Returns the same, moved by some nanoseconds."""
        return replace(self, start_ns=self.start_ns + by_ns, end_ns=self.end_ns + by_ns)

    @property
    def duration_ns(self) -> Whole:
        """How long each took."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, eq=False)
class Operations(Timed):
    """Holds the operations of a rank's GPUs by start: kernels, copies and fills."""

    name: Whole
    kind: Whole
    device: Whole
    stream: Whole
    correlation: Whole
    """What the call that launched it has too; -1 without one."""
    size_bytes: Whole
    """What a copy or a fill moved; -1 where it is not said."""
    bandwidth: NDArray[np.float64]
    """GB/s of a copy or a fill as the profiler says it; not a number where it does not."""
    exchange: Whole
    """Which of the rank's exchanges it carries out; -1 for none."""

    def of_kind(self, kind: OperationKind) -> Self:
        """Returns the operations of one kind."""
        return self.where(self.kind == kind)


@dataclass(frozen=True, eq=False)
class Calls(Timed):
    """Holds the calls of a rank's host threads, by start; of two at once the longer first."""

    name: Whole
    kind: Whole
    thread: Whole
    """Which of the host's threads, numbered as they came."""
    correlation: Whole

    def of_kind(self, kind: CallKind) -> Self:
        """Returns the calls of one kind."""
        return self.where(self.kind == kind)


@dataclass(frozen=True)
class CollectiveCall:
    """Says what a communication kernel was asked to do, as torch's profiler records it."""

    collective: str
    """``allreduce``, ``_allgather_base``, ``reduce_scatter`` … as torch names them."""
    elements_in: int
    elements_out: int
    dtype: str
    group: str
    """The process group's name, which torch counts up."""
    purpose: str
    """The group's description where the program gave one: ``TENSOR_MODEL_PARALLEL_GROUP``."""
    ranks: tuple[int, ...]
    """The members by global rank; empty where they are not said, or too many to be listed."""
    num_ranks: int


class SyncKind(IntEnum):
    """Names who waits for a GPU, and for what of it."""

    STREAM_WAIT = 0
    """A stream, for an event of another."""
    EVENT = 1
    """The host, for an event."""
    STREAM = 2
    """The host, for all of a stream."""
    CONTEXT = 3
    """The host, for all streams."""


@dataclass(frozen=True, eq=False)
class Syncs(Timed):
    """Holds the waits for a GPU that were recorded (``cuda_sync``), by end."""

    kind: Whole
    stream: Whole
    correlation: Whole
    """What the call that asked for it has too."""
    on_stream: Whole
    """The stream on which the event was recorded; -1 for none."""
    recorded: Whole
    """The correlation of the call that recorded the event; -1 for none."""


@dataclass(frozen=True, eq=False)
class StepRanges(Timed):
    """Holds a rank's steps, by start: the ranges that are called ``ProfilerStep#3``."""

    number: Whole


@dataclass(frozen=True, eq=False)
class GpuRank:
    """Holds what one rank's GPUs and host did, and what its file says of the job."""

    rank: int
    path: str
    host: str
    names: tuple[str, ...]
    operations: Operations
    calls: Calls
    steps: StepRanges
    syncs: Syncs
    exchanges: tuple[CollectiveCall, ...] = ()
    world_size: int | None = None
    """How many ranks the job has, as the file says."""
    gpu: str = ""
    """The GPU's model."""

    def names_of(self, column: Whole) -> list[str]:
        """Returns a column of names as texts."""
        return [self.names[each] for each in column.tolist()]


@dataclass(frozen=True, eq=False)
class GpuTrace:
    """Holds the activity of some ranks of a job, and what is to be said of their files."""

    tool: str
    """What recorded it: ``torch.profiler`` or ``Nsight Systems``."""
    ranks: tuple[GpuRank, ...]
    """By rank."""
    warnings: tuple[Finding, ...] = ()

    @property
    def world_size(self) -> int:
        """How many ranks the job has: as the files say, else as many as there are."""
        said = [each.world_size or 0 for each in self.ranks]
        return max(*said, 1 + max(each.rank for each in self.ranks), len(self.ranks))

    @property
    def said_world_size(self) -> int | None:
        """How many ranks the job has as its files say; None where none of them does."""
        return next((each.world_size for each in self.ranks if each.world_size), None)

    def with_warnings(self, *warnings: Finding) -> Self:
        """Returns the same with more to be said."""
        return replace(self, warnings=(*self.warnings, *warnings))
