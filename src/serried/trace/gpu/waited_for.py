"""The rank that others wait for: it comes last to the collectives that they spin in.

    rank 0   ├─ computes ─┤├──── waits in all_reduce ────┤
    rank 1   ├─ computes ─┤├──── waits ──────────────────┤
    rank 2   ├─ computes for longer ─────────┤├ transfer ┤    waits least: they wait for it

A long kernel of a collective accuses nobody: who is in it for long came early. So a rank is
named by what others wait where it is the last to come, and only where that is steady: in half of
its meetings or more, and 1 % of the window or more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from serried.trace.gpu.meetings import Meeting

STEADY = 0.5
WORTH_SAYING = 0.01
LEAST_MEETINGS = 3
_A_WAIT = 0.02
"""Who is late by less of the transfer than this is not waited for."""


@dataclass(frozen=True)
class RankWaits:
    """Holds what a rank waits in collectives, and what others wait there for it; in ns."""

    rank: int
    meetings: int
    waits_ns: int
    waited_for_ns: int
    """What the others waited, a mean over them, in meetings to which it came last."""
    was_last: int
    """To how many meetings it came last."""


def rank_waits(found: Sequence[Meeting], ranks: Sequence[int]) -> list[RankWaits]:
    """Returns each rank's waits, the one that others wait for longest first.

    A meeting of which a member has no file tells nothing: that one may be who is waited for.
    """
    rows = {rank: [0, 0, 0, 0] for rank in ranks}
    for meeting in found:
        if not meeting.is_whole:
            continue
        transfer = meeting.transfer_ns
        waits = [took - transfer for took in meeting.took_ns]
        mean = sum(waits) // (len(waits) - 1)
        for rank, wait in zip(meeting.ranks, waits, strict=True):
            rows[rank][0] += 1
            rows[rank][1] += wait
        if mean > _A_WAIT * transfer:
            rows[meeting.last][2] += mean
            rows[meeting.last][3] += 1
    every = [RankWaits(rank, *row) for rank, row in rows.items()]
    return sorted(every, key=lambda each: (-each.waited_for_ns, each.rank))


def waited_for(waits: Sequence[RankWaits], window_ns: int) -> RankWaits | None:
    """Returns the rank that the others keep waiting for; None where there is no such one."""
    if len(waits) < 2:
        return None
    first = waits[0]
    is_steady = first.meetings >= LEAST_MEETINGS and first.was_last >= STEADY * first.meetings
    return first if is_steady and first.waited_for_ns >= WORTH_SAYING * window_ns else None
