"""The roots of a hang: which ranks keep all others waiting, how, and what tells it.

A chain of waiting ends in one of two ways (see knots). At a loose end stands a rank that waits for
nobody (loose_ends). In a circle, ranks wait for each other, and one of them is where it should not
be (circles). Before both, a rank may have brought another operation, type or size (mismatch).

Where ends tell nobody, as where a rank may wait for a message, a circle that waits for one of them
as well is as dead: so does who strayed there. And where all of a group have come to a collective
that stands nevertheless, one that called it from another line than all others, and than it did
before, may be in another call.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from serried.diagnose.job_state.program import (
    is_elsewhere,
    is_in_communication,
    site_of,
)
from serried.diagnose.job_state.state import RankCondition
from serried.diagnose.waits.callers import odd_calls
from serried.diagnose.waits.circles import kind_of_deviation, roots_of_circle, roots_of_inner
from serried.diagnose.waits.doubt import without_guess
from serried.diagnose.waits.graph import WaitGraph
from serried.diagnose.waits.hidden_messages import left_out_messages
from serried.diagnose.waits.knots import knots
from serried.diagnose.waits.left_pipeline import left_pipeline
from serried.diagnose.waits.loose_ends import is_by_message, roots_of_loose_end
from serried.diagnose.waits.mismatch import Mismatch, mismatches
from serried.diagnose.waits.order import Deviation, deviations
from serried.diagnose.waits.position import at_work
from serried.diagnose.waits.root import Root, RootKind


def roots(graph: WaitGraph) -> tuple[Root, ...]:
    """Returns the roots of a hang, the surest and most waited for first; () where all go on."""
    ends = knots(graph)
    if not ends and not graph.waiting:
        return tuple(_stopped(graph)) or tuple(_apart(graph))
    strayed = {each.rank: each for each in deviations(graph.state)}
    found = [*_mismatched(graph, strayed), *_hidden(graph)]
    accused = {rank for root in found for rank in root.ranks or ()}
    explained = {id(root.meeting) for root in found if root.ranks}
    for knot in ends:
        if found and found[-1].hidden is not None and is_by_message(graph, knot):
            continue
        if accused.isdisjoint(knot.ranks) or not knot.is_circle:
            more = (
                roots_of_circle(graph, knot, strayed)
                if knot.is_circle
                else roots_of_loose_end(graph, knot)
            )
            # Who left nothing is not to blame where somebody else is known to be.
            found += [
                r for r in more if r.kind is not RootKind.SILENT or not _is_told(r, explained)
            ]
    if all(root.ranks is None or root.kind is RootKind.NEVER_ARRIVED for root in found):
        # Those who only did not come may wait for messages of whoever strayed.
        found = [*roots_of_inner(graph, strayed)] or found
        found = [*left_pipeline(graph)] or found
        found = found if any(root.ranks for root in found) else [*_stopped(graph)] or found
    if not found:
        found += [*_odd(graph)] or [*_apart(graph)]
    elif all(root.kind is RootKind.SILENT for root in found):
        found = list(_dead_apart(graph)) or found
    joined = [without_guess(graph.state, r) for r in _joined(found)]
    if any(root.ranks for root in joined):
        joined = [r for r in joined if r.ranks or r.kind is not RootKind.SILENT]
    return tuple(sorted(joined, key=_weight))


def _odd(graph: WaitGraph) -> Iterator[Root]:
    """Yields who came to a collective in which all have come, and from a line of its own."""
    for call in odd_calls(graph):
        inside = call.meeting.came
        waiters = tuple(sorted({*inside, *graph.waiters(inside)} - {call.rank}))
        kind = RootKind.OTHER_LINE
        yield Root(kind, (call.rank,), 0.6, waiters, meeting=call.meeting, odd_call=call)


def _dead_apart(graph: WaitGraph) -> Iterator[Root]:
    """Yields those who ended of themselves, where all chains end in ranks that left nothing.

    What those ranks wait for is not told, and who ended keeps them all waiting.
    """
    dead = tuple(r.rank for r in graph.state.ranks if r.condition is RankCondition.DEAD)
    if dead:
        waiters = tuple(rank for rank in graph.waiting if rank not in dead)
        yield Root(RootKind.DEAD, dead, 0.9, waiters)


def _stopped(graph: WaitGraph) -> Iterator[Root]:
    """Yields those that a signal stopped where all others live, though no wait for them shows."""
    ranks = graph.state.ranks
    stopped = tuple(r.rank for r in ranks if r.condition is RankCondition.STOPPED)
    alive = tuple(r.rank for r in ranks if r.condition is RankCondition.RUNNING)
    if stopped and len(stopped) + len(alive) == len(ranks) > len(stopped):
        yield Root(RootKind.STOPPED, stopped, 0.85, alive)


def _apart(graph: WaitGraph) -> Iterator[Root]:
    """Yields those who stand elsewhere while all others are in communication.

    Whatever group the others wait in, nobody but these can go on. Every rank's stack has to be
    there.
    """
    ranks = graph.state.ranks
    if len(ranks) < 2 or not all(each.stack for each in ranks):
        return
    inside = [r.rank for r in ranks if is_in_communication(r.stack) or r.gave_up]
    apart = [each for each in ranks if is_elsewhere(each.stack) and not each.gave_up]
    if len(apart) + len(inside) < len(ranks):
        return
    if (worker := at_work(graph.state)) in apart:
        apart, inside = [worker], [each.rank for each in ranks if each is not worker]
    if not 0 < len(apart) <= len(inside):
        return
    sites = {site_of(each.stack) for each in apart}
    if len(sites) == 1 and all(each.doing is None for each in apart):
        names = tuple(each.rank for each in apart)
        yield Root(RootKind.USER_CODE, names, 0.65, tuple(inside))


def _hidden(graph: WaitGraph) -> Iterator[Root]:
    """Yields those who left out messages, or issued more, that only their number tells of."""
    hidden = left_out_messages(graph.state.ranks)
    waiting = {rank: each for rank, each in hidden.items() if graph.successors[rank]}
    if 0 < 2 * len(waiting) < len(graph.state.ranks):
        ranks = tuple(sorted(waiting))
        others = tuple(rank for rank in range(graph.state.world_size) if rank not in ranks)
        meeting = graph.meeting_of(ranks[0])
        first = waiting[ranks[0]]
        yield Root(RootKind.OTHER_MESSAGES, ranks, 0.8, others, meeting=meeting, hidden=first)


def _is_told(root: Root, explained: set[int]) -> bool:
    return root.meeting is not None and id(root.meeting) in explained


def _weight(root: Root) -> tuple[bool, float, int]:
    return root.ranks is None, -round(root.confidence, 1), -len(root.waiters)


def _joined(found: Iterable[Root]) -> Iterator[Root]:
    """Joins loose ends of one kind: two ranks that are stuck in the same code are one root."""
    alike: dict[tuple[RootKind, float], list[Root]] = defaultdict(list)
    for root in found:
        alike[root.kind, root.confidence].append(root)
    for (kind, _), same in alike.items():
        first = same[0]
        ranks = _union(root.ranks or () for root in same)
        waiters = tuple(each for each in _union(root.waiters for root in same) if each not in ranks)
        if len(same) == 1 or first.crossed is not None:
            yield from same  # each pair that crosses is one by itself
        elif kind is RootKind.MAY_WAIT:
            circle = _union(root.circle for root in same)
            yield replace(first, circle=circle, waiters=waiters)
        elif first.ranks is None:
            yield first
        else:
            yield replace(first, ranks=ranks, waiters=waiters)


def _union(parts: Iterable[Iterable[int]]) -> tuple[int, ...]:
    return tuple(sorted({rank for part in parts for rank in part}))


def _mismatched(graph: WaitGraph, strayed: dict[int, Deviation]) -> Iterator[Root]:
    for each in (_settled(mismatch, strayed) for mismatch in mismatches(graph)):
        members = tuple(sorted(each.brought))
        if not each.culprits:
            waiters = graph.waiters(members)
            yield Root(_kind(each), None, 0.5, waiters, circle=members, mismatch=each)
            continue
        inside = {*each.brought, *(rank for rank in each.group.ranks if graph.successors[rank])}
        ended = {r for r in each.group.ranks if graph.state.ranks[r].expected_bytes is not None}
        behind = {*graph.waiters((*inside, *ended)), *inside}
        waiters = tuple(sorted(behind - ended - set(each.culprits)))
        deviation = next((strayed[rank] for rank in each.culprits if rank in strayed), None)
        kind = kind_of_deviation(deviation) if deviation else _kind(each)
        yield Root(
            kind,
            each.culprits,
            0.9 if each.by_peers else 0.85,
            waiters,
            meeting=next((m for m in graph.meetings if m.group is each.group), None),
            deviation=deviation,
            mismatch=each,
        )


def _settled(mismatch: Mismatch, strayed: dict[int, Deviation]) -> Mismatch:
    """Returns a mismatch, with who left the order of all others where nothing else tells.

    Of two ranks of a group neither is odd there.
    """
    astray = tuple(sorted(rank for rank in mismatch.brought if rank in strayed))
    if mismatch.culprits or not 0 < len(astray) < len(mismatch.brought):
        return mismatch
    return replace(mismatch, culprits=astray, by_peers=strayed[astray[0]].by_peers)


def _kind(mismatch: Mismatch) -> RootKind:
    return {"op": RootKind.OTHER_OPERATION, "dtype": RootKind.OTHER_DTYPE}.get(
        mismatch.difference.value, RootKind.OTHER_SIZE
    )
