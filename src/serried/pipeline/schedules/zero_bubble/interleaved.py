"""Interleaved zero bubble: interleaved 1F1B with the weight half of each backward put off.

    p = 2 ranks, m = 2, v = 2 chunks, groups of N = 2

    rank 0  0F0 0F1 2F0 2F1  .  2I0 2W0 2I1 2W1 0I0 0W0 0I1 0W1
    rank 1   .  1F0 1F1 3F0 3I0 3F1 3I1 3W0 1I0 3W1 1I1 1W0 1W1

Forwards and input halves come in the order of interleaved 1F1B, after a warm-up of only
(v - 1) N + p - 1 - r forwards; on rank r the weight halves follow r input halves later. Idle
(p - 1)(f + i - w) with the times of one chunk. Rule: PyTorch's
``ScheduleInterleavedZeroBubble``, whose groups are N = m / max(1, m // p).
"""

from __future__ import annotations

from serried.action import ActionKind
from serried.errors import InputError, listed
from serried.pipeline.dependencies import runs
from serried.pipeline.placement import loop
from serried.pipeline.schedule import Schedule
from serried.pipeline.schedules.interleaved import backwards, depth_first, forwards
from serried.pipeline.schedules.sizes import at_least, groups_within, some_of_each
from serried.pipeline.schedules.turns import late_weights


def interleaved_zero_bubble(
    num_ranks: int, num_microbatches: int, chunks: int = 2, *, group: int | None = None
) -> Schedule:
    """Returns the schedule; ``group`` is m // max(1, m // p) by default, as in PyTorch.

    >>> print(*interleaved_zero_bubble(2, 2)[0])
    0F0 0F1 2F0 2F1 2I0 2W0 2I1 2W1 0I0 0W0 0I1 0W1

    Raises InputError for microbatches that the group does not divide.
    """
    name = "interleaved-zb"
    some_of_each(name, num_ranks, num_microbatches)
    at_least(name, "chunks", chunks, 1)
    rounds = max(1, num_microbatches // num_ranks)
    group = num_microbatches // rounds if group is None else group
    groups_within(name, group, 1, max(group, num_microbatches))
    order = depth_first(num_microbatches, chunks, group)
    ranks = [
        late_weights(
            forwards(rank, num_ranks, order),
            backwards(rank, num_ranks, chunks, order, ActionKind.I),
            backwards(rank, num_ranks, chunks, order, ActionKind.W),
            warmup=(chunks - 1) * group + num_ranks - 1 - rank,
            delay=rank,
        )
        for rank in range(num_ranks)
    ]
    placement = loop(num_ranks, chunks)
    schedule = Schedule.of(name, placement, num_microbatches, ranks, group=group)
    # Ranks may wait for each other in a circle where a group is shorter than the pipeline; running
    # the schedule tells whether they do.
    if num_microbatches % group or (
        group < min(num_ranks, num_microbatches) and not runs(schedule)
    ):
        raise _refusal(num_ranks, num_microbatches, group)
    return schedule


def _refusal(num_ranks: int, num_microbatches: int, group: int) -> InputError:
    sizes = range(min(num_ranks, num_microbatches), num_microbatches + 1)
    return InputError(
        "interleaved-zb with {ranks} ranks and {microbatches} microbatches in groups of {group} "
        "cannot be; groups must be full and hold at least {ranks}: groups that work are {groups}",
        ranks=num_ranks,
        microbatches=num_microbatches,
        group=group,
        groups=listed(n for n in sizes if num_microbatches % n == 0),
    )
