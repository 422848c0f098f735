"""A Trace of spans that no recorder wrote: of ranks that stand as a layout says.

    spans of ranks ──────┐
    machines by name     ├─> Trace, its clock beginning near 0
    layout of the ranks  ┘

Another tool's files become a Trace so, and a plan that a run is compared with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from serried import frameworks
from serried.action import Spans
from serried.errors import InputError
from serried.finding import Finding
from serried.frameworks import Sizes
from serried.limits import TRACE_LENGTH
from serried.mesh import Layout
from serried.trace.model.record import REAL, UNKNOWN_SCHEDULE, TracedJob
from serried.trace.model.replay import Replay
from serried.trace.model.trace import Host, Trace

_MICROSECOND = 1_000


def laid_out(framework: str, world_size: int, sizes: Mapping[str, int] | None) -> Layout:
    """Returns the layout of ``world_size`` ranks: by ``sizes``, else one stage after another.

    >>> laid_out("megatron", 4, None).sizes["pp"]
    4

    Raises InputError when the sizes do not make that many ranks.
    """
    axes: dict[str, Any] = dict(sizes or {"pp": world_size})
    return frameworks.layout(framework, Sizes(world_size, **axes))


def trace_of_layout(
    run: str,
    layout: Layout,
    machines: Mapping[str, Sequence[int]],
    spans: Spans,
    *,
    schedule: str = UNKNOWN_SCHEDULE,
    compute: str = REAL,
    findings: Sequence[Finding] = (),
    waits_inside: bool = False,
    replay: Replay | None = None,
    resolution_ns: int | None = None,
) -> Trace:
    """Returns the Trace of ``spans``, whose ranks are those of ``layout``, on ``machines``.

    Times of ``spans`` are nanoseconds since 1970, by each machine's own clock, told as finely as
    ``resolution_ns`` says or, without it, as they show themselves. Raises
    InputError when there are no spans, and when they are decades apart.
    """
    if not len(spans):
        raise InputError("{run} holds no forward, no backward and no message", run=run)
    world = layout.world_size
    present = np.unique(spans.rank).tolist()
    base_ns = int(spans.start_ns.min())
    _require_one_time(run, int(spans.end_ns.max()) - base_ns)
    # The job carries what `custom` needs to make the layout again: axes, and explicit ranks.
    of_axes = {"axes": axes_text(layout.mesh.sizes)} if layout.framework == "custom" else {}
    of_ranks = {"ranks": " ".join(map(str, layout.mesh.explicit))} if layout.mesh.explicit else {}
    job = TracedJob(
        layout.framework,
        world,
        layout.sizes,
        layout.order,
        schedule,
        num_microbatches=max(1, 1 + int(spans.microbatch.max())),
        gpus_per_node=_ranks_per_node([*machines.values()], world),
        options=of_axes | of_ranks,
        compute=compute,
    )
    return Trace(
        run=run,
        job=job,
        spans=spans.shifted(-base_ns),
        base_ns=base_ns,
        hosts=tuple(Host(name, tuple(map(int, ranks)), 0) for name, ranks in machines.items()),
        ranks=tuple(present),
        torn=(),
        missing=tuple(sorted({*layout.mesh.ranks.ravel().tolist()} - {*present})),
        warnings=tuple(findings),
        layout=layout,
        waits_inside=waits_inside,
        replay=replay,
        resolution_ns=resolution_ns or told_to_ns(spans),
    )


def _ranks_per_node(machines: Sequence[Sequence[int]], world_size: int) -> int:
    """Returns how many ranks a machine holds, so that rank // it is the number of the machine.

    Some ranks of a machine may have no file. Where machines do not hold ranks in a row, it is
    what the largest has.
    """
    spans = sorted((min(ranks), max(ranks)) for ranks in machines if len(ranks))
    # Machine k holds ranks k n to (k + 1) n - 1: its last rank bounds n from below, its first
    # one from above.
    least = max(-(-(1 + last) // at) for at, (_, last) in enumerate(spans, 1))
    most = min((first // at for at, (first, _) in enumerate(spans) if at), default=world_size)
    fits = [each for each in range(least, most + 1) if world_size % each == 0]
    if least > most:
        return max(map(len, machines))
    return fits[-1] if fits else most


def told_to_ns(spans: Spans) -> int:
    """Returns how finely a writer told times: 1000 where all are whole microseconds, else 1.

    A double of milliseconds since 1970 is off by up to 122 ns itself; ranks may begin at
    nanoseconds of their own.
    """
    ranks, of = np.unique(spans.rank, return_inverse=True)
    first = np.full(len(ranks), np.iinfo(np.int64).max)
    np.minimum.at(first, of, spans.start_ns)
    since = np.concatenate([spans.start_ns, spans.end_ns]) - np.tile(first[of], 2)
    past = (since + _MICROSECOND // 2) % _MICROSECOND - _MICROSECOND // 2
    return _MICROSECOND if bool((np.abs(past) <= _MICROSECOND // 4).all()) else 1


def _require_one_time(run: str, length_ns: int) -> None:
    if length_ns > TRACE_LENGTH.most:
        raise InputError(
            "the spans of {run} are {years:.0f} years apart; one of its clocks is wrong, or a "
            "number in the files is damaged",
            run=run,
            years=length_ns / (365.25 * 86_400e9),
        )


def axes_text(sizes: Mapping[str, int]) -> str:
    """Returns sizes by axis as the framework ``custom`` takes them.

    >>> axes_text({"pp": 4, "dp": 2})
    'pp=4 dp=2'
    """
    return " ".join(f"{axis}={size}" for axis, size in sizes.items())
