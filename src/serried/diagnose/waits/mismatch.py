"""Who brought something else to a collective: another operation, data type or size.

Two sides differ; the smaller one is wrong where more ranks stand on the other. In a group of two,
each rank's own past tells: who brings what it always brought there is right.

    dp_0 all_reduce 4     rank 0  Float    8320     as in all_reduce 3
                          rank 2  Double   8320     it brought Float to all_reduce 3: it differs
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from serried.diagnose.job_state.program import site_of
from serried.diagnose.job_state.state import JobGroup, JobState, RankOperation, RankState
from serried.diagnose.waits.graph import StalledCollective, WaitGraph
from serried.diagnose.waits.order import usual_next

_EVEN = frozenset(
    {
        "all_reduce",
        "allreduce",
        "all_gather",
        "_all_gather_base",
        "all_gather_into_tensor",
        "reduce_scatter",
        "_reduce_scatter_base",
        "reduce_scatter_tensor",
        "broadcast",
        "reduce",
    }
)
"""Collectives to which every member brings as many elements, of one type."""


_BYTES = {"Double": 8, "Long": 8, "Half": 2, "BFloat16": 2, "Byte": 1, "Char": 1, "Bool": 1}
"""Bytes of an element by torch's names; of others 4."""


class Difference(Enum):
    """Says in what two sides of a collective differ."""

    OPERATION = "op"
    DTYPE = "dtype"
    SIZE = "size"
    BYTES = "bytes"
    """In the number of bytes; one side left nothing that says more."""


@dataclass(frozen=True)
class Mismatch:
    """Says that ranks brought different things to one collective, and who deviates."""

    group: JobGroup
    seq: int | None
    difference: Difference
    brought: Mapping[int, RankOperation]
    """What each rank brought, as far as told."""
    culprits: tuple[int, ...]
    """Who deviates; () where nothing tells."""
    by_peers: bool
    """Whether more members brought the other; else the ranks' own past tells."""


def mismatches(graph: WaitGraph) -> Iterator[Mismatch]:
    """Yields the collectives to which members brought different things, among those that stand."""
    state = graph.state
    brought_to = _brought(state)
    for meeting in graph.meetings:
        if meeting.seq is not None and len(meeting.operations) > 1:
            # A rank whose calls nothing counts stands where the others of its group wait.
            there = brought_to.setdefault((meeting.group.name, meeting.seq), {})
            for rank, operation in meeting.operations.items():
                there.setdefault(rank, operation)
    for (name, seq), brought in brought_to.items():
        group = state.group_named[name]
        if difference := _difference(brought):
            culprits, by_peers = _culprits(state, brought)
            yield Mismatch(group, seq, difference, brought, culprits, by_peers)
    silent = [each for meeting in graph.meetings for each in _with_the_silent(state, meeting)]
    told = [each for each in silent if not _is_of_the_silent(state, each)]
    # Where one that spoke is known to differ, those who left nothing are not to blame elsewhere.
    yield from told or silent or _refused_before(state)


def _is_of_the_silent(state: JobState, mismatch: Mismatch) -> bool:
    return all(state.ranks[rank].counts is None for rank in mismatch.culprits)


def _brought(state: JobState) -> dict[tuple[str, int], dict[int, RankOperation]]:
    """Returns what members brought to each collective that somebody has not finished."""
    standing = {
        (op.group, op.seq)
        for rank in state.ranks
        for op in (*rank.issued, *([rank.doing] if rank.doing else []))
        if not op.is_finished and op.group in state.group_named and op.seq is not None
    }
    found: dict[tuple[str, int], dict[int, RankOperation]] = defaultdict(dict)
    for rank in state.ranks:
        for op in (*rank.issued, *([rank.doing] if rank.doing else [])):
            if (op.group, op.seq) in standing and op.group is not None and op.seq is not None:
                found[op.group, op.seq].setdefault(rank.rank, op)
    return found


def _difference(brought: Mapping[int, RankOperation]) -> Difference | None:
    operations = list(brought.values())
    if len({op.op for op in operations}) > 1:
        return Difference.OPERATION
    if len({op.dtype for op in operations if op.dtype}) > 1:
        return Difference.DTYPE
    is_even = operations[0].op in _EVEN
    sizes = {op.numel_in for op in operations if op.numel_in is not None}
    return Difference.SIZE if is_even and len(sizes) > 1 else None


Signature = tuple[str, str | None, int | None]


def _signature(operation: RankOperation) -> Signature:
    return operation.op, operation.dtype, operation.numel_in


def _culprits(
    state: JobState, brought: Mapping[int, RankOperation]
) -> tuple[tuple[int, ...], bool]:
    """Returns who deviates, and whether peers tell it; () where nothing does."""
    sides: dict[Signature, list[int]] = defaultdict(list)
    for rank, operation in brought.items():
        sides[_signature(operation)].append(rank)
    largest = max(sides.values(), key=len)
    if 2 * len(largest) > len(brought):
        return tuple(sorted(set(brought) - set(largest))), True
    unusual = {rank: is_unusual_there(state.ranks[rank], op) for rank, op in brought.items()}
    guilty = tuple(sorted(rank for rank, odd in unusual.items() if odd))
    return (guilty if len(guilty) < len(brought) else ()), False


def is_unusual_there(rank: RankState, operation: RankOperation) -> bool | None:
    """Tells whether a rank brought to a collective what it did not bring there before.

    None where its past holds nothing of that group.
    """
    before = []
    for op in rank.issued:
        if op.group == operation.group and op.seq == operation.seq:
            break
        before.append((op.group, *_signature(op)))
    if not any(group == operation.group for group, *_ in before) or operation.seq is None:
        return None
    usual = usual_next(before)
    same_group = {tuple(rest) for group, *rest in before if group == operation.group}
    is_new = _signature(operation) not in same_group
    return is_new or (usual is not None and usual != (operation.group, *_signature(operation)))


def _with_the_silent(state: JobState, meeting: StalledCollective) -> Iterator[Mismatch]:
    """Yields what differs from a member that ended on bytes of another size and left no dump."""
    spoke = {r: op for r, op in meeting.operations.items() if op.numel_in is not None}
    refused = [r for r in meeting.group.ranks if _ended_on_size(state.ranks[r], meeting, spoke)]
    if not refused or not spoke:
        return
    guilty: tuple[int, ...] = ()
    if not _are_most(refused, spoke):
        odd = (r for r, op in spoke.items() if is_unusual_there(state.ranks[r], op))
        guilty = tuple(r for r in odd if not _has_company(state, r, meeting.group))
    agree = all(_expected_usual(state.ranks[r], meeting, spoke) for r in refused)
    if guilty and agree and not any(_got_usual(state.ranks[r], meeting, spoke) for r in refused):
        # Who was refused called what they call: however odd that is, the few are who sent the rest.
        if 2 * (len(spoke) + len(refused)) <= len(meeting.group.ranks):
            return
        guilty = ()
    if not guilty and agree:
        guilty = _senders(meeting, refused, spoke)
        if not guilty:
            return
    difference = Difference.BYTES
    if guilty and guilty[0] in meeting.operations:
        previous = _previous(state.ranks[guilty[0]], meeting.operations[guilty[0]])
        if previous is not None:
            difference = _difference({0: previous, 1: meeting.operations[guilty[0]]}) or difference
    yield Mismatch(
        meeting.group,
        meeting.seq,
        difference,
        spoke,
        tuple(sorted(guilty or refused)),
        by_peers=False,
    )


def _refused_before(state: JobState) -> Iterator[Mismatch]:
    """Yields what differs from a rank that ended on other bytes where no one stands any more.

    A member that sends more than it gets is done, and goes on to where it waits for somebody else:

        tp_1 all_reduce 21    rank 2  expected 64 bytes, got 96, ended    left no dump
                              rank 3  brought 96 elements, always 64      waits in dp_1 now
    """
    for rank in state.ranks:
        if rank.expected_bytes is None or rank.counts is not None:
            continue
        groups = [group for group in state.groups if rank.rank in group.ranks]
        found = [each for group in groups for each in _refused_in(state, rank, group)]
        # Whoever brought what it never did is at fault; what others brought only came beside it.
        found = [each for each in found if rank.rank not in each.culprits] or found
        if len({each.culprits for each in found}) == 1:
            yield found[0]


def _refused_in(state: JobState, refused: RankState, group: JobGroup) -> Iterator[Mismatch]:
    """Yields what peers brought to their last two collectives of a group, where it was refused.

    The last comes first: a peer may be done with what was refused, and then it is the one before.
    """
    for peer in group.ranks:
        there = [op for op in state.ranks[peer].issued if op.group == group.name]
        for at, op in list(enumerate(there))[:-3:-1]:
            if not _is_piece(refused.arrived_bytes, group, op):
                continue
            is_odd = is_unusual_there(state.ranks[peer], op)
            usual = [_is_piece(refused.expected_bytes, group, each) for each in there[:at]]
            if is_odd and any(usual):
                difference = _difference({0: there[at - 1], 1: op}) or Difference.BYTES
                yield Mismatch(group, op.seq, difference, {peer: op}, (peer,), by_peers=False)
            elif any(_is_piece(refused.expected_bytes, group, each) for each in there[at + 1 :]):
                return  # it was refused in the later one, to which this peer has come as well
            elif is_odd is False and not _is_piece(refused.expected_bytes, group, op):
                culprit = (refused.rank,)
                yield Mismatch(group, op.seq, Difference.BYTES, {peer: op}, culprit, False)


def _senders(
    meeting: StalledCollective, refused: list[int], spoke: Mapping[int, RankOperation]
) -> tuple[int, ...]:
    """Returns who sent what some ranks refused, as far as they left nothing that says otherwise.

    In gloo's ring each member receives from the next one (gloo/allreduce.cc, main of April 2026).
    """
    if next(iter(spoke.values())).op not in ("all_reduce", "allreduce"):
        return meeting.unheard if len(meeting.unheard) == 1 else ()
    ranks = list(meeting.group.ranks)
    return tuple(
        sender
        for rank in refused
        if (sender := ranks[(ranks.index(rank) + 1) % len(ranks)]) not in spoke
    )


def _ended_on_size(
    rank: RankState, meeting: StalledCollective, spoke: Mapping[int, RankOperation]
) -> bool:
    """Tells whether a rank ended on bytes of another size, there or nobody knows where."""
    if rank.expected_bytes is None or rank.counts is not None:
        return False
    if spoke and not _may_be_there(rank, meeting, spoke):
        return False
    return rank.doing is None or rank.doing.group in (None, meeting.group.name)


def _has_company(state: JobState, rank: int, group: JobGroup) -> bool:
    """Tells whether another member stands at the line at which a rank does, and was not refused."""
    site = site_of(state.ranks[rank].stack)
    others = (state.ranks[each] for each in group.ranks if each != rank)
    return site is not None and any(
        each.expected_bytes is None and site_of(each.stack) == site for each in others
    )


def _are_most(refused: list[int], spoke: Mapping[int, RankOperation]) -> bool:
    """Tells whether several ranks wait in one and the same call, and fewer refused what came."""
    signatures = {_signature(operation) for operation in spoke.values()}
    return len(signatures) == 1 and len(spoke) > max(1, len(refused))


def _expected_usual(
    rank: RankState, meeting: StalledCollective, spoke: Mapping[int, RankOperation]
) -> bool:
    """Tells whether a rank expected as many bytes as those send who brought what they always do."""
    return _is_piece(rank.expected_bytes, meeting.group, _first(spoke)) is True


def _got_usual(
    rank: RankState, meeting: StalledCollective, spoke: Mapping[int, RankOperation]
) -> bool:
    """Tells whether what a rank got may as well be what those send who spoke."""
    return _is_piece(rank.arrived_bytes, meeting.group, _first(spoke)) is not False


def _may_be_there(
    rank: RankState, meeting: StalledCollective, spoke: Mapping[int, RankOperation]
) -> bool:
    """Tells whether what a rank got or expected may be of the call in which the others wait."""
    sizes = (rank.arrived_bytes, rank.expected_bytes)
    return any(_is_piece(size, meeting.group, _first(spoke)) is not False for size in sizes)


def _first(spoke: Mapping[int, RankOperation]) -> RankOperation:
    return next(iter(spoke.values()))


def _is_piece(size: int | None, group: JobGroup, operation: RankOperation) -> bool | None:
    """Tells whether so many bytes are what gloo's ring sends at once; None where nothing tells.

    It sends an all-reduce in two pieces for each member, and what is gathered in two.
    """
    pieces = {"all_reduce": 2 * len(group.ranks), "all_gather": 2}.get(operation.op)
    if pieces is None or size is None:
        return None
    piece = (operation.numel_in or 0) * _BYTES.get(operation.dtype or "", 4) / pieces
    return abs(size - piece) <= max(4, 0.02 * piece)


def _previous(rank: RankState, operation: RankOperation) -> RankOperation | None:
    """Returns the collective before in the same group, or None."""
    before = None
    for op in rank.issued:
        if op.group == operation.group and op.seq == operation.seq:
            break
        before = op if op.group == operation.group else before
    return before
