"""Foreign: the one way that spans read from another tool's files become a Trace.

    spans of that tool's ranks ─┐
    machines by name            ├─> layout from sizes ─> Trace, its clock beginning near 0
    sizes, or stages in order  ─┘

Other tools seldom say which framework ran and never its group order, so ranks are laid out by
the sizes given under a framework's rule, or, with none given, as so many pipeline stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from serried import frameworks
from serried.errors import InputError
from serried.finding import Finding
from serried.frameworks import Sizes
from serried.mesh import Layout
from serried.span import Spans
from serried.trace.merge import Host, Trace
from serried.trace.record import UNKNOWN_SCHEDULE, Job
from serried.trace.replay import Replay


def laid_out(framework: str, world_size: int, sizes: Mapping[str, int] | None) -> Layout:
    """Returns the layout of ``world_size`` ranks: by ``sizes``, else one stage after another.

    >>> laid_out("megatron", 4, None).sizes["pp"]
    4

    Raises InputError when the sizes do not make that many ranks.
    """
    axes: dict[str, Any] = dict(sizes or {"pp": world_size})
    return frameworks.layout(framework, Sizes(world_size, **axes))


def foreign_trace(
    run: str,
    layout: Layout,
    machines: Mapping[str, Sequence[int]],
    spans: Spans,
    *,
    schedule: str = UNKNOWN_SCHEDULE,
    findings: Sequence[Finding] = (),
    replay: Replay | None = None,
) -> Trace:
    """Returns the Trace of ``spans``, whose ranks are those of ``layout``, on ``machines``.

    Times of ``spans`` are nanoseconds since 1970, by each machine's own clock. Raises
    InputError when there are no spans.
    """
    if not len(spans):
        raise InputError("{run} holds no forward, no backward and no message", run=run)
    world = layout.world_size
    present = set(spans.rank.tolist())
    base_ns = int(spans.start_ns.min())
    job = Job(
        layout.framework,
        world,
        layout.sizes,
        layout.order,
        schedule,
        num_microbatches=max(1, 1 + int(spans.microbatch.max())),
        gpus_per_node=max(map(len, machines.values())),
    )
    return Trace(
        run=run,
        job=job,
        spans=spans.shifted(-base_ns),
        base_ns=base_ns,
        hosts=tuple(Host(name, tuple(ranks), 0) for name, ranks in machines.items()),
        ranks=tuple(sorted(present)),
        torn=(),
        missing=tuple(sorted(set(range(world)) - present)),
        warnings=tuple(findings),
        layout=layout,
        replay=replay,
    )
