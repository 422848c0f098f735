"""Validation: everything that keeps a schedule from running, each with its reason.

A schedule can run when every stage runs forward and backward once for each microbatch, on the
rank that holds it, each after what it needs, and no ranks wait for one another in a circle.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from serried.action import Action, ActionKind
from serried.errors import InputError, listed
from serried.pipeline.dependencies import Positions, dependencies
from serried.pipeline.longest_path import Lists, longest_path
from serried.pipeline.packed import Numbers
from serried.pipeline.schedule import Schedule


def validate(schedule: Schedule) -> None:
    """Raises InputError with the first reason why the schedule cannot run."""
    for fault in faults(schedule):
        raise fault


def faults(schedule: Schedule) -> Iterator[InputError]:
    """Finds every reason why the schedule cannot run; the deadlock only if it is the only one.

    >>> from serried.action import Action
    >>> from serried.pipeline.action_lists import from_actions
    >>> ranks = (["0F0", "0B0", "0B0"], ["1F0", "1B0"])
    >>> schedule = from_actions("mine", [list(map(Action.parse, rank)) for rank in ranks])
    >>> [str(fault) for fault in faults(schedule)]
    ['mine runs 0B0 2 times; each action stands once']
    """
    where = Positions.of(schedule)
    found = False
    for kind_of_fault in (_misplaced, _duplicated, _missing, _before_input):
        for fault in kind_of_fault(schedule, where):
            found = True
            yield fault
    if not found:
        yield from _deadlocked(schedule, where)


def deadlock(schedule: Schedule, producer: Numbers, stuck: dict[int, int]) -> InputError:
    """Returns the error that tells who waits for whom around one circle of stuck ranks."""
    # Every stuck rank waits for an entry of another stuck rank, so going from rank to rank must
    # come back to one that was seen; what came before it only leads into the circle.
    waits_for = {rank: int(producer[entry]) for rank, entry in stuck.items()}
    rank, seen = next(iter(stuck)), []
    while rank not in seen:
        seen.append(rank)
        rank = int(schedule.rank[waits_for[rank]])
    circle = seen[seen.index(rank) :]
    steps = [
        f"rank {waiting}: {schedule.action(stuck[waiting])} ← {schedule.action(waits_for[waiting])}"
        for waiting in circle
    ]
    return InputError(
        "{name} deadlocks, each rank waiting for what the next has put behind its own: {circle}",
        name=schedule.name,
        circle=listed(steps, limit=len(steps)),
    )


def _misplaced(schedule: Schedule, where: Positions) -> Iterator[InputError]:
    holder = schedule.placement.rank_of[schedule.direction, schedule.stage]
    for entry in np.flatnonzero(holder != schedule.rank).tolist():
        yield InputError(
            "{name} runs {action} on rank {rank}, but stage {stage} is on rank {holder}",
            name=schedule.name,
            action=schedule.action(entry),
            rank=schedule.rank[entry],
            stage=schedule.stage[entry],
            holder=holder[entry],
        )


def _duplicated(schedule: Schedule, where: Positions) -> Iterator[InputError]:
    for kind, table in _tables(schedule, where):
        for cell in np.flatnonzero(table > 1).tolist():
            yield InputError(
                "{name} runs {action} {count} times; each action stands once",
                name=schedule.name,
                action=_action(schedule, kind, cell),
                count=table[cell],
            )


def _missing(schedule: Schedule, where: Positions) -> Iterator[InputError]:
    # A backward may be whole or in halves, each stage and microbatch for itself: a B is missing
    # only where no half stands either, a half only beside the other.
    counts = {kind: table > 0 for kind, table in _tables(schedule, where)}
    whole, inputs, weights = (counts[kind] for kind in (ActionKind.B, ActionKind.I, ActionKind.W))
    for kind, is_missing in (
        (ActionKind.F, ~counts[ActionKind.F]),
        (ActionKind.B, ~(whole | inputs | weights)),
        (ActionKind.I, weights & ~inputs & ~whole),
        (ActionKind.W, inputs & ~weights & ~whole),
    ):
        for cell in np.flatnonzero(is_missing).tolist():
            action = _action(schedule, kind, cell)
            yield InputError(
                "{name} lacks {action}, which rank {rank} must run",
                name=schedule.name,
                action=action,
                rank=schedule.placement.rank_of[max(action.direction, 0), action.stage],
            )
    for cell in np.flatnonzero(whole & (inputs | weights)).tolist():
        yield InputError(
            "{name} runs {action} and a half of it as well; a backward is whole or in two halves",
            name=schedule.name,
            action=_action(schedule, ActionKind.B, cell),
        )


def _before_input(schedule: Schedule, where: Positions) -> Iterator[InputError]:
    """Finds what stands before something that it needs of its own rank."""
    # On its own rank an entry needs its stage's earlier half (``own``), and, where the stage beside
    # is on the same rank, that one's (``needs``); either must stand before it in the list.
    entries = np.arange(len(schedule.code))
    needs = dependencies(schedule, where).producer
    own = np.full(len(entries), -1)
    for kinds, table in (
        ((ActionKind.B, ActionKind.I), where.forward),
        ((ActionKind.W,), where.backward),
    ):
        of_kinds = np.flatnonzero(np.isin(schedule.kind, kinds))
        own[of_kinds] = table[where.cell[of_kinds]]
    for source in (own, needs):
        beside = (source >= 0) & (schedule.rank[source] == schedule.rank)
        # The halves of a pair run at the same time, so neither can be the other's input.
        together = schedule.joined[source] & (source == entries - 1)
        for entry in np.flatnonzero(beside & ((source > entries) | together)).tolist():
            yield InputError(
                "{name} runs {action} on rank {rank} before its input, {source}, is there",
                name=schedule.name,
                action=schedule.action(entry),
                rank=schedule.rank[entry],
                source=schedule.action(source[entry]),
            )


def _deadlocked(schedule: Schedule, where: Positions) -> Iterator[InputError]:
    needs = dependencies(schedule, where).producer
    # As in a simulation, whoever needs the forward of a pair waits for the backward right behind
    # it. Whether lists deadlock does not depend on times, so all are 0.
    needs = needs + (schedule.joined[needs] & (needs >= 0))
    nothing = np.zeros(len(needs), np.int64)
    ends = longest_path(Lists(schedule.first, needs, nothing, nothing))
    if ends.stuck:
        yield deadlock(schedule, needs, ends.stuck)


def _tables(schedule: Schedule, where: Positions) -> Iterator[tuple[ActionKind, NDArray[np.int64]]]:
    """Returns how often each kind of work occurs for every stage and microbatch."""
    for kind in (ActionKind.F, ActionKind.B, ActionKind.I, ActionKind.W):
        cells = where.cell[schedule.kind == kind]
        yield kind, np.bincount(cells, minlength=len(where.forward))


def _action(schedule: Schedule, kind: ActionKind, cell: int) -> Action:
    placement, microbatches = schedule.placement, schedule.microbatches_each_way
    row, microbatch = divmod(int(cell), microbatches)
    direction, stage = divmod(row, placement.num_stages)
    return Action(kind, stage, microbatch, direction if placement.num_directions > 1 else -1)
