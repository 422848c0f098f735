"""Who is ahead in its program and yet missing from a collective: it has left that out.

    rank 1   train:102 > forward_stage:74 > tp_sync:47    waits in all_reduce 10 of tp_0
    rank 0   train:120                                    has issued 9, and is past line 102

Two ranks that have issued as much in every other group are in the same step. There, the one whose
line comes later has passed the place of the other. One that is in an earlier step is behind,
whatever its line, and waits are no fault of its.

Where dumps hold the lines of what was issued, one that stands before the line of its own last call
is a step further on, and has passed whatever comes after that:

    rank 2   step:451 > pipeline     its last call was all_reduce 2 of mp_0, from step:458
    rank 0   step:470                waits in all_reduce 3 of the world, behind that line
"""

from __future__ import annotations

from serried.diagnose.evidence.stacks.stack import Frame
from serried.diagnose.job_state.program import site_of
from serried.diagnose.job_state.state import JobState, RankState
from serried.diagnose.waits.graph import StalledCollective, WaitGraph

Place = tuple[tuple[str, int], ...]
LEAST_KINDS = 1
"""Other kinds of groups in which ranks must have met, for their counts to tell the step."""


def left_out(graph: WaitGraph, ranks: tuple[int, ...]) -> dict[int, StalledCollective]:
    """Returns those of ``ranks`` that are past a collective they have not issued, with it.

    Somebody of ``ranks`` waits in it: whoever waits only for messages of the others may be a round
    of its loop behind, and then stands at a later line.
    """
    found = {}
    states, asked = graph.state.ranks, set(ranks)
    for meeting in graph.meetings:
        if asked.isdisjoint(meeting.came):
            continue
        for rank in asked.intersection(meeting.absent):
            others = [states[other] for other in meeting.came[:8]]
            name = meeting.group.name
            are_most = 2 * len(meeting.came) > len(meeting.group.ranks)
            if any(_is_past(states[rank], other, name) for other in others) or (
                are_most and all(_is_round(graph.state, states[rank], o, name) for o in others)
            ):
                found[rank] = meeting
    return found


def _is_round(state: JobState, one: RankState, other: RankState, group: str) -> bool:
    """Tells whether a rank is in its next step, and has issued all that another has but one.

    Both have issued as much in all other kinds of groups, so that no inner loop is meant. Where few
    came to what most did not, these few may be too many.
    """
    kind = state.group_named[group].kind
    mine, theirs = _by_kind(state, one), _by_kind(state, other)
    if not one.issued or len(theirs.keys() - {kind}) < LEAST_KINDS:
        return False
    if any(mine.get(k) != count for k, count in theirs.items() if k != kind):
        return False
    last = _place_of(one.issued[-1].frames)
    return _is_behind(last, _place(one)) and _is_behind(_place(other), last)


def _by_kind(state: JobState, rank: RankState) -> dict[str, int]:
    """Returns how many collectives a rank issued in each kind of group."""
    found: dict[str, int] = {}
    for name, count in (rank.counts or {}).items():
        if name in state.group_named:
            kind = state.group_named[name].kind
            found[kind] = found.get(kind, 0) + count
    return found


def _is_past(one: RankState, other: RankState, group: str) -> bool:
    """Tells whether a rank stands behind another's place of the same step."""
    if one.counts is None or other.counts is None or not _same_step(one, other, group):
        return False
    return _is_behind(_place(one), _place(other))


def _is_behind(one: Place, other: Place) -> bool:
    """Tells whether a place of a program comes after another, where both are in one function."""
    for (function, line), (their_function, their_line) in zip(one, other, strict=False):
        if function != their_function:
            return False
        if line != their_line:
            return line > their_line
    return False


def _same_step(one: RankState, other: RankState, group: str) -> bool:
    """Tells whether two ranks issued as much in each group but one, of which they share some."""
    mine, theirs = one.counts or {}, other.counts or {}
    shared = (mine.keys() & theirs.keys()) - {group}
    return bool(shared) and all(mine[name] == theirs[name] for name in shared)


def _place(rank: RankState) -> Place:
    return _place_of(rank.stack)


def _place_of(frames: tuple[Frame, ...]) -> Place:
    """Returns the user's frames of a stack from the outermost on: functions with their lines.

    Dumps have whole paths, and names of functions alone; stacks shorter paths, and classes as well.
    """
    return tuple(
        (f"{frame.file.rsplit('/', 1)[-1]}:{frame.function.rsplit('.', 1)[-1]}", frame.line)
        for frame in reversed(frames)
        if frame.is_users
    )


def at_work(state: JobState) -> RankState | None:
    """Returns the one rank that ran on a processor while all others were idle, or None.

    A wait for others takes no processor's time, so this one is in none. That is told only where
    no other stands at its line: there all do the same by turns.
    """
    running = [each for each in state.ranks if each.is_active]
    idle = [each for each in state.ranks if each.is_active is False]
    if len(running) != 1 or len(idle) < max(1, state.world_size - 1):
        return None
    site = site_of(running[0].stack)
    is_alone = site is not None and all(site_of(each.stack) != site for each in idle)
    return running[0] if is_alone else None
