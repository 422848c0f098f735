"""Any run: rows of a small pipeline job as any tool might write them, drawn by hypothesis.

Ranks have gaps and rows stand in any order; some steps lack spans, some spans lack a stage, a
microbatch, a step or a peer, and some stand twice or take no time at all.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from hypothesis import strategies as st

from serried.action import ActionKind
from serried.trace.formats.foreign import ForeignSpan

F, B = ActionKind.F, ActionKind.B


@st.composite
def any_rows(draw: st.DrawFn) -> list[ForeignSpan]:
    """Draws the rows of a run, one step of a pipeline in sequence after another."""
    seed = draw(st.integers(0, 2**32 - 1))
    pp, dp, m = (draw(st.integers(1, most)) for most in (3, 3, 4))
    stride, offset = draw(st.sampled_from([1, 1, 2, 3, 4])), draw(st.sampled_from([0, 0, 1, 5]))
    rng = random.Random(seed)
    ranks = [offset + stride * each for each in range(pp * dp)]
    rows = [
        row
        for place, rank in enumerate(ranks)
        for row in _of_rank(rng, rank, place // dp, pp, m, num_steps=draw(st.integers(1, 3)))
    ]
    lost = draw(st.sampled_from([0.0, 0.0, 0.05]))
    rows = [row for row in rows if rng.random() >= lost] or rows
    rng.shuffle(rows)
    return rows


def _of_rank(
    rng: random.Random, rank: int, stage: int, pp: int, m: int, *, num_steps: int
) -> Iterator[ForeignSpan]:
    for step in range(num_steps):
        at = step * 1_000_000 + rng.randrange(50)
        for kind, microbatch in [
            *((F, each) for each in range(m)),
            *((B, each) for each in range(m)),
        ]:
            way = 1 if kind == F else -1
            if 0 <= stage - way < pp and rng.random() < 0.7:
                kinds = (ActionKind.RECV_F, ActionKind.RECV_B)
                yield ForeignSpan(
                    rank, stage, kinds[kind == B], microbatch, step, at, at + rng.randrange(9)
                )
            at += rng.randrange(3) * rng.randrange(20)
            took = rng.choice((0, 1, 10, 100))
            yield ForeignSpan(rank, stage, kind, microbatch, step, at, at + took)
            at += took
        if rng.random() < 0.8:
            yield ForeignSpan(rank, stage, ActionKind.REDUCE_GRAD, -1, step, at, at + 5)
            yield ForeignSpan(rank, -1, ActionKind.OPTIMIZER, -1, step, at + 5, at + 9)
        if rng.random() < 0.2:
            yield ForeignSpan(rank, -1, ActionKind.SPAN, -1, -1, at, at + 30)
