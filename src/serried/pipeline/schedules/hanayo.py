"""Hanayo: every rank holds 2W stages, and microbatches run through the ranks in W waves.

    p = 2 ranks, m = 2, one wave (v = 2): stages 0 1 go down the ranks, 2 3 up again;
    all times one slot

    rank 0  0F0  .  0F1 3F0 3B0 3F1 3B1 0B0  .  0B1        forward  of stage s at 2i + s
    rank 1   .  1F0 2F0 1F1 2F1 2B0 1B0 2B1 1B1  .         backward of stage s at 2i + 2S - 1 - s

S = p v stages in all. A wave moves by one rank a slot and turns at the ends, so on one rank the
waves going down and those going up differ in the parity of their slots, and p microbatches fill
both: nothing is idle but p - 1 slots on the way in and out. That is arXiv 2308.15762's wave
pipeline (made there from Chimera by letting two opposed pipelines swap their halves, which
gives back the second copy of the parameters). A step of m > p microbatches is units of p, each
2S slots long, whose waves follow one another without a gap.

With b = 2f and m = p the bubble is (2p - 2)/(3pW + 2p - 2) of the makespan: halving with W.
"""

from __future__ import annotations

import numpy as np

from serried.action import ActionKind
from serried.pipeline.packed import Codes, chain, work
from serried.pipeline.placement import zigzag
from serried.pipeline.schedule import Schedule
from serried.pipeline.schedules.sizes import at_least, multiple_of, some_of_each


def hanayo(num_ranks: int, num_microbatches: int, chunks: int = 2) -> Schedule:
    """Returns the schedule of ``chunks`` stages a rank, two for each wave.

    >>> [" ".join(map(str, actions)) for actions in hanayo(2, 1)]
    ['0F0 3F0 3B0 0B0', '1F0 2F0 2B0 1B0']
    """
    some_of_each("hanayo", num_ranks, num_microbatches)
    at_least("hanayo", "chunks", chunks, 2)
    multiple_of("hanayo", "chunks", chunks, 2)
    placement = zigzag(num_ranks, chunks)
    ranks = [
        _rank([stage for _, stage in placement.stages_of(rank)], num_ranks * chunks, num_ranks, m)
        for rank, m in enumerate([num_microbatches] * num_ranks)
    ]
    return Schedule.of("hanayo", placement, num_microbatches, ranks)


def _rank(stages: list[int], num_stages: int, p: int, m: int) -> Codes:
    # Each stage's work gets its slot by the formulas above; sorted by slot it is the rank's list.
    unit, turn = np.divmod(np.arange(m), p)
    begin = unit * 2 * num_stages + 2 * turn
    codes, slots = [], []
    for stage in stages:
        for kind, slot in ((ActionKind.F, stage), (ActionKind.B, 2 * num_stages - 1 - stage)):
            codes.append(work(kind, stage, range(m)))
            slots.append(begin + slot)
    return chain(*codes)[np.argsort(chain(*slots))]
