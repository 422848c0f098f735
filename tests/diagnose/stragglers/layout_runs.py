"""Runs of tp x pp x dp ranks under any schedule, whose every rank takes its own time; as a Trace.

Ranks of a tensor parallel group meet after each layer, pipelines hand on by messages, data parallel
ranks reduce at the end of a step, all meet in the norm of gradients, then each runs its optimizer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from serried import frameworks
from serried.action import ActionKind, Spans
from serried.frameworks import Sizes
from serried.pipeline import Costs, Links, Request, Schedule, generate, planned_spans, simulate
from serried.pipeline.spans import planned_messages
from serried.trace.model.record import TracedJob
from serried.trace.model.span_groups import SpanGroup
from serried.trace.model.trace import Host, Trace

MS = 1_000_000
LAYERS = 2
TAKES = {ActionKind.F: 4 * MS, ActionKind.B: 8 * MS, ActionKind.I: 4 * MS, ActionKind.W: 4 * MS}
Factor = Callable[[int, int], float]
"""By what factor a rank computes longer, by step and rank."""


@dataclass(frozen=True)
class Sized:
    """Says how many ranks there are of each kind, and in what order they work."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    schedule: str = "1f1b"
    microbatches: int = 4

    @property
    def world(self) -> int:
        return self.tp * self.pp * self.dp


def layout_run(
    sized: Sized,
    seed: int,
    *,
    slower: Factor = lambda step, rank: 1.0,
    noise: float | Callable[[int], float] = 0.02,
    steps: int = 12,
    with_messages: bool = True,
) -> Trace:
    """Returns a run; ``noise`` is by what part of it a layer varies, perhaps by rank."""
    draws = np.random.default_rng(seed)
    schedule = generate(sized.schedule, Request(sized.pp, sized.microbatches))
    by_rank = np.array([noise(r) if callable(noise) else noise for r in range(sized.world)])
    parts, begin = list[Spans](), 0
    for step in range(steps):
        factor = np.array([slower(step, rank) for rank in range(sized.world)])
        spans = _step(sized, schedule, draws, factor, by_rank, with_messages)
        parts.append(replace(spans.shifted(begin), step=spans.step * 0 + np.int32(step)))
        begin += int(spans.end_ns.max()) + MS // 3
    return _trace(sized, Spans.joined(parts))


def _step(
    sized: Sized,
    schedule: Schedule,
    draws: np.random.Generator,
    factor: np.ndarray,
    noise: np.ndarray,
    with_messages: bool,
) -> Spans:
    stages = int(schedule.stage.max()) + 1
    parts, ends = list[Spans](), np.zeros((sized.pp, sized.dp))
    for replica in range(sized.dp):
        ranks = np.arange(sized.world).reshape(sized.pp, sized.dp, sized.tp)[:, replica]
        holder = np.zeros(stages, dtype=int)
        holder[schedule.stage] = schedule.rank
        # Own times by kind, stage, microbatch, tensor parallel rank and layer.
        scales, scatter = (each[ranks[holder]][:, None, :, None] for each in (factor, noise))
        own = dict[ActionKind, np.ndarray]()
        for kind, takes in TAKES.items():
            varied = draws.normal(size=(stages, sized.microbatches, sized.tp, LAYERS))
            usual = takes / LAYERS * sized.pp / stages
            own[kind] = (usual * scales * np.maximum(0.1, 1 + scatter * varied)).astype(np.int64)
        whole = {kind: each.max(axis=2).sum(axis=2).tolist() for kind, each in own.items()}
        costs = Costs(
            forward=whole[ActionKind.F],
            backward=whole[ActionKind.B],
            input_grad=whole[ActionKind.I],
            weight_grad=whole[ActionKind.W],
            links=Links(MS // 10),
        )
        planned = simulate(schedule, costs)
        spans = planned_spans(planned, unit_ns=1)
        for place in range(sized.tp):
            of = ranks[:, place]
            parts.append(replace(spans, rank=of[spans.rank].astype(np.int32)))
            if sized.tp > 1:
                parts.append(_exchanges(spans, own, of, place, replica, sized))
            if with_messages and sized.pp > 1:
                sent = planned_messages(planned, unit_ns=1)
                mine, theirs = of[sent.rank].astype(np.int32), of[sent.peer].astype(np.int32)
                parts.append(replace(sent, rank=mine, peer=theirs))
        for stage in range(sized.pp):
            ends[stage, replica] = spans.end_ns[spans.rank == stage].max()
    return Spans.joined([*parts, *_tail(sized, ends, draws, noise)])


def _exchanges(
    spans: Spans,
    own: dict[ActionKind, np.ndarray],
    ranks: np.ndarray,
    place: int,
    replica: int,
    sized: Sized,
) -> Spans:
    rows = list[tuple[int, int, int, int, int, int, int]]()
    for row in range(len(spans)):
        kind, stage, at = (int(c[row]) for c in (spans.kind, spans.stage, spans.microbatch))
        now = int(spans.start_ns[row])
        for layer in range(LAYERS):
            times = own[ActionKind(kind)][stage, at, :, layer]
            group = int(spans.rank[row]) * sized.dp + replica
            rank = int(ranks[spans.rank[row]])
            end = now + int(times.max())
            rows.append((rank, stage, at, now + int(times[place]), end, group, 0))
            now = end
    return _rows(rows, ActionKind.ALL_REDUCE)


def _tail(
    sized: Sized, ends: np.ndarray, draws: np.random.Generator, noise: np.ndarray
) -> list[Spans]:
    num_tp, found = sized.pp * sized.dp, list[Spans]()
    done = ends.copy()
    if sized.dp > 1:
        done[:] = ends.max(axis=1, keepdims=True) + MS // 5
    reductions, norms, optimizers = [], [], []
    everyone = num_tp + sized.pp * sized.tp
    for rank in range(sized.world):
        stage, rest = divmod(rank, sized.dp * sized.tp)
        replica, place = divmod(rest, sized.tp)
        a, b = round(ends[stage, replica]), round(done[stage, replica])
        reductions.append((rank, stage, -1, a, b, num_tp + stage * sized.tp + place, 0))
        c = round(done.max()) + MS // 20
        norms.append((rank, -1, -1, b, c, everyone, 0))
        took = 2 * MS * max(0.1, 1 + noise[rank] * draws.normal())
        optimizers.append((rank, -1, -1, c, c + round(took), -1, 0))
    if sized.dp > 1:
        found.append(_rows(reductions, ActionKind.REDUCE_GRAD))
    if sized.world > 1:
        found.append(_rows(norms, ActionKind.ALL_REDUCE))
    return [*found, _rows(optimizers, ActionKind.OPTIMIZER)]


def _rows(rows: list[tuple[int, int, int, int, int, int, int]], kind: ActionKind) -> Spans:
    rank, stage, microbatch, start, end, group, step = np.array(rows, dtype=np.int64).T
    return Spans(
        rank=rank.astype(np.int32),
        stage=stage.astype(np.int32),
        kind=np.full(len(rows), int(kind), dtype=np.int32),
        microbatch=microbatch.astype(np.int32),
        step=step.astype(np.int32),
        peer=np.full(len(rows), -1, dtype=np.int32),
        start_ns=start,
        end_ns=end,
        group=group.astype(np.int32),
    )


def _trace(sized: Sized, spans: Spans) -> Trace:
    ranks = np.arange(sized.world).reshape(sized.pp, sized.dp, sized.tp)
    lists = [ranks[p, d] for p in range(sized.pp) for d in range(sized.dp)]
    lists += [ranks[p, :, t] for p in range(sized.pp) for t in range(sized.tp)]
    kinds = [ActionKind.ALL_REDUCE] * len(lists)
    everyone = tuple(range(sized.world))
    groups = [SpanGroup(k, tuple(each.tolist())) for k, each in zip(kinds, lists, strict=True)]
    groups.append(SpanGroup(ActionKind.ALL_REDUCE, everyone))
    layout = frameworks.layout("megatron", Sizes(sized.world, tp=sized.tp, pp=sized.pp))
    sizes = {"tp": sized.tp, "cp": 1, "pp": sized.pp, "dp": sized.dp, "ep": 1}
    job = TracedJob(
        "megatron", sized.world, sizes, layout.order, sized.schedule, sized.microbatches
    )
    return Trace(
        run="simulated",
        job=job,
        spans=spans,
        base_ns=0,
        hosts=(Host("a", everyone, 0),),
        ranks=everyone,
        torn=(),
        missing=(),
        warnings=(),
        layout=layout,
        groups=tuple(groups),
    )
