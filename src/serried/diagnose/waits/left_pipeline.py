"""Who left a pipeline before its peers: alone in a collective, while all others wait for messages.

    stage 0   waits for a gradient of stage 1       rank 1 is in the barrier
    stage 2   waits for an activation of stage 1    behind the last step:
    stage 3   waits for an activation of stage 2    it left too early

Whoever has come to a collective in order has had all messages of its part of the step, and without
these no other stage is through its own. Of two stages nothing tells which has one step too few and
which one too many; of more, all but one would have to be wrong in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator

from serried.diagnose.job_state.program import operation_of, waits_for_messages
from serried.diagnose.job_state.state import MESSAGES, RankCondition, RankState
from serried.diagnose.waits.graph import WaitGraph
from serried.diagnose.waits.root import Root, RootKind

LEAST = 3
"""Stages that a pipeline must have."""
_PIPELINING = "torch/distributed/pipelining/"


def left_pipeline(graph: WaitGraph) -> Iterator[Root]:
    """Yields the rank of a pipeline that waits in a collective alone; nothing where none does."""
    state = graph.state
    if dict(state.axes).get("pp", 1) != state.world_size or state.world_size < LEAST:
        return
    inside = [each.rank for each in state.ranks if graph.meeting_of(each.rank) is not None]
    others = [each for each in state.ranks if each.rank not in inside]
    if len(inside) != 1 or not all(map(_waits_for_a_message, others)):
        return
    meeting = graph.meeting_of(inside[0])
    waiters = tuple(each.rank for each in others)
    yield Root(RootKind.LEFT_PIPELINE, (inside[0],), 0.7, waiters, meeting=meeting)


def _waits_for_a_message(rank: RankState) -> bool:
    if rank.condition not in (RankCondition.UNKNOWN, RankCondition.RUNNING) or rank.gave_up:
        return False
    is_in_pipeline = any(_PIPELINING in frame.file for frame in rank.stack)
    is_waiting = is_in_pipeline and waits_for_messages(rank.stack)
    return is_waiting or operation_of(rank.stack) in MESSAGES
