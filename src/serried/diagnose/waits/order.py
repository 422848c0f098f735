"""Who left the common order: the collectives that ranks issue, compared with peers and history.

Ranks of one role run one program, so they issue the same operations in the same order, each as
far as it has come. Where two orders part, the few differ from the many; where as many go one way
as the other, the order of the steps before tells which way is the usual one:

    rank 0   tp tp dp mp  tp tp dp mp  tp tp dp
    rank 1   tp tp dp mp  tp tp dp mp  tp tp mp      parts here; before, dp followed tp tp

>>> usual_next(["tp", "tp", "dp", "mp", "tp", "tp"])
'dp'
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from serried.diagnose.job_state.stages import stages_of
from serried.diagnose.job_state.state import MESSAGES, JobState, RankOperation, RankState
from serried.diagnose.waits.offsets import offset

MOST_CONTEXT = 64
"""How many operations before a place are compared with the past to tell what is usual there."""

Step = tuple[str, str]
"""An operation as peers compare it: the kind of its group, or how far off the peer of a message
is, and what it does."""

_Symbol = TypeVar("_Symbol", bound=Hashable)


class HowStrayed(Enum):
    """Says how a rank left the common order."""

    SKIPPED = "skipped"
    """It left out an operation and went on with the next."""
    SWAPPED = "swapped"
    """It took two operations in the opposite order."""
    EXTRA = "extra"
    """It issued an operation that its peers do not."""
    OTHER_OPERATION = "other_operation"
    """It issued another operation in the same group."""
    OTHER_GROUP = "other_group"
    """It issued the operation in another group."""


@dataclass(frozen=True)
class Deviation:
    """Says that a rank left the common order, where, and how that is known."""

    rank: int
    departure: HowStrayed
    operation: RankOperation
    """What it issued instead."""
    expected: Step
    """What its peers, or its own steps before, issue there."""
    by_peers: bool
    """Whether more of its peers go the other way; else the steps before tell."""
    position: int
    is_last: bool
    """Whether it issued nothing after it, so that it may still do what it has not done."""


def deviations(state: JobState) -> tuple[Deviation, ...]:
    """Returns the ranks that left the order of their peers, each with its first departure."""
    found: list[Deviation] = []
    for orders in _by_role(state).values():
        if len(orders) > 1:
            found += _departures(orders)
        else:
            found += from_own_steps(orders)
    return tuple(sorted(found, key=lambda each: each.rank))


def from_own_steps(orders: Mapping[int, Order]) -> Iterator[Deviation]:
    """Yields where a rank without equals left the order of its own steps.

    A step that is like no other departs from what most others are like. The first, which makes
    connections and groups, is compared with nothing.
    """
    for rank, order in orders.items():
        steps: dict[int, list[tuple[Step, RankOperation]]] = defaultdict(list)
        for step, operation in order:
            if operation.step is not None:
                steps[operation.step].append((step, operation))
        every = list(steps.values())
        signs = [tuple(step for step, _ in here) for here in every]
        for number in range(1, len(every)):
            if (found := _departed(rank, every, signs, number)) is not None:
                yield found
                break


def _departed(
    rank: int,
    steps: Sequence[Sequence[tuple[Step, RankOperation]]],
    signs: Sequence[tuple[Step, ...]],
    number: int,
) -> Deviation | None:
    mine, is_last = signs[number], number == len(signs) - 1
    others = [each for place, each in enumerate(signs[:-1]) if place != number]
    if any(mine == (other[: len(mine)] if is_last else other) for other in others):
        return None
    usual = Counter(others).most_common(1)[0][0]
    at = next(n for n in range(len(mine) + 1) if mine[n : n + 1] != usual[n : n + 1])
    if at == len(usual) or (at == len(mine) and is_last):
        return None
    if at == len(mine):  # it went on to the next step without what ends the others
        after = steps[number + 1]
        is_end = number + 2 == len(steps) and len(after) == 1
        return Deviation(rank, HowStrayed.SKIPPED, after[0][1], usual[at], False, at, is_end)
    if not is_last and signs[-1][: at + 1] == mine[: at + 1]:  # the step that stands does so too
        return None
    departure = _departure(mine[at:], usual[at:], usual[:at])
    is_end = is_last and at + 1 == len(mine)
    return Deviation(rank, departure, steps[number][at][1], usual[at], False, at, is_end)


def usual_next(before: Sequence[_Symbol]) -> _Symbol | None:
    """Returns what followed where the past looked most like the present; None where it never did.

    Alike is what has the longest common run up to it. A run that reaches the beginning is not
    contradicted there, and goes before one as long that ends at a difference. So does a run of one
    and the same operation as often as now before one of it more often: three calls are not like
    the last three of four.

    >>> usual_next("begin tp tp tp tp mp loss tp tp tp".split())
    'tp'
    """
    best, answer = 0.0, None
    for end in range(len(before) - 1, 0, -1):
        run = 0
        while run < min(end, MOST_CONTEXT) and before[end - 1 - run] == before[-1 - run]:
            run += 1
        is_as_often = 0 < run < MOST_CONTEXT and (
            run == end or (len(set(before[-run:])) == 1 and before[end - 1 - run] != before[-1])
        )
        likeness = run + 0.5 if is_as_often else run
        if likeness > best:
            best, answer = likeness, before[end]
        if best >= MOST_CONTEXT:
            break
    return answer


def is_unusual(state: JobState, rank: RankState) -> bool | None:
    """Tells whether what a rank waits in is not what its steps before had there.

    None where its past is not known or too short to tell.
    """
    order = _order(state, rank)
    doing = rank.doing
    if doing is None or not _is_compared(state, doing) or len(order) < 2:
        return None
    steps = [step for step, _ in order]
    if order[-1][1] is not doing and order[-1][0] != _step(state, rank.rank, doing):
        steps.append(_step(state, rank.rank, doing))
    usual = usual_next(steps[:-1])
    return None if usual is None else usual != steps[-1]


Order = tuple[tuple[Step, RankOperation], ...]
"""What a rank issued, each with how its peers compare it."""


def _by_role(state: JobState) -> dict[tuple[frozenset[str], int], dict[int, Order]]:
    """Returns the orders of ranks, by the kinds of groups that they meet others in, and stage."""
    roles: dict[tuple[frozenset[str], int], dict[int, Order]] = defaultdict(dict)
    stages = stages_of(state)
    for each in state.ranks:
        if order := _order(state, each):
            kinds = {group.kind for group in state.groups_of[each.rank] if len(group.ranks) > 1}
            roles[frozenset(kinds), stages.get(each.rank, 0)][each.rank] = order
    return {role: _aligned(orders) for role, orders in roles.items()}


def _order(state: JobState, rank: RankState) -> Order:
    met: dict[tuple[str | None, str, int | None], Step | None] = {}
    found: list[tuple[Step, RankOperation]] = []
    for each in rank.issued:  # of thousands that a rank issued few are of different kinds
        key = each.group, each.op, each.peer
        if key not in met:
            met[key] = _step(state, rank.rank, each) if _is_compared(state, each) else None
        if (step := met[key]) is not None:
            found.append((step, each))
    return tuple(found)


def _is_compared(state: JobState, operation: RankOperation) -> bool:
    if operation.peer is not None:
        return True
    group = state.group_named.get(operation.group or "")
    return group is not None and len(group.ranks) > 1


def _step(state: JobState, rank: int, operation: RankOperation) -> Step:
    if operation.peer is not None:
        return offset(state, rank, operation), operation.op
    return state.group_named[operation.group or ""].kind, operation.op


def _aligned(orders: Mapping[int, Order]) -> dict[int, Order]:
    """Cuts the beginnings off that some ranks' rings no longer hold.

    All begin at the same place of the kind of group that most operations are in.
    """
    first = {
        rank: {kind: op.seq for (kind, _), op in reversed(order)} for rank, order in orders.items()
    }
    late = {rank for rank, seqs in first.items() if any(seq and seq > 1 for seq in seqs.values())}
    if not late:
        return dict(orders)
    common = Counter(step[0] for order in orders.values() for step, _ in order)
    kind = common.most_common(1)[0][0]
    start = max(seqs.get(kind) or 0 for seqs in first.values())
    found = {}
    for rank, order in orders.items():
        places = [i for i, ((k, _), op) in enumerate(order) if k == kind and op.seq == start]
        found[rank] = order[places[0] :] if places else ()
    return found


def _departures(orders: Mapping[int, Order]) -> Iterator[Deviation]:
    """Yields who leaves the common order, walking along all orders at once."""
    alike: dict[tuple[Step, ...], list[int]] = defaultdict(list)
    for rank, order in orders.items():
        alike[tuple(step for step, _ in order)].append(rank)
    active = dict(alike)
    position = 0
    while len(active) > 1:
        ways: dict[Step, int] = Counter()
        for steps, ranks in active.items():
            if len(steps) > position:
                ways[steps[position]] += len(ranks)
        if not ways:
            return
        if len(ways) > 1:
            before = next(steps for steps in active if len(steps) > position)[:position]
            usual, by_peers = _usual(ways, before)
            if usual is None:
                return
            normal = max((s for s in active if s[position : position + 1] == (usual,)), key=len)
            for steps in [s for s in active if len(s) > position and s[position] != usual]:
                is_last = len(steps) == position + 1
                for rank in active.pop(steps):
                    if _has_own_way(steps, position, usual):
                        continue
                    operation = orders[rank][position][1]
                    departure = _departure(steps[position:], normal[position:], before)
                    yield Deviation(rank, departure, operation, usual, by_peers, position, is_last)
        active = {steps: ranks for steps, ranks in active.items() if len(steps) > position}
        position += 1


def _has_own_way(steps: Sequence[Step], position: int, usual: Step) -> bool:
    """Tells whether a rank never sends or receives as its peers do there, but does so repeatedly.

    The ends of a row have one neighbour, where all others have two.
    """
    return usual[1] in MESSAGES and usual not in steps and steps.count(steps[position]) > 1


def _usual(ways: Mapping[Step, int], before: Sequence[Step]) -> tuple[Step | None, bool]:
    """Returns the usual way where several part, and whether that is what most ranks take."""
    most, second = (Counter(ways).most_common(2))[:2]
    if most[1] > second[1] and most[1] > 1:
        return most[0], True
    usual = usual_next(before)
    return (usual, False) if usual in ways else (None, False)


def _departure(
    found: Sequence[Step], expected: Sequence[Step], before: Sequence[Step] = ()
) -> HowStrayed:
    """Returns how one order leaves another at its first operation.

    Where the other has not gone on yet, what ``before`` lets expect stands for its next one.

    >>> _departure([("mp", "ar"), ("dp", "ar")], [("dp", "ar"), ("mp", "ar")]).value
    'swapped'
    >>> _departure([("mp", "ar")], [("dp", "ar"), ("mp", "ar")]).value
    'skipped'
    """
    if len(expected) == 1 and (usual := usual_next((*before, expected[0]))) is not None:
        expected = (expected[0], usual)
    if found[:1] == expected[1:2]:
        is_swap = len(found) > 1 and found[1] == expected[0]
        return HowStrayed.SWAPPED if is_swap else HowStrayed.SKIPPED
    if len(found) > 1 and found[1] == expected[0]:
        return HowStrayed.EXTRA
    if found[0][0] == expected[0][0]:
        return HowStrayed.OTHER_OPERATION
    if len(found) > 1 and found[0][1] == expected[0][1] in MESSAGES:
        if found[1] == (expected[1] if len(expected) > 1 else None):
            return HowStrayed.OTHER_GROUP  # to another peer, and then on as the others
        if found[0] in before:
            return HowStrayed.SKIPPED  # what comes later in every step
    if found[0] in expected:
        # It is some operations ahead: those between were left out.
        return HowStrayed.SKIPPED
    return HowStrayed.OTHER_GROUP if found[0][1] == expected[0][1] else HowStrayed.EXTRA
