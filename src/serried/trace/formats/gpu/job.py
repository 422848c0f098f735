"""The ranks of one job from their profiles: checked to be of one job, then side by side.

rank0.json   {"rank": 0, "world_size": 8}   ─┐
rank3.json   {"rank": 3, "world_size": 8}   ─┴─>  a GpuTrace of ranks 0 and 3, of 8
"""

from __future__ import annotations

from collections.abc import Sequence

from serried.errors import InputError, listed
from serried.finding import Finding, said
from serried.limits import TRACE_RANKS
from serried.trace.gpu.activity import GpuRank, GpuTrace


def gpu_trace(tool: str, ranks: Sequence[GpuRank], findings: Sequence[Finding] = ()) -> GpuTrace:
    """Returns the trace of ``ranks``, in any order.

    Raises InputError when two are of one number, when they say jobs of two sizes, or when a
    number lies outside the job.
    """
    by_number: dict[int, GpuRank] = {}
    for each in ranks:
        if (other := by_number.get(each.rank)) is not None:
            raise InputError(
                "rank {rank} stands twice, in {first} and {second}; give only one of them",
                rank=each.rank,
                first=other.path,
                second=each.path,
            )
        by_number[each.rank] = each
    _require_one_size([by_number[number] for number in sorted(by_number)])
    ordered = tuple(by_number[number] for number in sorted(by_number))
    return GpuTrace(tool, ordered, (*findings, *_absent(ordered)))


def _require_one_size(ranks: Sequence[GpuRank]) -> None:
    sizes = {each.world_size: each for each in ranks if each.world_size is not None}
    if len(sizes) > 1:
        first, second = [*sizes.values()][:2]
        raise InputError(
            "{first} is of a job of {one} ranks and {second} of one of {other}; give the files "
            "of one job",
            first=first.path,
            one=first.world_size,
            second=second.path,
            other=second.world_size,
        )
    world = next(iter(sizes), TRACE_RANKS.most)
    for each in ranks:
        if each.rank >= world:
            raise InputError(
                "{path} is of rank {rank}, outside the job's {world} ranks; a number in the "
                "file is damaged, or it is of another job",
                path=each.path,
                rank=each.rank,
                world=world,
            )


def _absent(ranks: Sequence[GpuRank]) -> list[Finding]:
    """Says how many ranks of the job have no file."""
    world = next((each.world_size for each in ranks if each.world_size), len(ranks))
    if world <= len(ranks):
        return []
    evidence = said(
        "the files are of {count} of the job's {world} ranks: {ranks}",
        count=len(ranks),
        world=world,
        ranks=listed((each.rank for each in ranks), limit=8),
    )
    return [Finding("missing", (evidence,))]
