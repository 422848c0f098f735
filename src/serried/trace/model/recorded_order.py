"""Recorded order: what every place of a pipeline computed, one after another, in one step.

    rank 0   0F0 0F1 0B0 0B1        place 0     kinds, stages and microbatches, by start;
    rank 2   1F0 1B0 1F1 1B1        place 1     an overlapped pair is a forward, then a backward

All pipelines of a job run one schedule, so the first one of the first complete step stands for
them; where ranks differ from it, that is for ``compare`` and ``recognition`` to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE, ActionKind, Spans
from serried.mesh import Layout
from serried.pipeline.packed import (
    MAX_MICROBATCHES,
    MAX_STAGES,
    Codes,
    microbatch_of,
    stage_of,
    work,
)

Ranks = NDArray[np.int64]

_PLAIN = sorted(COMPUTE - {ActionKind.OVERLAP_F_B})


@dataclass(frozen=True, eq=False)
class RecordedOrder:
    """Holds the actions of each place of one pipeline, packed as ``schedule.packed`` does."""

    ranks: Ranks
    """The global rank at each place."""
    codes: tuple[Codes, ...]

    @property
    def num_actions(self) -> int:
        """How many actions all places did."""
        return sum(map(len, self.codes))

    @property
    def num_stages(self) -> int:
        """How many stages the actions name."""
        return 1 + max(int(stage_of(code).max()) for code in self.codes)

    @property
    def num_microbatches(self) -> int:
        """How many microbatches the actions name."""
        return 1 + max(int(microbatch_of(code).max()) for code in self.codes)


def whole_pipeline(layout: Layout | None, world_size: int, ranks: Sequence[int]) -> Ranks:
    """Returns the first pipeline whose ranks are all among ``ranks``, else the first of all."""
    table = pipeline_ranks(layout, world_size)
    return np.asarray(table[int(np.isin(table, ranks).all(axis=1).argmax())])


def pipeline_ranks(layout: Layout | None, world_size: int) -> Ranks:
    """Returns the ranks of every pipeline, a row each, ordered by their place in it.

    Without a layout, or with one stage, every rank is a pipeline of its own.
    """
    if layout is None or layout.sizes.get("pp", 1) == 1:
        return np.arange(world_size)[:, None]
    return np.array(layout.groups(layout.kind_of("pp")).lists())


def recorded_order(spans: Spans, step: int, ranks: Ranks) -> RecordedOrder | None:
    """Returns the order of one ``step`` on the pipeline ``ranks``.

    None where one of them computed nothing, or where pairs were recorded under the numbers of
    their forwards alone, so that the backwards' are not known.
    """
    mine = spans.where((spans.step == step) & np.isin(spans.rank, ranks))
    if (mine.kind == ActionKind.OVERLAP_F_B).any():
        return None
    # A code has room for so many stages and microbatches; what lies beyond has none.
    fits = (mine.stage >= 0) & (mine.stage < MAX_STAGES)
    fits &= (mine.microbatch >= 0) & (mine.microbatch.astype(np.int64) < MAX_MICROBATCHES)
    mine = mine.where(np.isin(mine.kind, _PLAIN) & fits)
    codes = tuple(_of_rank(mine.where(mine.rank == rank)) for rank in ranks.tolist())
    return RecordedOrder(ranks, codes) if all(map(len, codes)) else None


def _of_rank(spans: Spans) -> Codes:
    order = np.lexsort((spans.kind, spans.start_ns))
    kind, stage, microbatch = (
        column[order].astype(np.int64) for column in (spans.kind, spans.stage, spans.microbatch)
    )
    codes = kind + work(ActionKind.F, stage, microbatch) - int(ActionKind.F)
    # A job that was recorded in pieces (Paddle's chunks) is one action, where it began.
    _, first = np.unique(codes, return_index=True)
    return np.asarray(codes[np.sort(first)], dtype=np.int64)
