"""The roots of a hang: which ranks keep all others waiting, how, and what tells it.

A chain of waiting ends in one of two ways (see knots). At a loose end stands a rank that waits for
nobody: it ended, is stopped, is busy in the user's own code, or never came. In a circle, ranks
wait for each other, and one of them is where it should not be:

    1. a rank that left the order of its peers or of its own steps before    (order)
    2. a rank that brought another operation, type or size                   (mismatch)
    3. a rank that called what its peers call from another line of theirs    (lines_apart)
    4. of two neighbours whose messages cross, the one out of schedule       (messages)
    5. a rank that is past a collective which it has not issued              (position)
    6. a rank that waits in an operation which its steps before did not have

Where ends tell nobody, as where a rank may wait for a message, a circle that waits for one of them
as well is as dead: so does who strayed there. And where all of a group have come to a collective
that stands nevertheless, one that called it from another line than all others, and than it did
before, may be in another call.

Where none of these holds, the circle is named and nobody is accused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from serried.diagnose.job_state.program import (
    is_elsewhere,
    is_in_communication,
    is_in_engine,
    site_of,
    waits_for_messages,
)
from serried.diagnose.job_state.state import MESSAGES, RankCondition
from serried.diagnose.waits.callers import odd_calls
from serried.diagnose.waits.doubt import may_stand_at_gpu, without_guess
from serried.diagnose.waits.graph import WaitGraph
from serried.diagnose.waits.hidden_messages import left_out_messages
from serried.diagnose.waits.knots import Knot, inner_circles, knots
from serried.diagnose.waits.left_pipeline import left_pipeline
from serried.diagnose.waits.lines_apart import lines_apart
from serried.diagnose.waits.messages import HowCrossed, crossed, is_of_messages
from serried.diagnose.waits.mismatch import Mismatch, mismatches
from serried.diagnose.waits.order import Deviation, HowStrayed, deviations, is_unusual
from serried.diagnose.waits.position import at_work, left_out
from serried.diagnose.waits.root import Root, RootKind

_OF_DEPARTURE = {
    HowStrayed.SKIPPED: RootKind.SKIPPED,
    HowStrayed.SWAPPED: RootKind.SWAPPED,
    HowStrayed.EXTRA: RootKind.ALONE,
    HowStrayed.OTHER_OPERATION: RootKind.OTHER_OPERATION,
    HowStrayed.OTHER_GROUP: RootKind.OTHER_GROUP,
}

_OF_CROSSING = {
    HowCrossed.BOTH_SEND: RootKind.OUT_OF_SCHEDULE,
    HowCrossed.BOTH_RECEIVE: RootKind.LEFT_OUT_SEND,
    HowCrossed.APART: RootKind.WRONG_PEER,
}


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
        if found and found[-1].hidden is not None and _is_by_message(graph, knot):
            continue
        if accused.isdisjoint(knot.ranks) or not knot.is_circle:
            more = _of_circle(graph, knot, strayed) if knot.is_circle else _loose(graph, knot)
            # Who left nothing is not to blame where somebody else is known to be.
            found += [
                r for r in more if r.kind is not RootKind.SILENT or not _is_told(r, explained)
            ]
    if all(root.ranks is None or root.kind is RootKind.NEVER_ARRIVED for root in found):
        # Those who only did not come may wait for messages of whoever strayed.
        found = [*_of_inner(graph, strayed)] or found
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


def _of_inner(graph: WaitGraph, strayed: dict[int, Deviation]) -> Iterator[Root]:
    """Yields who strayed in a circle that waits for others besides."""
    for knot in inner_circles(graph):
        inside = [strayed[rank] for rank in knot.ranks if rank in strayed]
        if inside and len(inside) < len(knot.ranks):
            yield _strayed(graph, knot, inside)


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


def _is_by_message(graph: WaitGraph, knot: Knot) -> bool:
    """Tells whether a loose end may wait for a message: no stack shows it anywhere else."""
    if knot.is_circle:
        return True
    state = graph.state.ranks[knot.ranks[0]]
    ended = (RankCondition.DEAD, RankCondition.STOPPED, RankCondition.FINISHED)
    return state.condition not in ended


def _is_told(root: Root, explained: set[int]) -> bool:
    return root.meeting is not None and id(root.meeting) in explained


def _weight(root: Root) -> tuple[bool, float, int]:
    return root.ranks is None, -round(root.confidence, 1), -len(root.waiters)


def _joined(found: Iterable[Root]) -> Iterator[Root]:
    """Joins loose ends of one kind: two ranks that are stuck in the same code are one root."""
    alike: dict[tuple[RootKind, float], list[Root]] = defaultdict(list)
    for root in found:
        alike[root.kind, root.confidence].append(root)
    for (kind, confidence), same in alike.items():
        first = same[0]
        if len(same) == 1 or first.ranks is None or first.crossed is not None:
            yield from same  # each pair that crosses is one by itself
            continue
        ranks = tuple(sorted({rank for root in same for rank in root.ranks or ()}))
        waiters = {rank for root in same for rank in root.waiters} - set(ranks)
        yield Root(
            kind,
            ranks,
            confidence,
            tuple(sorted(waiters)),
            circle=first.circle,
            meeting=first.meeting,
            deviation=first.deviation,
            mismatch=first.mismatch,
            crossed=first.crossed,
        )


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
        kind = _of_deviation(deviation) if deviation else _kind(each)
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


def _loose(graph: WaitGraph, knot: Knot) -> Iterator[Root]:
    """Yields a root for a rank that waits for nobody, or for nobody that can be told."""
    [rank] = knot.ranks
    state = graph.state.ranks[rank]
    meeting = next((m for m in graph.meetings if rank in m.awaited), None)
    by_condition = {
        RankCondition.DEAD: (RootKind.DEAD, 0.95),
        RankCondition.STOPPED: (RootKind.STOPPED, 0.95),
        RankCondition.FINISHED: (RootKind.FINISHED, 0.9),
    }
    is_open = state.condition not in by_condition and state.doing is None
    if is_open and (may_stand_at_gpu(graph.state, rank) or _may_wait(graph, rank)):
        yield Root(RootKind.MAY_WAIT, None, 0.4, knot.waiters, circle=(rank,), meeting=meeting)
        return
    if state.condition in by_condition:
        kind, confidence = by_condition[state.condition]
    elif state.doing is not None and not state.doing.is_finished:
        # It waits itself, for a peer that no source names.
        return
    elif state.stack and _stands_among_waiters(graph, rank):
        return
    elif state.stack or state.within:
        kind, confidence = RootKind.USER_CODE, 0.9 if state.stack else 0.75
    elif state.counts is not None:
        if meeting is not None and rank not in meeting.absent:
            return  # what it issued does not tell whether it came to this one
        kind, confidence = RootKind.NEVER_ARRIVED, 0.9
    else:
        kind, confidence = RootKind.SILENT, 0.5
    yield Root(kind, knot.ranks, confidence, knot.waiters, meeting=meeting)


def _stands_among_waiters(graph: WaitGraph, rank: int) -> bool:
    """Tells whether a rank stands at the line at which one that is seen to wait stands as well.

    So do those who wait for the GPU, as for a number of it: their stacks show no communication.
    """
    ranks = graph.state.ranks
    site = site_of(ranks[rank].stack)
    others = (ranks[each] for each in graph.waiting if each != rank)
    return site is not None and any(
        each.stack and each.stack[0].is_users and site_of(each.stack) == site for each in others
    )


def _may_wait(graph: WaitGraph, rank: int) -> bool:
    """Tells whether a rank that is in no collective may wait for a message that nothing shows.

    One that stands in torch's communication, as its pipelines' waits for batches of messages do,
    waits for somebody.
    gloo's recorder holds no messages, and Python's stacks end above ``work.wait()``. Where some
    rank is seen in a blocking send or receive, the job has these, and this one would be seen too.
    One that gave up waited for somebody; where others gave up at other lines, it is at work.
    """
    ranks = graph.state.ranks
    if ranks[rank].gave_up:
        return True
    if ranks[rank] is at_work(graph.state):
        return False
    if ranks[rank].stack and not ranks[rank].stack[0].is_users:
        is_unknown = ranks[rank].counts is None and is_in_engine(ranks[rank].stack)
        return waits_for_messages(ranks[rank].stack) or is_unknown
    if ranks[rank].counts is None and not ranks[rank].stack:
        return False
    # Who has counted none of its own in all its steps does not wait for one, whatever others do.
    own = [op.messages for op in ranks[rank].issued if op.messages is not None]
    has_messages = any(own or (op.messages for each in ranks for op in each.issued))
    # A group without collectives counts none either, and a pipeline has messages in any case.
    if is_of_messages(graph.state, rank) and not ranks[rank].within:
        has_messages |= not any(op.peer is not None for each in ranks for op in each.issued)
    are_seen = any(r.stack and r.doing is not None and r.doing.op in MESSAGES for r in ranks)
    gave_up = {site_of(each.stack) for each in ranks if each.gave_up and each.doing is None}
    if (site := site_of(ranks[rank].stack)) is not None and site in gave_up:
        return True
    if not (has_messages or are_seen) or (are_seen and ranks[rank].stack):
        return False
    return not gave_up


def _of_circle(graph: WaitGraph, knot: Knot, strayed: dict[int, Deviation]) -> Iterator[Root]:
    inside = [strayed[rank] for rank in knot.ranks if rank in strayed]
    if inside and len(inside) < len(knot.ranks):
        yield _strayed(graph, knot, inside)
    elif 0 < len(apart := lines_apart(graph.state, knot.ranks)) < len(knot.ranks):
        ranks = tuple(sorted(apart))
        waiters = tuple(sorted({*knot.waiters, *knot.ranks} - set(ranks)))
        kind = RootKind.LEFT_ORDER
        yield Root(kind, ranks, 0.8, waiters, circle=knot.ranks, line_apart=apart[ranks[0]])
    elif pairs := [each for each in crossed(graph, knot.ranks) if each.culprit is not None]:
        for pair in pairs[:1]:
            assert pair.culprit is not None
            waiters = tuple(sorted({*knot.waiters, *knot.ranks} - {pair.culprit}))
            confidence = 0.65 if pair.crossing is HowCrossed.APART else 0.8
            kind = _OF_CROSSING[pair.crossing]
            yield Root(kind, (pair.culprit,), confidence, waiters, circle=knot.ranks, crossed=pair)
    elif passed := left_out(graph, knot.ranks):
        ranks = tuple(sorted(passed))
        waiters = tuple(sorted({*knot.waiters, *knot.ranks} - set(ranks)))
        yield Root(
            RootKind.SKIPPED, ranks, 0.8, waiters, circle=knot.ranks, meeting=passed[ranks[0]]
        )
    elif odd := _unusual(graph, knot):
        waiters = tuple(sorted({*knot.waiters, *knot.ranks} - set(odd)))
        meeting = graph.meeting_of(odd[0])
        yield Root(RootKind.ALONE, odd, 0.75, waiters, circle=knot.ranks, meeting=meeting)
    elif both := [p for p in crossed(graph, knot.ranks) if p.crossing is HowCrossed.BOTH_SEND]:
        pair = both[0]
        circle = (pair.earlier, pair.later)
        waiters = tuple(sorted({*knot.waiters, *knot.ranks} - set(circle)))
        yield Root(RootKind.OUT_OF_SCHEDULE, None, 0.6, waiters, circle=circle, crossed=pair)
    else:
        yield Root(RootKind.CIRCLE, None, 0.4, knot.waiters, circle=knot.ranks)


def _strayed(graph: WaitGraph, knot: Knot, inside: list[Deviation]) -> Root:
    ranks = tuple(sorted(each.rank for each in inside))
    first = inside[0]
    meeting = next((m for m in graph.meetings if first.rank in m.awaited), None)
    kind = _of_deviation(first)
    if kind is RootKind.SKIPPED and len(ranks) > 1 and all(each.is_last for each in inside):
        # One that leaves out a collective holds others up; a circle of those who have each
        # come to a later one first is the opposite order of two groups.
        kind = RootKind.SWAPPED
    return Root(
        kind,
        ranks,
        0.9 if first.by_peers else 0.85,
        tuple(sorted({*knot.waiters, *knot.ranks} - set(ranks))),
        circle=knot.ranks,
        meeting=meeting,
        deviation=first,
    )


def _of_deviation(deviation: Deviation) -> RootKind:
    """Returns the kind of a departure: of messages it tells which was left out, or went astray."""
    expected = deviation.expected[1]
    if expected not in MESSAGES:
        return _OF_DEPARTURE[deviation.departure]
    is_ahead = deviation.departure is HowStrayed.SKIPPED
    if deviation.operation.op == expected and not is_ahead:
        return RootKind.WRONG_PEER
    if deviation.departure in (HowStrayed.EXTRA, HowStrayed.SWAPPED):
        return RootKind.OUT_OF_SCHEDULE
    return RootKind.LEFT_OUT_SEND if expected == "send" else RootKind.LEFT_OUT_RECEIVE


def _unusual(graph: WaitGraph, knot: Knot) -> tuple[int, ...]:
    """Returns those of a circle that wait in what their steps before did not have, if not all."""
    odd: list[int] = []
    usual: list[int] = []
    for rank in knot.ranks:
        doing = graph.state.ranks[rank].doing
        if doing is None:
            continue
        is_odd = doing.op not in MESSAGES and is_unusual(graph.state, graph.state.ranks[rank])
        (odd if is_odd else usual).append(rank)
    return tuple(odd) if usual else ()
