"""Names and verdicts of a hang: ranks with their places, collectives, and what a root did."""

from __future__ import annotations

from serried.diagnose.job_state.program import waits_for_gpu
from serried.diagnose.job_state.state import MESSAGES, JobState, RankOperation
from serried.diagnose.waits.graph import StalledCollective
from serried.diagnose.waits.mismatch import Mismatch
from serried.diagnose.waits.offsets import peer_at
from serried.diagnose.waits.order import Deviation
from serried.diagnose.waits.root import Root, RootKind
from serried.errors import listed
from serried.finding import Sentence, said

_AWAITED = said("what its peers wait in")


def who(state: JobState, ranks: tuple[int, ...]) -> Sentence:
    """Returns ranks with their places: ``rank 37 (node 4, GPU 5; tp 1, pp 3)``."""
    if len(ranks) != 1:
        return said("ranks {ranks}", ranks=listed(ranks))
    [rank] = ranks
    name, sizes = said("rank {rank}", rank=rank), dict(state.axes)
    places = [f"{axis} {at}" for axis, at in state.coordinates(rank).items() if sizes[axis] > 1]
    if state.gpus_per_node:
        node, gpu = divmod(rank, state.gpus_per_node)
        on = said("node {node}, GPU {gpu}", node=node, gpu=gpu)
        if not places:
            return said("{name} ({on})", name=name, on=on)
        return said("{name} ({on}; {places})", name=name, on=on, places=listed(places))
    if not places:
        return name
    return said("{name} ({places})", name=name, places=listed(places))


def _of_node(state: JobState, ranks: tuple[int, ...]) -> Sentence | None:
    """Returns the node of which these are all the ranks, of a job of several; None where none is.

    What lay on a node is lost, or not collected, as a whole.
    """
    of_node = state.gpus_per_node
    if not of_node or len(ranks) != of_node or of_node >= state.world_size:
        return None
    nodes = {rank // of_node for rank in ranks}
    return said("every rank of node {node}", node=nodes.pop()) if len(nodes) == 1 else None


def operation_named(operation: RankOperation) -> Sentence:
    """Returns an operation by its name, place and group, or by its peer."""
    if operation.peer is not None:
        if operation.op == "recv":
            return said("a receive from rank {peer}", peer=operation.peer)
        return said("a send to rank {peer}", peer=operation.peer)
    return _collective(operation.op, operation.seq, operation.group)


def meeting_named(meeting: StalledCollective) -> Sentence:
    """Returns a collective by its operation, place and group: ``all_reduce 6 of dp_3``."""
    operation = next(iter(meeting.operations.values()))
    return _collective(operation.op, meeting.seq, meeting.group.name)


def _collective(op: str, seq: int | None, group: str | None) -> Sentence:
    if group is None:
        return said("{op}", op=op)
    if seq is None:
        return said("{op} of {group}", op=op, group=group)
    return said("{op} {seq} of {group}", op=op, seq=seq, group=group)


def place_of(state: JobState, rank: int) -> str | Sentence:
    """Returns the innermost frame of a rank's stack that is the user's own, or what it is in."""
    stack = state.ranks[rank].stack
    frame = next((each for each in stack if each.is_users), stack[0] if stack else None)
    if frame is not None:
        return f"{frame.function} ({frame.file}:{frame.line})"
    return state.ranks[rank].within or ""


def what_root_did(state: JobState, root: Root) -> Sentence:
    """Returns what a root did that keeps the others waiting, without who they are."""
    if root.ranks is None:
        return _nobody_named(state, root)
    name = who(state, root.ranks)
    if root.deviation is not None:
        return _strayed(state, name, root.kind, root.deviation)
    if root.mismatch is not None:
        return _mismatched(name, root.mismatch, root.ranks[0])
    if root.hidden is not None:
        return said(
            "{who} issued {found} messages before {what}, {usual} before each of those before",
            who=name,
            found=root.hidden.found,
            what=operation_named(root.hidden.operation),
            usual=root.hidden.usual,
        )
    if root.crossed is not None:
        return _crossed(name, root)
    if root.line_apart is not None:
        return said(
            "{who} called {what} from {place} and its peers from {other}, where by the order so "
            "far all call it: it has left their order",
            who=name,
            what=operation_named(root.line_apart.operation),
            place=str(root.line_apart.line),
            other=str(root.line_apart.others),
        )
    if root.odd_call is not None:
        return said(
            "{who} called {what} at {place} and all its peers at {other}, from which it came "
            "before too: all have come, and it does not end, so that the two calls may differ, as "
            "by their source",
            who=name,
            what=meeting_named(root.odd_call.meeting),
            place=str(root.odd_call.line),
            other=str(root.odd_call.others),
        )
    return _ended(state, name, root)


def _nobody_named(state: JobState, root: Root) -> Sentence:
    """Returns what keeps the others waiting where no rank is to be named."""
    if root.mismatch is not None:
        return said(
            "ranks {ranks} brought different things to {what}, and nothing tells which of "
            "them is wrong",
            ranks=listed(root.circle),
            what=_of_mismatch(root.mismatch),
        )
    if root.kind is RootKind.MAY_WAIT:
        return _may_wait(state, root)
    if root.crossed is not None:
        return said(
            "ranks {ranks} each send to the other and neither receives; nothing shows that "
            "this order ever went through, so look at the program and not at one rank",
            ranks=listed(root.circle, last="and"),
        )
    if root.kind is RootKind.SILENT:
        return said(
            "nothing shows that {who} joined {what}: neither dump nor stack of {who} was "
            "given, and nobody is named by that alone",
            who=_of_node(state, root.circle) or who(state, root.circle),
            what=meeting_named(root.meeting) if root.meeting else _AWAITED,
        )
    return said(
        "ranks {ranks} wait for each other, and nothing tells which of them is out of order",
        ranks=listed(root.circle),
    )


def _may_wait(state: JobState, root: Root) -> Sentence:
    name, place = who(state, root.circle), place_of(state, root.circle[0])
    what = meeting_named(root.meeting) if root.meeting else _AWAITED
    if len(root.circle) > 1:
        return said(
            "{who} have not joined {what}; rank {rank} is in {place}, and nothing tells who of "
            "them works and who waits",
            who=name,
            what=what,
            rank=root.circle[0],
            place=place,
        )
    if waits_for_gpu(state.ranks[root.circle[0]].stack):
        return said(
            "{who} waits for its GPU in {place} and has not joined {what}; nothing tells what the "
            "GPU waits for",
            who=name,
            place=place,
            what=what,
        )
    if place:
        return said(
            "{who} is in {place} and has not joined {what}; nothing tells whether it works there "
            "or waits for a message",
            who=name,
            place=place,
            what=what,
        )
    return said(
        "{who} has not joined {what}; nothing tells whether it works or waits for a message",
        who=name,
        what=what,
    )


def _ended(state: JobState, name: Sentence, root: Root) -> Sentence:
    what = meeting_named(root.meeting) if root.meeting else _AWAITED
    match root.kind:
        case RootKind.DEAD:
            return said("{who} ended and never joined {what}", who=name, what=what)
        case RootKind.STOPPED:
            return said("{who} is stopped by a signal and never joined {what}", who=name, what=what)
        case RootKind.FINISHED:
            return said(
                "{who} ended in order without joining {what}: it had fewer steps than its peers",
                who=name,
                what=what,
            )
        case RootKind.USER_CODE:
            return said(
                "{who} is in {place} and never joined {what}"
                if len(root.ranks or ()) == 1
                else "{who} are in {place} and never joined {what}",
                who=name,
                place=place_of(state, (root.ranks or (0,))[0]),
                what=what,
            )
        case RootKind.SKIPPED:
            return said(
                "{who} has passed {what} without joining it: it stands at {place}",
                who=name,
                what=what,
                place=place_of(state, (root.ranks or (0,))[0]),
            )
        case RootKind.LEFT_PIPELINE:
            return said(
                "{who} waits in {what} while all other stages of its pipeline still wait for "
                "messages: it ended its part of the step too early",
                who=name,
                what=what,
            )
        case RootKind.ALONE:
            return said(
                "{who} waits in {what}, where its peers are not, nor was it in the steps before",
                who=name,
                what=what,
            )
        case _:
            return said("{who} never joined {what}", who=name, what=what)


def _expected(state: JobState, deviation: Deviation) -> Sentence:
    """Returns what a rank's peers do where it strayed, as it would be for this rank."""
    kind, op = deviation.expected
    if op in MESSAGES:
        return operation_named(RankOperation(op, peer=peer_at(state, deviation.rank, kind)))
    group = next((g for g in state.groups_of[deviation.rank] if g.kind == kind), None)
    return said("{op} of {group}", op=op, group=group.name if group else kind)


def _strayed(state: JobState, name: Sentence, kind: RootKind, deviation: Deviation) -> Sentence:
    found, expected = operation_named(deviation.operation), _expected(state, deviation)
    match kind:
        case RootKind.SKIPPED | RootKind.LEFT_OUT_SEND | RootKind.LEFT_OUT_RECEIVE:
            return said(
                "{who} left out {expected} and went on to {found}",
                who=name,
                expected=expected,
                found=found,
            )
        case RootKind.SWAPPED:
            return said(
                "{who} came to {found} before {expected}, which its peers take first",
                who=name,
                found=found,
                expected=expected,
            )
        case RootKind.ALONE:
            return said("{who} issued {found}, which its peers do not", who=name, found=found)
        case _:
            return said(
                "{who} issued {found} where its peers issue {expected}"
                if deviation.by_peers
                else "{who} issued {found} where its steps before had {expected}",
                who=name,
                found=found,
                expected=expected,
            )


def _mismatched(name: Sentence, mismatch: Mismatch, rank: int) -> Sentence:
    what = _of_mismatch(mismatch)
    brought = mismatch.brought.get(rank)
    others = [op for other, op in mismatch.brought.items() if other != rank]
    if brought is None:
        return said(
            "{who} brought another number of bytes to {what} than its peers, who brought {other}",
            who=name,
            what=what,
            other=_content(others[0]),
        )
    if not others:
        return said(
            "{who} brought {brought} to {what}, unlike the steps before",
            who=name,
            brought=_content(brought),
            what=what,
        )
    return said(
        "{who} brought {brought} to {what}, its peers {other}",
        who=name,
        brought=_content(brought),
        what=what,
        other=_content(others[0]),
    )


def _of_mismatch(mismatch: Mismatch) -> Sentence:
    operation = next(iter(mismatch.brought.values()))
    return _collective(operation.op, mismatch.seq, mismatch.group.name)


def _content(operation: RankOperation) -> Sentence:
    if operation.numel_in is None:
        return said("{op}", op=operation.op)
    return said(
        "{op} of {numel:,} {dtype}",
        op=operation.op,
        numel=operation.numel_in,
        dtype=operation.dtype or "",
    )


def _crossed(name: Sentence, root: Root) -> Sentence:
    pair = root.crossed
    assert pair is not None
    other = pair.later if pair.culprit == pair.earlier else pair.earlier
    match root.kind:
        case RootKind.OUT_OF_SCHEDULE if pair.is_recorded:
            return said(
                "{who} sends back to rank {other} while that still sends to it: it has not posted "
                "every receive that comes first",
                who=name,
                other=other,
            )
        case RootKind.OUT_OF_SCHEDULE:
            return said(
                "{who} sends back to rank {other} while that still sends to it: it has not posted "
                "every receive that comes first, unless rank {other} sends one too many",
                who=name,
                other=other,
            )
        case RootKind.LEFT_OUT_SEND:
            return said(
                "{who} and rank {other} each wait for a message of the other: {who} has left out "
                "a send",
                who=name,
                other=other,
            )
        case _:
            return said(
                "{who} is in a send and rank {other} in a receive from it, and the two do not "
                "meet: it sends to another rank",
                who=name,
                other=other,
            )
