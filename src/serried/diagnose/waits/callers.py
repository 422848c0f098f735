"""Who calls a collective from another line than all others, where it stands though all have come.

    broadcast 88 of world     ranks 0, 1, 3   train.py:59  from rank 0    0 and 2 stand in it,
                              rank 2          train.py:58  from itself    1 and 3 are done

What a recorder does not hold, such as the source of a broadcast, may differ then. Yet programs let
a rank call from a line of its own as well, as where it is the source (``if rank == source: ...``).
So a rank is told only where it called from the line of the others before, and never by itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from serried.diagnose.evidence.stacks.stack import Frame
from serried.diagnose.job_state.state import JobState, RankOperation
from serried.diagnose.waits.graph import StalledCollective, WaitGraph

LEAST = 3
"""Ranks that must have called a collective, for one of them to be the odd one."""
LOOKED_BACK = 256
"""Calls of a group before the one that stands, of which one must be from the others' line."""


@dataclass(frozen=True)
class OddCall:
    """Says that one rank of a collective called it from another line than all others."""

    rank: int
    meeting: StalledCollective
    line: Frame
    others: Frame
    """Where the others called it."""


def odd_calls(graph: WaitGraph) -> Iterator[OddCall]:
    """Yields the odd callers of collectives that stand though all members have come."""
    for meeting in graph.meetings:
        if meeting.awaited or meeting.seq is None:
            continue
        lines = _lines(graph.state, meeting)[meeting.seq]
        found = _odd_one(lines) if len(lines) == len(meeting.group.ranks) else None
        if found is None or found not in meeting.operations:
            continue
        others = next(line for rank, line in lines.items() if rank != found)
        if _came_from(graph.state, meeting, found, others):
            yield OddCall(found, meeting, lines[found], others)


def _came_from(state: JobState, meeting: StalledCollective, rank: int, others: Frame) -> bool:
    """Tells whether a rank called from the line of the others before, and was never the odd one."""
    calls = _lines(state, meeting, LOOKED_BACK).items()
    earlier = [lines for seq, lines in calls if seq != meeting.seq]
    was_odd = any(_odd_one(lines) == rank for lines in earlier)
    return not was_odd and any(lines.get(rank) == others for lines in earlier)


def _lines(
    state: JobState, meeting: StalledCollective, back: int = 0
) -> dict[int, dict[int, Frame]]:
    """Returns by number and rank the line of the user's code from which a call was made.

    ``back`` tells how many calls of the group before the one that stands are looked at.
    """
    assert meeting.seq is not None
    found: dict[int, dict[int, Frame]] = defaultdict(dict)
    for rank in meeting.group.ranks:
        for call in reversed(state.ranks[rank].issued):
            if call.group != meeting.group.name or call.seq is None or call.seq > meeting.seq:
                continue
            if call.seq < meeting.seq - back:
                break
            if (line := _line(call)) is not None:
                found[call.seq][rank] = line
            if not back:
                break
    return found


def _line(call: RankOperation) -> Frame | None:
    return next((frame for frame in call.frames if frame.is_users), None)


def _odd_one(lines: dict[int, Frame]) -> int | None:
    """Returns the rank whose line differs where all others share one; None where none is so."""
    counted = Counter(lines.values())
    if len(lines) < LEAST or sorted(counted.values())[:-1] != [1]:
        return None
    return next(rank for rank, line in lines.items() if counted[line] == 1)
