"""The collectives of a planned step beside those that a rank recorded, in order and bytes.

planned                                recorded
all-gather      shard      32,832 B    all-gather      0 1    32,832 B
reduce-scatter  shard      13,440 B    reduce-scatter  0 1    13,440 B
reduce-scatter  shard      13,440 B    –                                   they differ here
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np

from serried.action import ActionKind
from serried.errors import InputError, listed
from serried.finding import Sentence, said
from serried.plan.sharded_step import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, Moved
from serried.plan.step_plan import StepPlan, read_step_plan
from serried.trace.merge.files import rank_files
from serried.trace.model.record import RankRecord, file_name, read_rank_record
from serried.trace.model.traffic import CollectiveMove

NAMES = {
    ActionKind.ALL_GATHER: ALL_GATHER,
    ActionKind.REDUCE_SCATTER: REDUCE_SCATTER,
    ActionKind.ALL_REDUCE: ALL_REDUCE,
}
"""Kinds of spans by the names of collectives."""

Members = Mapping[str, tuple[int, ...]]
"""The ranks of one rank's groups, by the kinds that the plan names."""


@dataclass(frozen=True)
class PlannedBeside:
    """Holds one place of a step: the collective that was planned, and the one that was recorded."""

    planned: Moved | None
    recorded: CollectiveMove | None
    difference: Sentence | None
    """Says how they differ; None where they do not."""


@dataclass(frozen=True)
class RankStep:
    """Holds one step of one rank, the collectives planned beside those recorded."""

    rank: int
    step: int
    rows: tuple[PlannedBeside, ...]

    @property
    def difference(self) -> Sentence | None:
        """Says how plan and record differ first; None where they agree in order and bytes."""
        return first_difference(self.rows)


def rank_steps(plan: StepPlan, record: RankRecord) -> list[RankStep]:
    """Returns every step that a rank finished beside its plan: up to its optimizer's step."""
    rank, spans = record.header.rank, record.spans
    planned, members = plan.moves_of(rank), plan.members_of(rank)
    steps = np.unique(spans.step[spans.kind == ActionKind.OPTIMIZER]).tolist()
    return [
        RankStep(rank, step, tuple(beside(planned, weight_moves(record, step, members), members)))
        for step in steps
    ]


def read_rank_steps(folder: Path, rank: int | None = None) -> tuple[StepPlan, list[RankStep]]:
    """Returns the plan in a folder of records and every step of its ranks, or of one, beside it.

    Raises InputError for a folder without records or plan, a rank that recorded nothing there, and
    as the reader of records does.
    """
    wanted = file_name(rank) if rank is not None else None
    names = [each.name for each in rank_files(folder) if wanted in (None, each.name)]
    if not names:
        raise InputError("rank {rank} recorded nothing in {folder}", rank=rank, folder=folder)
    plan = read_step_plan(folder)
    records = (read_rank_record(folder / name) for name in names)
    return plan, [step for record in records for step in rank_steps(plan, record)]


def weight_moves(record: RankRecord, step: int, members: Members) -> list[CollectiveMove]:
    """Returns what a rank recorded in ``step`` of gathering weights and reducing gradients.

    These are its collectives within the groups of ``members``, up to the optimizer's step.
    """
    spans = record.spans
    in_step = spans.step == step
    ends = spans.start_ns[in_step & (spans.kind == ActionKind.OPTIMIZER)]
    until = int(ends.min()) if len(ends) else np.iinfo(np.int64).max
    groups = {*members.values()}
    return [
        move
        for move in record.moves
        if in_step[move.span] and spans.start_ns[move.span] < until and move.ranks in groups
    ]


def beside(
    planned: Sequence[Moved], recorded: Sequence[CollectiveMove], members: Members
) -> list[PlannedBeside]:
    """Returns each planned collective beside the recorded one in its place.

    Collectives of one rank, for which nothing travels, are left out of the plan.
    """
    travelling = [each for each in planned if each.ranks > 1]
    return [
        PlannedBeside(one, other, _difference(place, one, other, members))
        for place, (one, other) in enumerate(zip_longest(travelling, recorded))
    ]


def first_difference(rows: Sequence[PlannedBeside]) -> Sentence | None:
    """Returns how plan and record differ first; None where they agree in order and bytes."""
    return next((row.difference for row in rows if row.difference), None)


def _difference(
    place: int, planned: Moved | None, recorded: CollectiveMove | None, members: Members
) -> Sentence | None:
    if planned is None and recorded is not None:
        return said(
            "collective {place} is not planned: the rank recorded {recorded}",
            place=place,
            recorded=_recorded(recorded),
        )
    if planned is not None and recorded is None:
        return said(
            "collective {place} is missing: {planned} was planned",
            place=place,
            planned=_planned(planned, members),
        )
    assert planned is not None and recorded is not None
    if _planned(planned, members) == _recorded(recorded):
        return None
    return said(
        "collective {place} differs: {planned} was planned, and the rank recorded {recorded}",
        place=place,
        planned=_planned(planned, members),
        recorded=_recorded(recorded),
    )


def _planned(moved: Moved, members: Members) -> str:
    ranks = members[moved.over[0]] if len(moved.over) == 1 else ()
    return _told(moved.collective, moved.size_bytes, ranks)


def _recorded(move: CollectiveMove) -> str:
    return _told(NAMES.get(move.kind, move.kind.name.lower()), move.size_bytes, move.ranks)


def _told(name: str, size_bytes: int, ranks: tuple[int, ...]) -> str:
    return f"{name} {size_bytes:,} B [{listed(ranks, limit=16)}]"
