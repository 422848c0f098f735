"""Operations that torch's own check of collectives names (TORCH_DISTRIBUTED_DEBUG=DETAIL)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from serried.diagnose.waits.endings import Endings
from serried.diagnose.waits.state import JobGroup, RankOperation, RankState

_OP_WORDS = {
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "_ALLGATHER_BASE": "all_gather_into_tensor",
    "REDUCE_SCATTER": "reduce_scatter",
    "_REDUCE_SCATTER_BASE": "reduce_scatter_tensor",
    "ALLTOALL": "all_to_all",
    "ALLTOALL_BASE": "all_to_all_single",
}


def put_fingerprints(ranks: list[RankState], ends: Endings, groups: Iterable[JobGroup]) -> None:
    """Gives ranks the operations that torch's check names by ranks inside a group."""
    named = {group.name: group for group in groups}
    for speaker, sign in ends.fingerprints.items():
        doing = ranks[speaker].doing if speaker < len(ranks) else None
        group = named.get(doing.group or "") if doing else None
        sides = sign.facts.get("sides")
        if group is None or not isinstance(sides, tuple):
            continue
        for place, facts in sides:
            if place >= len(group.ranks):
                continue
            rank = group.ranks[place]
            operation = RankOperation(
                _OP_WORDS.get(facts.op, facts.op.lower()),
                group.name,
                doing.seq if doing else facts.seq,
                numel_in=facts.numel_in,
                dtype=facts.dtype,
                is_finished=False,
                quote=sign.quote,
            )
            ranks[rank] = replace(ranks[rank], doing=operation)
