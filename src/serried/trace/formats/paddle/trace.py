"""A Paddle job as a Trace: each worker log becomes a rank, each job line a span.

    machine0/workerlog.0   rank 0   stage 0        stages follow machine and device order,
    machine0/workerlog.1   rank 1   stage 1        unless sizes are given: then ranks stand
    machine1/workerlog.0   rank 2   stage 2        where Paddle's own topology puts them
    machine1/workerlog.1   rank 3   stage 3        on one machine N is the rank of workerlog.N

``forward1`` and ``backward1`` are of the second virtual stage of their device, stage p + d on
device d of p. ``backward(chunk0)`` and ``backward(chunk1)`` are the pieces of one job, of one
stage and microbatch. ``recv_forward`` and ``send_backward`` are messages; ``lr`` and
``default`` belong to no action and are left to the timeline files (``timeline``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from serried.action import ActionKind
from serried.mesh import Layout
from serried.trace.formats.foreign import (
    ForeignSpan,
    foreign_trace,
    renumbered,
    spans_of,
    with_peers,
)
from serried.trace.formats.paddle.log import DeviceLog, PaddleLogs
from serried.trace.model.laid_out import laid_out
from serried.trace.model.trace import Trace

# forward; forward1: virtual stage 1; backward_b0; backward(chunk1): a piece of one job, no stage.
_TYPE = re.compile(r"(?P<name>[a-z_]+?)(?P<chunk>\d{0,6})(?:\(chunk\d+\))?")
_KINDS = {
    "forward": ActionKind.F,
    "backward": ActionKind.B,
    "backward_b": ActionKind.I,
    "backward_w": ActionKind.W,
    "recv_forward": ActionKind.RECV_F,
    "send_forward": ActionKind.SEND_F,
    "recv_backward": ActionKind.RECV_B,
    "send_backward": ActionKind.SEND_B,
    "optimizer": ActionKind.OPTIMIZER,
}


def action_of(type_: str) -> tuple[ActionKind, int] | None:
    """Returns the kind and the virtual stage on its device of a job type, None for no action.

    >>> action_of("backward_b1"), action_of("backward(chunk1)"), action_of("lr")
    ((<ActionKind.I: 3>, 1), (<ActionKind.B: 2>, 0), None)
    """
    match = _TYPE.fullmatch(type_)
    if not match or match["name"] not in _KINDS:
        return None
    return _KINDS[match["name"]], int(match["chunk"] or 0)


def paddle_trace(logs: PaddleLogs, sizes: Mapping[str, int] | None = None) -> Trace:
    """Returns the Trace of ``logs``; ``sizes`` (``{"pp": 2, "dp": 2}``) say how ranks stand.

    A device whose log is missing keeps its rank. Raises InputError when the sizes do not make
    as many ranks as there are devices, and when no job of the logs is an action.
    """
    of_one = len({machine for machine, _ in logs.places}) == 1
    # On one machine logs 2 and 3 are ranks 2 and 3. Over several machines the devices of each
    # begin at 0 again, so ranks are counted on from machine to machine.
    numbers = [device if of_one else at for at, (_, device) in enumerate(logs.places)]
    layout = renumbered(laid_out("paddle", len(logs.places), sizes), numbers)
    rank_of = dict(zip(logs.places, numbers, strict=True))
    machines: dict[str, list[int]] = {}
    for (machine, _), rank in rank_of.items():
        machines.setdefault(machine, []).append(rank)
    rows = [
        row for log in logs.devices for row in _rows(rank_of[log.machine, log.device], log, layout)
    ]
    spans = spans_of(with_peers(rows, layout))
    run = logs.folder.resolve().name
    return foreign_trace(run, layout, machines, spans, findings=logs.findings, resolution_ns=1_000)


def _rows(rank: int, log: DeviceLog, layout: Layout) -> Iterator[ForeignSpan]:
    """Yields the jobs of one device that are actions, as spans of ``rank``."""
    stages = layout.sizes.get("pp", 1)
    column = layout.groups_of(rank)[layout.kind_of("pp")][0] if stages > 1 else [rank]
    at = column.index(rank)
    for job in log.jobs:
        if (action := action_of(job.type)) is None:
            continue
        kind, chunk = action
        # Virtual stages go round the pipeline: forward1 on device 0 of 4 is stage 4.
        stage = -1 if kind is ActionKind.OPTIMIZER else chunk * stages + at
        microbatch = -1 if kind is ActionKind.OPTIMIZER else job.microbatch
        yield ForeignSpan(rank, stage, kind, microbatch, job.step, job.start_ns, job.end_ns)
