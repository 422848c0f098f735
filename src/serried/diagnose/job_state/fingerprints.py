"""Operations that torch's own check of collectives names (TORCH_DISTRIBUTED_DEBUG=DETAIL).

    [rank3]: … Rank 1 is running collective: BROADCAST …, but Rank 0 is running: ALLREDUCE …

The ranks of such a line count inside a group that it does not name. Whoever says it comes first,
so rank 3 is member 1 of the group: that and what other ranks say of themselves tell which it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from serried.diagnose.evidence.sign import CollectiveFacts, Sign
from serried.diagnose.job_state.endings import Endings
from serried.diagnose.job_state.given import WORLD
from serried.diagnose.job_state.state import JobGroup, RankOperation, RankState

_OP_WORDS = {
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "_ALLGATHER_BASE": "all_gather_into_tensor",
    "REDUCE_SCATTER": "reduce_scatter",
    "_REDUCE_SCATTER_BASE": "reduce_scatter_tensor",
    "ALLTOALL": "all_to_all",
    "ALLTOALL_BASE": "all_to_all_single",
}

Side = tuple[int, CollectiveFacts]


def put_fingerprints(ranks: list[RankState], ends: Endings, groups: Iterable[JobGroup]) -> None:
    """Gives ranks the operations that torch's check names by ranks inside a group."""
    known = tuple(groups)
    named = {group.name: group for group in known}
    said = {rank: _sides(sign) for rank, sign in ends.fingerprints.items() if rank < len(ranks)}
    standing = {rank: ranks[rank].doing for rank in said}
    of_rank = {rank: named.get(doing.group or "") for rank, doing in standing.items() if doing}
    if not any(of_rank.values()):
        of_rank = {rank: _group_of(rank, said, known) for rank in said}
    for speaker, sides in said.items():
        doing, group = standing[speaker], of_rank.get(speaker)
        if group is None:
            continue
        for place, facts in sides:
            if place >= len(group.ranks):
                continue
            rank = group.ranks[place]
            operation = RankOperation(
                _OP_WORDS.get(facts.op or "", (facts.op or "").lower()),
                group.name,
                doing.seq if doing and doing.group == group.name else facts.seq,
                numel_in=facts.numel_in,
                dtype=facts.dtype,
                is_finished=False,
                quote=ends.fingerprints[speaker].quote,
            )
            ranks[rank] = replace(ranks[rank], doing=operation)


def _sides(sign: Sign) -> tuple[Side, ...]:
    sides = sign.facts.get("sides")
    return sides if isinstance(sides, tuple) else ()


def _group_of(
    speaker: int, said: Mapping[int, tuple[Side, ...]], groups: Iterable[JobGroup]
) -> JobGroup | None:
    """Returns the group that a rank's line is of, as far as all that fit have the same members."""
    fitting = [group for group in groups if _fits(group, speaker, said)]
    if len({group.ranks for group in fitting}) != 1:
        return None
    return next((group for group in fitting if group.kind != WORLD), fitting[0])


def _fits(group: JobGroup, speaker: int, said: Mapping[int, tuple[Side, ...]]) -> bool:
    """Tells whether places of a rank's line, in a group, are of ranks that say the same."""
    sides = said[speaker]
    if not sides or any(place >= len(group.ranks) for place, _ in sides):
        return False
    if group.ranks[sides[0][0]] != speaker:
        return False
    theirs = [(said.get(group.ranks[place], ()), place) for place, _ in sides]
    return all(not own or own[0][0] == place for own, place in theirs)
