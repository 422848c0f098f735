"""The roots at loose ends: ranks that wait for nobody, or for nobody that can be told.

Such a rank ended, is stopped, is busy in the user's own code, or never came; and one that may wait
for a message which no source shows is not accused.
"""

from __future__ import annotations

from collections.abc import Iterator

from serried.diagnose.job_state.program import (
    is_in_engine,
    is_in_functional,
    site_of,
    waits_for_messages,
)
from serried.diagnose.job_state.state import MESSAGES, RankCondition
from serried.diagnose.waits.doubt import may_stand_at_gpu
from serried.diagnose.waits.graph import WaitGraph
from serried.diagnose.waits.knots import Knot
from serried.diagnose.waits.messages import is_of_messages
from serried.diagnose.waits.position import at_work
from serried.diagnose.waits.root import Root, RootKind


def roots_of_loose_end(graph: WaitGraph, knot: Knot) -> Iterator[Root]:
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


def is_by_message(graph: WaitGraph, knot: Knot) -> bool:
    """Tells whether a loose end may wait for a message: no stack shows it anywhere else."""
    if knot.is_circle:
        return True
    state = graph.state.ranks[knot.ranks[0]]
    ended = (RankCondition.DEAD, RankCondition.STOPPED, RankCondition.FINISHED)
    return state.condition not in ended


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
    waits for somebody; in a backward or a functional collective only a dump would tell for whom.
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
        stack = ranks[rank].stack
        is_unknown = ranks[rank].counts is None and (is_in_engine(stack) or is_in_functional(stack))
        return waits_for_messages(stack) or is_unknown
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
