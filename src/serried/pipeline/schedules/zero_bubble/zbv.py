"""ZB-V: two stages a rank, placed down and up again, so that loss and input meet on rank 0.

    p = 2 ranks, m = 3, all times one slot; rank 0 has stages 0 and 3, rank 1 has 1 and 2

    rank 0  0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 3F2 3I2 3W2 0I1 0W1 0I2 0W2
    rank 1   .  1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1I1 2I2 1I2 1W1 2W2 1W2

No rank is idle between its first and its last action when f = i = w and messages are free,
at the memory of 1F1B (2p chunks), where ZB-H2 takes twice as much. Rule: arXiv 2401.10241,
section 6, as PyTorch's ``ScheduleZBVZeroBubble``: fewer than 2p - 1 microbatches are planned
as 2p - 1, and those that do not exist left out.
"""

from __future__ import annotations

from serried.action import ActionKind
from serried.pipeline.packed import Codes, alternate, chain, microbatch_of, work
from serried.pipeline.placement import zigzag
from serried.pipeline.schedule import Schedule
from serried.pipeline.schedules.sizes import some_of_each


def zbv(num_ranks: int, num_microbatches: int) -> Schedule:
    """Returns the schedule for any number of microbatches.

    >>> print(*zbv(2, 3)[0])
    0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 3F2 3I2 3W2 0I1 0W1 0I2 0W2
    """
    some_of_each("zbv", num_ranks, num_microbatches)
    planned = max(num_microbatches, 2 * num_ranks - 1)
    ranks = []
    for rank in range(num_ranks):
        codes = _rank(rank, num_ranks, planned)
        ranks.append(codes[microbatch_of(codes) < num_microbatches])
    return Schedule.of("zbv", zigzag(num_ranks), num_microbatches, ranks)


def _rank(r: int, p: int, m: int) -> Codes:
    """Returns the list of rank ``r``: 0 is its stage on the way down, 1 the one on the way up."""
    f0, i0, w0 = (work(kind, r, range(m)) for kind in _HALVES)
    f1, i1, w1 = (work(kind, 2 * p - 1 - r, range(m)) for kind in _HALVES)
    first = 2 * (p - r) - 1
    # From here on stage 0 has no more forwards, and rounds are one action shorter.
    # The chain below is read beside the picture: warm-up on stage 0; both forwards by turns; the
    # way up begins its backwards; whole rounds of six; rounds without a forward of stage 0; input
    # halves of both; stage 0's last backwards; then the weight halves that are left.
    full, rounds = m - (2 * p - 1 - r), m - p
    down = [f0[first + r :], i0[:full], w0[:full]]
    up = [f1[p : p + full], i1[p - r : p - r + full], w1[p - r : p - r + full]]
    return chain(
        f0[:first],
        alternate(f1[:r], f0[first : first + r]),
        alternate(f1[r:p], i1[: p - r], w1[: p - r]),
        alternate(*down, *up),
        alternate(
            i0[full:rounds], w0[full:rounds], f1[p + full :], i1[p - r + full : m - r],
            w1[p - r + full : m - r],
        ),
        alternate(i0[rounds : rounds + r], i1[m - r :]),
        alternate(i0[rounds + r :], w0[rounds : rounds + p - r]),
        w1[m - r :],
        w0[rounds + p - r :],
    )  # fmt: skip


_HALVES = (ActionKind.F, ActionKind.I, ActionKind.W)
