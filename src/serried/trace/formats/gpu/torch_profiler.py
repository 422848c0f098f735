"""torch.profiler's files (Kineto) as activity: kernels, copies and calls of any PyTorch program.

    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(…)",
     "ts": 4458676980491.8, "dur": 5807.89,                  microseconds since the file's base
     "args": {"device": 0, "stream": 40, "correlation": 57465,
              "Collective name": "allreduce", "In msg nelems": 6563840, "dtype": "Float",
              "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}}

``cuda_runtime`` and ``cuda_driver`` (HIP's calls stand under the same names) are calls of the
driver, ``cpu_op`` PyTorch's operators, ``user_annotation`` ranges; up to 2022 the categories were
``Kernel``, ``Memcpy``, ``Memset``, ``Runtime``, ``Operator``. Ranges drawn over a stream
(``gpu_user_annotation``) and Python's frames are left out; waits for a GPU and between its streams
(``cuda_sync``) are no operations.

Source: pytorch/kineto, libkineto/src/output_json.cpp; torch 2.13, torch/csrc/profiler.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from serried.errors import InputError
from serried.limits import TRACE_MOMENT
from serried.trace.formats.event_file import (
    Event,
    TraceEventFile,
    nanoseconds,
    printable,
    whole,
)
from serried.trace.formats.gpu.columns import GrowingActivity
from serried.trace.gpu.activity import CallKind, CollectiveCall, GpuRank, OperationKind, SyncKind
from serried.trace.gpu.kind import kind_of

_OPERATIONS = frozenset(
    {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset", "mtia_ccp_events"}
)
_COPIES = frozenset({"gpu_memcpy", "gpu_memset", "Memcpy", "Memset"})
_CALLS = {
    **dict.fromkeys(("cpu_op", "Operator"), CallKind.OPERATOR),
    **dict.fromkeys(("cuda_runtime", "cuda_driver", "Runtime", "mtia_runtime"), CallKind.DRIVER),
    "user_annotation": CallKind.RANGE,
}
_SYNCS = {
    "Stream Wait Event": SyncKind.STREAM_WAIT,
    "Event Sync": SyncKind.EVENT,
    "Stream Sync": SyncKind.STREAM,
    "Context Sync": SyncKind.CONTEXT,
}
_STEP = re.compile(r"ProfilerStep\s?#(\d{1,9})")
_RANKS_LISTED = 4096
_NAME_LETTERS = 1 << 16


class KernelReader:
    """Takes the events of one file and keeps what GPUs and hosts did."""

    def __init__(self, path: Path) -> None:
        self.columns = GrowingActivity(path)
        self._is_closed = False

    def close(self) -> None:
        """Forgets what was taken and takes no more: the file is a pipeline's."""
        self._is_closed = True
        self.columns.clear()

    @property
    def num_beyond(self) -> int:
        """How many events were left out for times that no clock shows."""
        return self.columns.num_beyond

    def take(self, event: Event) -> None:
        """Keeps an event, if it is of a kernel, a copy, a call or a step."""
        if self._is_closed or event.get("ph") != "X":
            return
        category, name = event.get("cat"), event.get("name")
        if not isinstance(category, str) or not isinstance(name, str):
            return
        is_operation = category in _OPERATIONS
        kind = _CALLS.get(category)
        is_sync = category == "cuda_sync"
        if not is_operation and not is_sync and kind is None:
            return
        start, length = nanoseconds(event.get("ts")), nanoseconds(event.get("dur"))
        if start is None or length is None or length < 0:
            return
        found = event.get("args")
        args = found if isinstance(found, dict) else {}
        if is_sync:
            self._sync(name, start, start + length, args)
            return
        if kind is None:
            self._operation(name, category, start, start + length, args, event)
            return
        correlation = _number(args.get("correlation"))
        thread = str(event.get("pid")), str(event.get("tid"))
        self.columns.call(name[:_NAME_LETTERS], kind, start, start + length, thread, correlation)
        if step := _STEP.fullmatch(name):
            self.columns.step(int(step[1]), start, start + length)

    def _operation(
        self, name: str, category: str, start: int, end: int, args: Event, event: Event
    ) -> None:
        kind = OperationKind.MEMORY if category in _COPIES else kind_of(name)
        exchange = _exchange(args) if kind is OperationKind.COMMUNICATION else None
        self.columns.operation(
            name[:_NAME_LETTERS],
            kind,
            start,
            end,
            device=_number(args.get("device"), _number(event.get("pid"))),
            stream=_number(args.get("stream"), _number(event.get("tid"))),
            correlation=_number(args.get("correlation")),
            size_bytes=_number(args.get("bytes")),
            gb_per_s=_rate(args.get("memory bandwidth (GB/s)")),
            exchange=exchange,
        )

    def _sync(self, name: str, start: int, end: int, args: Event) -> None:
        if (kind := _SYNCS.get(name)) is not None:
            self.columns.sync(
                kind,
                start,
                end,
                stream=_number(args.get("stream")),
                correlation=_number(args.get("correlation")),
                on_stream=_number(args.get("wait_on_stream")),
                recorded=_number(args.get("wait_on_cuda_event_record_corr_id")),
            )

    def rank(self, file: TraceEventFile, number: int) -> GpuRank:
        """Returns what the whole file held, as the rank of that number."""
        text = str(file.about.get("baseTimeNanoseconds"))
        # Some versions write it as text.
        base_ns = int(text) if text.isdecimal() and len(text) < 20 else 0
        about = file.about.get("distributedInfo")
        return rank_of(
            self.columns,
            number,
            file.path,
            host=printable(file.about.get("host_name")),
            world_size=world_said(about),
            gpu=_gpu(file.about.get("deviceProperties")),
            base_ns=base_ns if base_ns < TRACE_MOMENT.most else 0,
        )


def rank_of(
    columns: GrowingActivity,
    number: int,
    path: Path,
    *,
    host: str = "",
    world_size: int | None = None,
    gpu: str = "",
    base_ns: int = 0,
) -> GpuRank:
    """Returns the columns as one rank's activity."""
    return GpuRank(
        number,
        str(path),
        host,
        columns.names(),
        columns.operations().later(base_ns),
        columns.calls().later(base_ns),
        columns.steps().later(base_ns),
        columns.syncs().later(base_ns),
        columns.exchanges(),
        world_size,
        gpu,
    )


def world_said(about: object) -> int | None:
    """Returns the number of ranks that a file's ``distributedInfo`` says."""
    found = whole(about.get("world_size")) if isinstance(about, dict) else None
    return found if found is not None and found > 0 else None


def require_activity(columns: GrowingActivity, path: Path) -> None:
    """Raises InputError for a file in which no GPU did anything."""
    if not columns.num_operations:
        raise InputError(
            "{path} holds no kernel and no copy of a GPU, only {calls:,} calls of the host, and "
            "no mark of a pipeline; profile with ProfilerActivity.CUDA beside ProfilerActivity.CPU",
            path=path,
            calls=columns.num_calls,
        )


def _exchange(args: Event) -> CollectiveCall | None:
    """Returns what a communication kernel was asked to do; None where it is not recorded."""
    collective = args.get("Collective name")
    if not isinstance(collective, str):
        return None
    ranks = _ranks(args)
    return CollectiveCall(
        collective[:64],
        max(0, _number(args.get("In msg nelems"), 0)),
        max(0, _number(args.get("Out msg nelems"), 0)),
        str(args.get("dtype", ""))[:64],
        str(args.get("Process Group Name", ""))[:256],
        str(args.get("Process Group Description", ""))[:256],
        ranks,
        max(len(ranks), _number(args.get("Group size"), 0)),
    )


def _ranks(args: Event) -> tuple[int, ...]:
    """Returns a group's members; a list that is cut short is gone on with by its stride."""
    text = str(args.get("Process Group Ranks", ""))[: 8 * _RANKS_LISTED]
    size = _number(args.get("Group size"), 0)
    found = tuple(int(word) for word in re.findall(r"\d{1,7}", text)[:_RANKS_LISTED])
    if size <= len(found) or size > _RANKS_LISTED:
        return found
    first = _number(args.get("Global rank start"))
    stride = _number(args.get("Global rank stride"))
    return (
        tuple(first + stride * each for each in range(size)) if min(first, stride - 1) >= 0 else ()
    )


def _number(value: object, otherwise: int = -1) -> int:
    """Returns a whole number of a file, also one of 64 bits; ``otherwise`` where it is none."""
    if isinstance(value, bool):
        return otherwise
    if isinstance(value, int):
        return value if abs(value) < 2**62 else otherwise
    found = whole(value)
    return otherwise if found is None else found


def _rate(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    return float(value) if 0 <= value < 1e9 else math.nan


def _gpu(properties: Any) -> str:
    first = properties[0] if isinstance(properties, list) and properties else None
    return printable(first.get("name")) if isinstance(first, dict) else ""
