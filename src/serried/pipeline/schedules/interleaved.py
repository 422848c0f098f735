"""Interleaved 1F1B: every rank holds several stages and runs them depth first, in groups.

    p = 2 ranks, m = 4, v = 2 chunks, groups of N = 2 microbatches; rank 0 has stages 0 and 2

    order of forwards    0F0 0F1 2F0 2F1 | 0F2 0F3 2F2 2F3       group by group, in each
    order of backwards   2B0 2B1 0B0 0B1 | 2B2 2B3 0B2 0B3       chunk by chunk
    rank 0, warm-up 4    0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3
    rank 1, warm-up 2    1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3

Warm-up of rank r: 2 (p - 1 - r) + (v - 1) N forwards. Idle (p - 1)(f + b) with f and b of one
chunk, 1/v of 1F1B's; larger groups hide more latency and keep (v - 1) more activations for
each microbatch they grow by. Rule: arXiv 2104.04473 and Megatron's ``get_schedule_table``
with ``microbatch_group_size_per_vp_stage``. Megatron asks for p <= N <= m and a last group
that is full or not smaller than p; PyTorch's class is N = m / max(1, m // p), so it also runs
one group of m < p. Other groups are taken here as long as no rank deadlocks.
"""

from __future__ import annotations

import numpy as np

from serried.action import ActionKind
from serried.errors import InputError, listed
from serried.pipeline.dependencies import runs
from serried.pipeline.packed import Codes, Numbers, work
from serried.pipeline.placement import loop
from serried.pipeline.schedule import Schedule
from serried.pipeline.schedules.sizes import at_least, groups_within, some_of_each
from serried.pipeline.schedules.turns import one_each


def interleaved_one_f_one_b(
    num_ranks: int,
    num_microbatches: int,
    chunks: int = 2,
    *,
    group: int | None = None,
    moe_overlap: bool = False,
) -> Schedule:
    """Returns the schedule of ``chunks`` stages a rank and groups of ``group`` microbatches.

    ``group`` is p by default, or m where that is less. ``moe_overlap`` warms up with one forward
    more, so that the forward and the backward of a pair belong to different microbatches, as
    Megatron does for ``overlap_moe_expert_parallel_comm``.

    >>> print(*interleaved_one_f_one_b(2, 2)[0])
    0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1

    Raises InputError for a group that no rank could run.
    """
    name = "interleaved-1f1b"
    some_of_each(name, num_ranks, num_microbatches)
    at_least(name, "chunks", chunks, 1)
    group = min(num_ranks, num_microbatches) if group is None else group
    groups_within(name, group, 1, max(group, num_microbatches))
    order = depth_first(num_microbatches, chunks, group)
    ranks = [
        one_each(
            forwards(rank, num_ranks, order),
            backwards(rank, num_ranks, chunks, order),
            warmup=2 * (num_ranks - 1 - rank) + (chunks - 1) * group + moe_overlap,
        )
        for rank in range(num_ranks)
    ]
    placement = loop(num_ranks, chunks)
    schedule = Schedule.of(name, placement, num_microbatches, ranks, group=group)
    if not _runs_in_megatron_or_torch(num_ranks, num_microbatches, group):
        _refuse_unless_it_runs(schedule, group)
    return schedule


def _runs_in_megatron_or_torch(num_ranks: int, num_microbatches: int, group: int) -> bool:
    """Says whether one of the two references takes these sizes."""
    rest = num_microbatches % group
    in_megatron = num_ranks <= group <= num_microbatches and (rest == 0 or rest >= num_ranks)
    return in_megatron or group == num_microbatches


def _refuse_unless_it_runs(schedule: Schedule, group: int) -> None:
    """Refuses what both references refuse, but for groups of another size that do run.

    A last group smaller than p makes some rank wait for a microbatch that its own list puts
    off; whether that ends in a deadlock depends on all the sizes, so the lists are tried.
    """
    num_ranks, num_microbatches = schedule.num_ranks, schedule.num_microbatches
    if group in (num_ranks, num_microbatches) or not runs(schedule):
        sizes = range(1, num_microbatches + 1)
        raise InputError(
            "interleaved-1f1b with {ranks} ranks and {microbatches} microbatches in groups of "
            "{group} cannot be; the last group must be full or hold at least {ranks}: groups "
            "that work are {groups}",
            ranks=num_ranks,
            microbatches=num_microbatches,
            group=group,
            groups=listed(
                n for n in sizes if _runs_in_megatron_or_torch(num_ranks, num_microbatches, n)
            ),
        )


def depth_first(num_microbatches: int, chunks: int, group: int) -> tuple[Numbers, Numbers]:
    """Returns the chunk and the microbatch of each turn: group by group, in each chunk by chunk.

    >>> chunk, microbatch = depth_first(3, 2, 2)
    >>> chunk.tolist(), microbatch.tolist()
    ([0, 0, 1, 1, 0, 1], [0, 1, 0, 1, 2, 2])
    """
    microbatch = np.tile(np.arange(num_microbatches), chunks)
    chunk = np.repeat(np.arange(chunks), num_microbatches)
    turn = np.lexsort((microbatch, chunk, microbatch // group))
    return chunk[turn], microbatch[turn]


def forwards(rank: int, num_ranks: int, order: tuple[Numbers, Numbers]) -> Codes:
    """Returns a rank's forwards in the order of ``depth_first``."""
    chunk, microbatch = order
    return work(ActionKind.F, chunk * num_ranks + rank, microbatch)


def backwards(
    rank: int,
    num_ranks: int,
    chunks: int,
    order: tuple[Numbers, Numbers],
    kind: ActionKind = ActionKind.B,
) -> Codes:
    """Returns a rank's backwards, or their halves, in that order with the last chunk first."""
    chunk, microbatch = order
    return work(kind, (chunks - 1 - chunk) * num_ranks + rank, microbatch)
