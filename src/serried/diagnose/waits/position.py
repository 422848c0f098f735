"""Who is ahead in its program and yet missing from a collective: it has left that out.

    rank 1   train:102 > forward_stage:74 > tp_sync:47    waits in all_reduce 10 of tp_0
    rank 0   train:120                                    has issued 9, and is past line 102

Two ranks that have issued as much in every other group are in the same step. There, the one whose
line comes later has passed the place of the other. One that is in an earlier step is behind,
whatever its line, and waits are no fault of its.
"""

from __future__ import annotations

from serried.diagnose.job_state.program import site_of
from serried.diagnose.job_state.state import JobState, RankState
from serried.diagnose.waits.graph import StalledCollective, WaitGraph

Place = tuple[tuple[str, int], ...]


def left_out(graph: WaitGraph, ranks: tuple[int, ...]) -> dict[int, StalledCollective]:
    """Returns those of ``ranks`` that are past a collective they have not issued, with it."""
    found = {}
    states = graph.state.ranks
    for meeting in graph.meetings:
        for rank in meeting.absent:
            if rank in ranks and any(
                _is_past(states[rank], states[other], meeting.group.name)
                for other in meeting.came[:8]
            ):
                found[rank] = meeting
    return found


def _is_past(one: RankState, other: RankState, group: str) -> bool:
    """Tells whether a rank stands behind another's place of the same step."""
    if one.counts is None or other.counts is None or not _same_step(one, other, group):
        return False
    mine, theirs = _place(one), _place(other)
    for (function, line), (their_function, their_line) in zip(mine, theirs, strict=False):
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
    """Returns the user's frames of a stack from the outermost on: functions with their lines."""
    return tuple(
        (f"{frame.file}:{frame.function}", frame.line)
        for frame in reversed(rank.stack)
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
