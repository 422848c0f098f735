"""Messages that cross: two neighbours of a pipeline of which neither can go on.

    both send        stage 1 ──F3──▶ ◀──B0── stage 2     2 sends back before it has received all
    both receive     stage 1 ◀──?    ?──▶ stage 2        1 left a message out, or 2 is ahead
    one each         stage 1 ──F3──▶ rank 5   stage 2 waits for stage 1: 1 sends elsewhere

A rank sends a gradient back only after it has received the microbatches that its schedule puts
before it. In GPipe that is all of them, so that of two neighbours in send the later stage has
left out a receive, unless the earlier sends one too many; in 1F1B the order of both is fixed too.
Where recorded actions are known they are compared with it and tell which of the two it is. That its
tensor group waits for the earlier one behind that send tells neither: a send that nobody takes
holds it there too. Of two in a receive the earlier may have left out a send, or the later have
left the step before its end; without recorded actions nothing tells which.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from serried.action import ActionKind
from serried.diagnose.job_state.state import JobState, RankOperation
from serried.diagnose.waits.graph import WaitGraph

_PIPELINE = re.compile(r"(?:^|[_\W])(?:pp|pipe(?:line)?)(?:$|[_\W])", re.IGNORECASE)
_MODEL = re.compile(r"(?:^|[_\W])(?:mp|model_?parallel)(?:$|[_\W])", re.IGNORECASE)
_TENSOR = re.compile(r"(?:^|[_\W])(?:tp|tensor)(?:$|[_\W])", re.IGNORECASE)
_RING = re.compile(r"(?:^|[_\W])(?:cp|context|ring)(?:$|[_\W])", re.IGNORECASE)


class HowCrossed(Enum):
    """Says how the messages of two neighbours cross."""

    BOTH_SEND = "both_send"
    BOTH_RECEIVE = "both_receive"
    APART = "apart"
    """One sends and one receives, and yet they do not meet."""


@dataclass(frozen=True)
class Crossed:
    """Holds two ranks that wait for a message from or to one another, and who is out of order."""

    crossing: HowCrossed
    earlier: int
    """The rank of the earlier stage; of the lower number where no stage is known."""
    later: int
    culprit: int | None
    """Who left the schedule; None where nothing tells."""
    is_recorded: bool = False
    """Whether recorded actions show that it left the schedule."""


def crossed(graph: WaitGraph, ranks: tuple[int, ...]) -> Iterator[Crossed]:
    """Yields the pairs among ``ranks`` that wait for a message of each other."""
    state = graph.state
    for rank in ranks:
        one = state.ranks[rank].doing
        if one is None or one.peer is None or one.peer not in ranks:
            continue
        other = state.ranks[one.peer].doing
        if other is None or other.peer != rank or not _is_earlier(state, rank, one.peer):
            continue
        if one.op != other.op and one.is_queued and other.is_queued:
            continue  # NCCL pairs a send and a receive as they come: they are on their way
        yield _crossed(state, rank, one, one.peer, other)


def is_of_messages(state: JobState, rank: int) -> bool:
    """Tells whether a rank is in a pipeline, or in a ring of which no collective is known.

    The stages of a pipeline always send to each other; the ranks of a context group may as well
    meet in collectives, which their dumps would hold. A group of all parts of the model that is
    more than a tensor group has stages, though no layout says so.
    """
    if dict(state.axes).get("pp", 1) > 1:
        return True
    for group in state.groups_of[rank]:
        counts = [(state.ranks[each].counts or {}).get(group.name, 0) for each in group.ranks]
        # Of a group that no layout tells those are members who met in it and left a dump.
        if _PIPELINE.search(group.kind) and (len(counts) > 1 or any(counts)):
            return True
        if _RING.search(group.kind) and len(counts) > 1 and not any(counts):
            return True
        if _MODEL.search(group.kind) and _has_stages(state, group.kind):
            return True
    return False


def _has_stages(state: JobState, kind: str) -> bool:
    """Tells whether groups of all parts of the model hold more than the tensor groups of theirs.

    All are of one size, also those of which some members left nothing.
    """
    models = [group.ranks for group in state.groups if group.kind == kind]
    return any(not set(each) <= _sharing_layers(state, each[0]) for each in models)


def _sharing_layers(state: JobState, rank: int) -> set[int]:
    """Returns the ranks that hold parts of the same layers, as far as groups tell them."""
    tensor = (group for group in state.groups_of[rank] if _TENSOR.search(group.kind))
    return {rank, *(each for group in tensor for each in group.ranks)}


def _is_earlier(state: JobState, rank: int, peer: int) -> bool:
    stages = [state.coordinates(each).get("pp", 0) for each in (rank, peer)]
    return (stages[0], rank) < (stages[1], peer)


def _crossed(
    state: JobState, rank: int, one: RankOperation, peer: int, other: RankOperation
) -> Crossed:
    early = next((r for r in (rank, peer) if _is_out_of_schedule(state, r)), None)
    if one.op == other.op == "send":
        # Whoever sends back has passed the receives that its neighbour still sends to. Where that
        # order never went through, it is the program's: 1F1B has it too, and must not block in it.
        late = peer if _has_gone_through(state, rank, peer) else None
        culprit = early if early is not None else late
        return Crossed(HowCrossed.BOTH_SEND, rank, peer, culprit, is_recorded=early is not None)
    if one.op == other.op == "recv":
        is_recorded = early is not None
        return Crossed(HowCrossed.BOTH_RECEIVE, rank, peer, early, is_recorded=is_recorded)
    sender = rank if one.op == "send" else peer
    # Two tags that differ keep apart what goes to the right rank, and either may be wrong.
    is_told = not (one.may_have_tag or other.may_have_tag)
    return Crossed(HowCrossed.APART, rank, peer, sender if is_told else None)


def _has_gone_through(state: JobState, rank: int, peer: int) -> bool:
    """Tells whether two neighbours have been through a step, or nothing tells what they did."""
    both = state.ranks[rank], state.ranks[peer]
    if any(each.counts is None or any(each.counts.values()) for each in both):
        return True
    return any(op.op == "send" and op.peer == rank and op.is_finished for op in both[1].issued)


def _is_out_of_schedule(state: JobState, rank: int) -> bool:
    """Tells whether a rank's recorded actions hold one that comes before what it needs.

    A backward of a microbatch needs its forward; a forward of a later stage its receive.
    """
    done: set[tuple[ActionKind, int, int]] = set()
    step = state.ranks[rank].step
    for operation in state.ranks[rank].issued:
        action = operation.action
        if action is None or operation.step != step:
            continue
        done.add((action.kind, action.stage, action.microbatch))
    has_receives = any(kind is ActionKind.RECV_F for kind, _, _ in done)
    return has_receives and any(
        kind is ActionKind.SEND_B and (ActionKind.RECV_F, stage, microbatch) not in done
        for kind, stage, microbatch in done
        if stage > 0
    )
