"""Foreign: the one way that spans read from another tool's files become a Trace.

    spans of that tool's ranks ─┐
    machines by name            ├─> layout from sizes ─> Trace, its clock beginning near 0
    sizes, or stages in order  ─┘

Other tools seldom say which framework ran and never its group order, so ranks are laid out by
the sizes given under a framework's rule, or, with none given, as so many pipeline stages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serried import frameworks
from serried.action import ActionKind, Spans
from serried.finding import Finding
from serried.frameworks import Sizes
from serried.limits import TRACE_RANKS
from serried.mesh import Layout
from serried.trace.formats.two_runs import two_runs
from serried.trace.model.admission import require_within
from serried.trace.model.laid_out import axes_text, laid_out, trace_of_layout
from serried.trace.model.replay import Replay
from serried.trace.model.trace import Trace

_MOST_SHARED = 0.5
"""How much of the shorter of two steps the other may lie over."""


class ForeignSpan(NamedTuple):
    """Holds one span of another tool's file; times are nanoseconds."""

    rank: int
    stage: int
    kind: ActionKind
    microbatch: int
    step: int
    start_ns: int
    end_ns: int
    peer: int = -1
    size_bytes: int = -1
    group: int = -1


def spans_of(rows: Iterable[ForeignSpan]) -> Spans:
    """Returns ``rows`` as columns, by rank and start.

    Raises InputError for a number that no trace can hold.
    """
    given = [*rows]
    try:
        table = np.array(given, dtype=np.int64)
    except OverflowError:
        # Floats hold any number, if not exactly, and tell which are too large.
        table = np.array(given, dtype=np.float64)
    table = table.reshape(-1, len(ForeignSpan._fields))
    for name, column in zip(ForeignSpan._fields, table.T, strict=True):
        least, most = float(column.min(initial=0)), float(column.max(initial=0))
        require_within(name, max(-least, most))
    columns = dict(zip(ForeignSpan._fields, table.T, strict=True))
    whole: dict[str, Any] = {
        name: column if name.endswith(("_ns", "_bytes")) else column.astype(np.int32)
        for name, column in columns.items()
    }
    return Spans.joined([Spans(**whole)])


def pipelines(
    rows: Sequence[ForeignSpan], world_size: int | None, sizes: Mapping[str, int] | None
) -> Layout:
    """Returns the layout of ranks whose stages are seen in ``rows``.

    Without ``sizes``, ranks of the same stages are each other's replicas, and the world is as
    many pipelines as there are replicas: all ranks of a stage are neighbours in Megatron's
    order, some of them where tensor parallel ranks are, and none in the other. Ranks without a
    stage may stand anywhere. ``world_size`` is None where the files do not say it: then it is
    the least in which the ranks seen can stand so. Ranks that stand in no such way are paired
    as they come: the lowest of each stage are a pipeline, and so on.

    Raises InputError when ``sizes`` do not make that many ranks, or there are too many.
    """
    least = world_size or least_world(np.unique([row.rank for row in rows]))
    require_within("rank", least - 1)
    if sizes:
        return laid_out("megatron", world_size or _world_of(sizes, least), sizes)
    first: dict[int, int] = {}
    # A rank of several virtual stages (0 and 4) stands at the lowest of them.
    for row in rows:
        if row.stage >= 0:
            first[row.rank] = min(row.stage, first.get(row.rank, row.stage))
    depth = 1 + max(first.values(), default=least - 1)
    worlds = [least] if world_size is not None else _worlds(least, depth)
    # The last ranks may have no file, so larger worlds are tried as well, the least first.
    for world in worlds:
        if world % depth == 0 and (inner := _inner(first, depth, world // depth)) is not None:
            return _side_by_side(world, depth, inner)
    return _paired(first, depth, least)


def _world_of(sizes: Mapping[str, int], least: int) -> int:
    """Returns the least world of ``sizes`` that holds ``least`` ranks, where it can."""
    held = math.prod(sizes.get(axis, 1) for axis in ("tp", "cp", "pp", "dp"))
    return max(held, least) if "dp" in sizes else -(-least // held) * held


_WORLDS_TRIED = 64


def _worlds(least: int, depth: int) -> list[int]:
    """Returns the worlds that the files of some ranks may be of, the least first."""
    least = -(-least // depth) * depth
    return [*range(least, min(least + depth * _WORLDS_TRIED, TRACE_RANKS.most + 1), depth)]


def least_world(ranks: NDArray[np.integer[Any]]) -> int:
    """Returns the least world in which ``ranks``, ascending, can stand.

    Where only every so many-th rank has a file, the last of them is followed by its neighbours.

    >>> least_world(np.array([0, 2, 4])), least_world(np.array([0, 1, 5]))
    (6, 6)
    """
    stride = int(np.gcd.reduce(np.diff(ranks))) if len(ranks) > 1 else 1
    return -(-(1 + int(ranks[-1])) // stride) * stride


def _inner(first: Mapping[int, int], depth: int, replicas: int) -> int | None:
    """Returns how many ranks of a stage are neighbours, None where they stand in no such way."""
    rank, stage = np.array([*first], dtype=np.int64), np.array([*first.values()], dtype=np.int64)
    # Megatron's order comes first, in which all ranks of a stage are neighbours.
    together = [replicas, *(each for each in range(1, replicas) if replicas % each == 0)]
    return next((each for each in together if (rank // each % depth == stage).all()), None)


def _side_by_side(world_size: int, depth: int, inner: int) -> Layout:
    """Returns the layout of pipelines of ``depth``, ``inner`` neighbours of which share a stage."""
    replicas = world_size // depth
    if inner == replicas:
        return laid_out("megatron", world_size, {"pp": depth, "dp": replicas})
    found = {"dp": replicas // inner, "pp": depth} | ({"tp": inner} if inner > 1 else {})
    return frameworks.layout("custom", Sizes(world_size, options={"axes": axes_text(found)}))


def _paired(first: Mapping[int, int], depth: int, world_size: int) -> Layout:
    """Returns the layout whose k-th pipeline is the k-th rank of every stage.

    Where stages have ranks of different number, every rank is taken for a stage.
    """
    by_stage: dict[int, list[int]] = {}
    for rank, stage in first.items():
        by_stage.setdefault(stage, []).append(rank)
    # A stage that nobody ran, or one with more ranks than another: nothing pairs them.
    if len(by_stage) < depth or len({len(ranks) for ranks in by_stage.values()}) > 1:
        return laid_out("megatron", world_size, None)
    of_stage = [sorted(by_stage[stage]) for stage in range(depth)]
    plain = laid_out("megatron", len(first), {"pp": depth, "dp": len(first) // depth})
    return renumbered(plain, [rank for ranks in of_stage for rank in ranks])


def renumbered(layout: Layout, numbers: Sequence[int]) -> Layout:
    """Returns ``layout`` with its ranks 0, 1, 2 … called by ``numbers``; others may lie between.

    It is itself where the numbers are those. Raises InputError for a rank beyond all bounds.
    """
    if [*numbers] == [*range(layout.world_size)]:
        return layout
    world = least_world(np.unique(numbers))
    require_within("rank", world - 1)
    mesh = layout.mesh
    kinds = {dim: layout.kind(name).axes for dim, name in layout.dims.items()}
    # Axes take the names that sizes are given by (pp, dp), and those of size 1 are left out.
    dims = {axes[0]: dim for dim, axes in kinds.items() if len(axes) == 1}
    sizes = {axis: size for axis, size in mesh.sizes.items() if size > 1}
    axes = {dims.get(axis, axis): size for axis, size in sizes.items()} or {"dp": 1}
    ranks = " ".join(str(numbers[place]) for place in mesh.ranks.ravel().tolist())
    return frameworks.layout(
        "custom", Sizes(world, options={"axes": axes_text(axes), "ranks": ranks})
    )


def with_peers(rows: Sequence[ForeignSpan], layout: Layout) -> list[ForeignSpan]:
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


def foreign_trace(
    run: str,
    layout: Layout,
    machines: Mapping[str, Sequence[int]],
    spans: Spans,
    *,
    findings: Sequence[Finding] = (),
    waits_inside: bool = False,
    replay: Replay | None = None,
    resolution_ns: int | None = None,
) -> Trace:
    """Returns the Trace of another tool's spans, as ``trace_of_layout`` does.

    It says where they seem to be of two runs.
    """
    return trace_of_layout(
        run,
        layout,
        machines,
        spans,
        findings=(*findings, *filter(None, [two_runs(spans)])),
        waits_inside=waits_inside,
        replay=replay,
        resolution_ns=resolution_ns,
    )
