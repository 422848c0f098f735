"""The pipeline stages of ranks: by the layout, or by whom they first receive from.

    rank 0  sends to 2 first               stage 0
    rank 2  receives from 0 first          stage 1
    rank 4  receives from 2 first          stage 2

Ranks of one stage exchange messages in one order; those of another need not: in 1F1B each has its
own. In a ring, or where the first messages are no longer held, nothing tells a stage.
"""

from __future__ import annotations

from collections.abc import Mapping

from serried.diagnose.job_state.state import JobState, RankState


def stages_of(state: JobState) -> Mapping[int, int]:
    """Returns the stage of each rank; of ranks that exchange messages and whose is not told, each
    has a number of its own below 0, and those without messages are not named."""
    at = {rank.rank: state.coordinates(rank.rank).get("pp", 0) for rank in state.ranks}
    if len(set(at.values())) > 1:
        return at
    before = {each.rank: _before(each) for each in state.ranks}
    found: dict[int, int] = {}
    for rank, previous in before.items():
        if previous is None and not any(op.peer is not None for op in state.ranks[rank].issued):
            continue
        found[rank] = -1 - rank if _is_cut(state.ranks[rank]) else _hops(before, rank)
    return found


def _before(rank: RankState) -> int | None:
    """Returns whom a rank receives from before it sends anything; None for the first stage."""
    first = next((op for op in rank.issued if op.peer is not None), None)
    return first.peer if first is not None and first.op == "recv" else None


def _is_cut(rank: RankState) -> bool:
    """Tells whether the first operations are no longer held."""
    first: dict[str, int] = {}
    for op in rank.issued:
        if op.group and op.seq:
            first.setdefault(op.group, op.seq)
    return any(seq > 1 for seq in first.values())


def _hops(before: Mapping[int, int | None], rank: int) -> int:
    """Returns how many ranks a message goes through before; 0 for what comes round in a ring."""
    seen = {rank}
    previous = before[rank]
    while previous is not None and previous not in seen:
        seen.add(previous)
        previous = before.get(previous)
    return 0 if previous is not None else len(seen) - 1
