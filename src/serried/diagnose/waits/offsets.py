"""How far off the peer of a message is, so that ranks of a ring or a pipeline can be compared.

    ring of 0, 2, 4, 6 (cp)    4 sends to 6: +1 cp    6 sends to 0: +1 cp, and not -3

>>> state = JobState.of(8, [JobGroup("cp_0", "cp", (0, 2, 4, 6))], [])
>>> offset(state, 6, RankOperation("send", "cp_0", peer=0)), peer_at(state, 6, "+1 cp")
('+1 cp', 0)
>>> offset(state, 7, RankOperation("send", peer=0)), peer_at(state, 7, "+1")
('+1', 0)
"""

from __future__ import annotations

from collections.abc import Sequence

from serried.diagnose.job_state.state import JobGroup, JobState, RankOperation


def offset(state: JobState, rank: int, operation: RankOperation) -> str:
    """Returns how many places off a message's peer is in its group, or else in the job.

    The last of a ring has the first behind it, as the others have their next.
    """
    assert operation.peer is not None
    group = state.group_named.get(operation.group or "")
    if group is None or not {rank, operation.peer} <= set(group.ranks):
        return _signed(operation.peer - rank, state.world_size)
    ranks = group.ranks
    far = ranks.index(operation.peer) - ranks.index(rank)
    return f"{_signed(far, len(ranks))} {group.kind}"


def peer_at(state: JobState, rank: int, told: str) -> int:
    """Returns whom an offset, as ``offset`` writes it, leads to from a rank."""
    far, _, kind = told.partition(" ")
    group = _group(state, rank, kind) if kind else None
    if group is None:
        return (rank + int(far)) % state.world_size
    ranks: Sequence[int] = group.ranks
    return ranks[(ranks.index(rank) + int(far)) % len(ranks)]


def _group(state: JobState, rank: int, kind: str) -> JobGroup | None:
    return next((group for group in state.groups_of[rank] if group.kind == kind), None)


def _signed(far: int, size: int) -> str:
    """Returns the shorter way around, forwards where both are as long."""
    around = far % size
    return f"{around - size if around > size // 2 else around:+d}"
