"""Who left a pipeline before its peers: alone in a collective, while all others wait for messages.

    stage 0   waits for a gradient of stage 1       rank 1 is in the barrier
    stage 2   waits for an activation of stage 1    behind the last step:
    stage 3   waits for an activation of stage 2    it left too early

Whoever has come to a collective in order has had all messages of its part of the step, and without
these no other stage is through its own. Of two stages nothing tells which has one step too few and
which one too many; of more, all but one would have to be wrong in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from serried.diagnose.job_state.program import operation_of, waits_for_messages
from serried.diagnose.job_state.state import MESSAGES, JobState, RankCondition, RankState
from serried.diagnose.waits.graph import WaitGraph
from serried.diagnose.waits.root import Root, RootKind

LEAST = 3
"""Stages that a pipeline must have."""
_PIPELINING = "torch/distributed/pipelining/"
_OF_STAGES = re.compile(r"(?i)(?<![a-z])(?:pp|pipe(?:line)?)(?![a-z])|PIPELINE_MODEL_PARALLEL")
"""What names of groups of stages hold: ``mesh_pp``, ``PIPELINE_MODEL_PARALLEL_GROUP``."""


def left_pipeline(graph: WaitGraph) -> Iterator[Root]:
    """Yields ranks of pipelines that wait in a collective alone; nothing where none does."""
    for pipeline in _pipelines(graph.state):
        inside = [rank for rank in pipeline if graph.meeting_of(rank) is not None]
        others = tuple(rank for rank in pipeline if rank not in inside)
        if len(inside) != 1 or not all(_waits_for_a_message(graph.state.ranks[r]) for r in others):
            continue
        meeting = graph.meeting_of(inside[0])
        if meeting is not None and set(meeting.awaited) <= set(others):
            yield Root(RootKind.LEFT_PIPELINE, (inside[0],), 0.7, others, meeting=meeting)


def _pipelines(state: JobState) -> Iterator[tuple[int, ...]]:
    """Yields the ranks of each pipeline of at least ``LEAST`` stages that can be told.

    Without a layout groups tell it by their names, and a job without groups is one pipeline where
    all but one stand in torch's schedules.
    """
    everyone = tuple(range(state.world_size))
    parts = [g for g in state.groups if 1 < len(g.ranks) < state.world_size]
    named = [group.ranks for group in parts if _OF_STAGES.search(group.kind)]
    scheduled = sum(map(_is_in_pipeline, state.ranks))
    if state.axes:
        found = [everyone] if dict(state.axes).get("pp", 1) == state.world_size else named
    else:
        found = named or ([everyone] if not parts and scheduled == len(everyone) - 1 else [])
    yield from (ranks for ranks in dict.fromkeys(found) if len(ranks) >= LEAST)


def _waits_for_a_message(rank: RankState) -> bool:
    if rank.condition not in (RankCondition.UNKNOWN, RankCondition.RUNNING):
        return False
    if rank.gave_up:  # its stack is that of a limit, which tells what it had waited in
        return rank.doing is not None and rank.doing.op in MESSAGES
    is_waiting = _is_in_pipeline(rank) and waits_for_messages(rank.stack)
    return is_waiting or operation_of(rank.stack) in MESSAGES


def _is_in_pipeline(rank: RankState) -> bool:
    return any(_PIPELINING in frame.file for frame in rank.stack)
