"""Foreign: the one way that spans read from another tool's files become a Trace.

    spans of that tool's ranks ─┐
    machines by name            ├─> layout from sizes ─> Trace, its clock beginning near 0
    sizes, or stages in order  ─┘

Other tools seldom say which framework ran and never its group order, so ranks are laid out by
the sizes given under a framework's rule, or, with none given, as so many pipeline stages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from serried import frameworks
from serried.errors import InputError
from serried.finding import Finding
from serried.frameworks import Sizes
from serried.mesh import Layout
from serried.span import ActionKind, Spans
from serried.trace.admission import require_within
from serried.trace.merged import Host, Trace
from serried.trace.record import UNKNOWN_SCHEDULE, Job
from serried.trace.replay import Replay

_LONGEST_NS = 2**60
_MOST_SHARED = 0.5
"""How much of the shorter of two steps the other may lie over."""


class Row(NamedTuple):
    """Is one span of another tool's file; times are nanoseconds."""

    rank: int
    stage: int
    kind: ActionKind
    microbatch: int
    step: int
    start_ns: int
    end_ns: int
    peer: int = -1


def spans_of(rows: Iterable[Row]) -> Spans:
    """Returns ``rows`` as columns, by rank and start.

    Raises InputError for a number that no trace can hold.
    """
    given = [tuple(row) for row in rows]
    # As floats first: they hold any number, if not exactly, and tell which are too large.
    rough = np.array(given, dtype=np.float64).reshape(-1, len(Row._fields))
    for name, column in zip(Row._fields, rough.T, strict=True):
        require_within(name, float(np.abs(column).max(initial=0)))
    table = np.array(given, dtype=np.int64).reshape(-1, len(Row._fields))
    columns = dict(zip(Row._fields, table.T, strict=True))
    whole: dict[str, Any] = {
        name: column if name.endswith("_ns") else column.astype(np.int32)
        for name, column in columns.items()
    }
    return Spans.joined([Spans(**whole)])


def pipelines(rows: Sequence[Row], world_size: int, sizes: Mapping[str, int] | None) -> Layout:
    """Returns the layout of ranks whose stages are seen in ``rows``.

    Without ``sizes``, ranks of the same stages are each other's replicas, and the world is as
    many pipelines as there are replicas: all ranks of a stage are neighbours in Megatron's
    order, some of them where tensor parallel ranks are, and none in the other. Ranks without a
    stage may stand anywhere.

    Raises InputError when ``sizes`` do not make that many ranks, or there are too many.
    """
    require_within("rank", world_size - 1)
    if sizes:
        return laid_out("megatron", world_size, sizes)
    first: dict[int, int] = {}
    for row in rows:
        if row.stage >= 0:
            first[row.rank] = min(row.stage, first.get(row.rank, row.stage))
    depth = 1 + max(first.values(), default=world_size - 1)
    if world_size % depth:
        return laid_out("megatron", world_size, None)
    replicas = world_size // depth
    together = [replicas, *(each for each in range(1, replicas) if replicas % each == 0)]
    places = first.items()
    inner = next(
        (each for each in together if all(rank // each % depth == stage for rank, stage in places)),
        1,
    )
    if inner == replicas:
        return laid_out("megatron", world_size, {"pp": depth, "dp": replicas})
    found = {"dp": replicas // inner, "pp": depth} | ({"tp": inner} if inner > 1 else {})
    return frameworks.layout("custom", Sizes(world_size, options={"axes": _axes(found)}))


def _axes(sizes: Mapping[str, int]) -> str:
    return " ".join(f"{axis}={size}" for axis, size in sizes.items())


def with_peers(rows: Sequence[Row], layout: Layout) -> list[Row]:
    """Returns ``rows`` with the rank that each send goes to and each receive comes from.

    It is the neighbour in the pipeline; virtual stages go round it.
    """
    columns = _pipelines_of(layout)
    return [
        row._replace(peer=_neighbour(*columns[row.rank], TOWARDS[row.kind]))
        if row.kind in TOWARDS and row.peer < 0
        else row
        for row in rows
    ]


TOWARDS = {
    ActionKind.SEND_F: 1,
    ActionKind.RECV_B: 1,
    ActionKind.RECV_F: -1,
    ActionKind.SEND_B: -1,
}
"""Which neighbour a message goes to or comes from: 1 the next stage's rank, -1 the one before."""


def _pipelines_of(layout: Layout) -> dict[int, tuple[list[int], int]]:
    """Returns for each rank the ranks of its pipeline, and its own place among them."""
    if layout.sizes.get("pp", 1) == 1:
        return {rank: ([rank], 0) for rank in range(layout.world_size)}
    groups = layout.groups(layout.kind_of("pp")).lists()
    return {rank: (group, at) for group in groups for at, rank in enumerate(group)}


def _neighbour(column: Sequence[int], at: int, towards: int) -> int:
    return column[(at + towards) % len(column)] if len(column) > 1 else -1


def one_after_another(spans: Spans) -> Spans:
    """Returns ``spans`` with each step behind the one before, where a writer begins each at 0.

    Steps that only touch (an optimizer that ends after the next step began elsewhere) stay.
    """
    steps, of = np.unique(spans.step, return_inverse=True)
    first = np.full(len(steps), np.iinfo(np.int64).max)
    last = np.full(len(steps), np.iinfo(np.int64).min)
    np.minimum.at(first, of, spans.start_ns)
    np.maximum.at(last, of, spans.end_ns)
    shorter = np.minimum(last[1:] - first[1:], last[:-1] - first[:-1])
    if (last[:-1] - first[1:] <= shorter * _MOST_SHARED).all():
        return spans
    begins = np.concatenate([[0], np.cumsum(last - first + 1_000_000)[:-1]])
    by = (begins - first)[of]
    return replace(spans, start_ns=spans.start_ns + by, end_ns=spans.end_ns + by)


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
    waits_inside: bool = False,
    replay: Replay | None = None,
) -> Trace:
    """Returns the Trace of ``spans``, whose ranks are those of ``layout``, on ``machines``.

    Times of ``spans`` are nanoseconds since 1970, by each machine's own clock. Raises
    InputError when there are no spans, and when they are decades apart.
    """
    if not len(spans):
        raise InputError("{run} holds no forward, no backward and no message", run=run)
    world = layout.world_size
    present = set(spans.rank.tolist())
    base_ns = int(spans.start_ns.min())
    _require_one_time(run, int(spans.end_ns.max()) - base_ns)
    job = Job(
        layout.framework,
        world,
        layout.sizes,
        layout.order,
        schedule,
        num_microbatches=max(1, 1 + int(spans.microbatch.max())),
        gpus_per_node=max(map(len, machines.values())),
        options={"axes": _axes(layout.sizes)} if layout.framework == "custom" else {},
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
        waits_inside=waits_inside,
        replay=replay,
    )


def _require_one_time(run: str, length_ns: int) -> None:
    if length_ns > _LONGEST_NS:
        raise InputError(
            "the spans of {run} are {years:.0f} years apart; one of its clocks is wrong, or a "
            "number in the files is damaged",
            run=run,
            years=length_ns / (365.25 * 86_400e9),
        )
