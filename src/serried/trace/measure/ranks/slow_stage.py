"""The slow stage: one whose ranks compute longer than those of all others, step after step.

    stage 0   ▇▇▇▇▇          computing, a step: the median of the ranks that hold the stage
    stage 1   ▇▇▇▇▇
    stage 2   ▇▇▇▇▇▇▇▇▇      every other stage waits for this one, in each microbatch

Unlike ranks of one stage, stages need not be equal: the last one has the loss, and layers may be
cut unevenly. So a slow stage says that there is more to do or that it takes longer there, and not
that a device is slow. It is named where it computes at least 10 % longer than the median of the
others in three of four steps, and by more than three times what those others differ by; of fewer
than three steps, where it does so by at least 25 % in each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE
from serried.trace.measure.moments import computing_ns
from serried.trace.measure.ranks.slowest import LEAST_STEPS, NOTHING, SPREADS, RankPace
from serried.trace.model.trace import Trace

WORTH_SAYING = 0.10
"""By less than this stages that were cut evenly may differ."""
_PLAIN = 0.25
"""What is plain in fewer than three steps."""
_STEADY = 0.75
"""The share of steps in which it must be longer: a busy host disturbs some of any run."""


@dataclass(frozen=True)
class SlowStage:
    """Says which stages are computed longer than all others, and by how much."""

    stages: tuple[int, ...]
    """Those that its ranks hold."""
    ranks: tuple[int, ...]
    compute_ns: float
    """The median over steps."""
    others_ns: float
    """The same of the other stages, the median of them."""

    @property
    def slower(self) -> float:
        """How much longer it computes than they do, 0.25 for 25 %."""
        return self.compute_ns / self.others_ns - 1


def slow_stage(
    trace: Trace, steps: NDArray[np.int32], paces: tuple[RankPace, ...]
) -> SlowStage | None:
    """Returns the stage that all others wait for; None where none stands out, or none is known.

    ``paces`` are the ranks', over the same steps.
    """
    held: dict[tuple[int, ...], list[int]] = {}
    for pace in paces:
        held.setdefault(pace.stages, []).append(pace.rank)
    # Where waits may lie unseen inside computations, their length tells nothing.
    is_known = not trace.waits_inside and all(each.evidence != NOTHING for each in paces)
    if len(held) < 2 or not is_known or not len(steps):
        return None
    table = _by_stages(trace, steps, list(held.values()))
    at = int(np.argmax(np.median(table, axis=0)))
    others = np.delete(table, at, axis=1)
    middle = np.median(others, axis=1)
    lag = table[:, at] - middle
    if not _stands_out(lag, middle, np.median(others, axis=0)):
        return None
    stages = list(held)[at]
    return SlowStage(
        stages=stages,
        ranks=tuple(sorted(held[stages])),
        compute_ns=float(np.median(table[:, at])),
        others_ns=float(np.median(middle)),
    )


def _stands_out(
    lag: NDArray[np.float64], middle: NDArray[np.float64], others: NDArray[np.float64]
) -> bool:
    """Tells whether ``lag`` is worth saying beside ``middle``, and more than what others differ."""
    is_few = len(lag) < LEAST_STEPS
    worth = _PLAIN if is_few else WORTH_SAYING
    told = np.mean((lag >= worth * middle) & (middle > 0))
    spread = float(np.median(np.abs(others - np.median(others)))) if len(others) > 2 else 0.0
    return bool(told >= (1.0 if is_few else _STEADY) and np.median(lag) >= SPREADS * spread)


def _by_stages(
    trace: Trace, steps: NDArray[np.int32], ranks: list[list[int]]
) -> NDArray[np.float64]:
    """Returns a row per step and a column per list of ranks: the median of their computing."""
    spans = trace.spans
    rows = np.isin(spans.kind, sorted(COMPUTE)) & np.isin(spans.step, steps)
    every = np.array(sorted(rank for some in ranks for rank in some))
    cell = np.searchsorted(steps, spans.step[rows]) * len(every)
    cell += np.searchsorted(every, spans.rank[rows])
    sums = np.bincount(cell, computing_ns(spans)[rows], minlength=len(steps) * len(every))
    table = sums.reshape(len(steps), len(every))
    columns = [np.median(table[:, np.searchsorted(every, some)], axis=1) for some in ranks]
    return np.stack(columns, axis=1)
