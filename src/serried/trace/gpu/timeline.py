"""A profile of GPUs as a Trace: every operation a span by its name, all ranks on one clock.

    stream 7    ├─ gemm ─┤ ├─ gemm ─┤            SPAN gemm
    stream 20        ├─ ncclDevKernel_AllReduce  ALL_REDUCE, as the recorder calls it

So the timeline of the workbench shows it, and Chrome and Perfetto files are written of it. Forwards
and backwards are none of it, so no bubble is measured.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from serried.action import ActionKind, Spans
from serried.mesh import Layout
from serried.trace.gpu.activity import GpuRank, GpuTrace, OperationKind, Whole
from serried.trace.gpu.clocks import aligned_gpus
from serried.trace.gpu.kind import short_name
from serried.trace.gpu.meetings import operation_of
from serried.trace.gpu.steps import steps_of_operations
from serried.trace.model.laid_out import laid_out, trace_of_layout
from serried.trace.model.trace import Trace

_KINDS = {
    "all_reduce": ActionKind.ALL_REDUCE,
    "all_gather": ActionKind.ALL_GATHER,
    "reduce_scatter": ActionKind.REDUCE_SCATTER,
    "all_to_all": ActionKind.ALL_TO_ALL,
    "broadcast": ActionKind.BROADCAST,
}
"""Collectives that spans have a kind for; the others go by their names."""


def gpu_timeline(trace: GpuTrace, layout: Layout | None = None) -> Trace:
    """Returns the operations of all ranks as spans; without a ``layout`` ranks are replicas."""
    together, _ = aligned_gpus(trace)
    world = trace.world_size
    layout = layout or laid_out("megatron", world, {"dp": world})
    names: dict[str, int] = {}
    spans = Spans.joined([_spans(rank, names) for rank in together.ranks])
    machines: dict[str, list[int]] = {}
    for rank in together.ranks:
        machines.setdefault(rank.host, []).append(rank.rank)
    run = Path(trace.ranks[0].path).resolve().parent.name
    found = trace_of_layout(run, layout, machines, spans, findings=trace.warnings)
    return replace(found, names=tuple(names))


def _spans(rank: GpuRank, names: dict[str, int]) -> Spans:
    operations = rank.operations
    kinds, places = _by_name(rank, names)
    none = np.full(len(operations), -1, dtype=np.int32)
    kind = kinds[operations.name]
    is_message = (operations.kind == OperationKind.COMMUNICATION) & (kind != ActionKind.SPAN)
    return Spans(
        rank=np.full(len(operations), rank.rank, dtype=np.int32),
        stage=none,
        kind=np.where(is_message, kind, ActionKind.SPAN).astype(np.int32),
        microbatch=none,
        step=np.maximum(steps_of_operations(rank), 0).astype(np.int32),
        peer=np.where(is_message, -1, places[operations.name]).astype(np.int32),
        start_ns=operations.start_ns,
        end_ns=operations.end_ns,
    )


def _by_name(rank: GpuRank, names: dict[str, int]) -> tuple[Whole, Whole]:
    """Returns for each of a rank's names its kind of span, and its place among ``names``."""
    used = np.unique(rank.operations.name).tolist()
    kinds = np.full(len(rank.names), ActionKind.SPAN, dtype=np.int64)
    places = np.full(len(rank.names), -1, dtype=np.int64)
    for at in used:
        name = short_name(rank.names[at])
        kinds[at] = _KINDS.get(operation_of(name), ActionKind.SPAN)
        places[at] = names.setdefault(name, len(names))
    return kinds, places
