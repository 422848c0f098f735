"""Runs without a pipeline in which all ranks meet: data or tensor parallel, or sharded, alone.

rank 0   [  F  .w][  B      .w]OPT          dp     all meet at the end of the backward
rank 1   [ F ...w][  B  .....w]OPT          tp     all meet after every layer, both ways
         every rank ends each meeting       fsdp   all meet before every layer, and after it
         with the last one                         in the backward
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import numpy as np

from serried.action import ActionKind, Spans
from serried.trace.model.record import TracedJob
from serried.trace.model.trace import Host, Trace

MS = 1_000_000
LAYERS = 4
Factor = Callable[[int, int], float]
"""By what factor a rank computes longer, by step and rank."""


class Meets(Enum):
    """Names what is all of a job's parallelism."""

    DP = "dp"
    TP = "tp"
    FSDP = "fsdp"


_BEFORE = {Meets.FSDP: ActionKind.ALL_GATHER}
_AFTER_F = {Meets.TP: ActionKind.ALL_REDUCE}
_AFTER_B = {Meets.TP: ActionKind.ALL_REDUCE, Meets.FSDP: ActionKind.REDUCE_SCATTER}


def meeting_run(
    meets: Meets,
    slower: Factor,
    seed: int,
    *,
    world: int = 4,
    steps: int = 24,
    noise: float = 0.02,
    pause: Callable[[int], float] = lambda _: 0.0,
) -> Trace:
    """Returns a run of ``world`` ranks; ``pause`` is what all do before a step, in milliseconds."""
    draws = np.random.default_rng(seed)
    rows: list[tuple[int, int, int, int, int, int]] = []
    free = np.zeros(world)

    def add(kind: ActionKind, begin: np.ndarray, end: np.ndarray, step: int) -> None:
        for rank in range(world):
            at = (round(begin[rank] * MS), round(end[rank] * MS))
            rows.append((rank, step, int(kind), *at, 0 if kind is not ActionKind.OPTIMIZER else -1))

    def meet(kind: ActionKind | None, ready: np.ndarray, step: int) -> np.ndarray:
        if kind is None:
            return ready
        end = np.full(world, ready.max() + 0.5)
        add(kind, ready, end, step)
        return end

    for step in range(steps):
        factor = np.array([slower(step, rank) for rank in range(world)])
        now = free + 1.0 + pause(step)
        for kind, length, after in (
            (ActionKind.F, 10.0, _AFTER_F.get(meets)),
            (ActionKind.B, 20.0, _AFTER_B.get(meets)),
        ):
            begun = now
            for _ in range(LAYERS):
                now = meet(_BEFORE.get(meets), now, step)
                took = length / LAYERS * factor * (1 + noise * draws.normal(size=world))
                now = meet(after, now + took, step)
            if kind is ActionKind.B and meets is Meets.DP:
                now = meet(ActionKind.ALL_REDUCE, now, step)
                add(ActionKind.REDUCE_GRAD, begun, now, step)
            add(kind, begun, now, step)
        free = now + 2.0 * (1 + noise * draws.normal(size=world))
        add(ActionKind.OPTIMIZER, now, free, step)
    return _trace(meets, world, rows)


def _trace(meets: Meets, world: int, rows: list[tuple[int, int, int, int, int, int]]) -> Trace:
    rank, step, kind, start, end, stage = np.array(rows, dtype=np.int64).T
    none = np.full(len(rows), -1, dtype=np.int32)
    computes = np.isin(kind, [ActionKind.F, ActionKind.B])
    spans = Spans(
        rank=rank.astype(np.int32),
        stage=stage.astype(np.int32),
        kind=kind.astype(np.int32),
        microbatch=np.where(computes, 0, none).astype(np.int32),
        step=step.astype(np.int32),
        peer=none,
        start_ns=start,
        end_ns=end,
    )
    axis = "tp" if meets is Meets.TP else "dp"
    sizes = {"tp": 1, "cp": 1, "pp": 1, "dp": 1, "ep": 1, axis: world}
    training = {"zero": "3"} if meets is Meets.FSDP else {}
    everyone = tuple(range(world))
    return Trace(
        run="simulated",
        job=TracedJob("megatron", world, sizes, "tp-cp-ep-dp-pp", "unknown", 1, training=training),
        spans=spans,
        base_ns=0,
        hosts=(Host("a", everyone, 0),),
        ranks=everyone,
        torn=(),
        missing=(),
        warnings=(),
        layout=None,
    )
