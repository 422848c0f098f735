"""The verdict on a recorded run: what costs most, on which rank and host, and how much of a step.

    unfinished    no step was finished by every rank, so nothing is measured
    slow rank     others of its stage wait for it, steadily (``ranks.slowest``)
    slow stage    it computes longer than all others (``ranks.slow_stage``)
    data          loading data takes a good part of the period, on every rank alike
    communication what ranks are held up by does
    unrecorded    time of which nothing was recorded does
    bubble        a pipeline is idle for more than its schedule explains
    none          nothing of that

The first that holds is the verdict, in this order for what names somebody; of the shares the
largest. A rank or a stage is named by the tests of those two modules alone, so that what equal
ranks differ by accuses nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from serried.trace.measure.analysis import Analysis
from serried.trace.measure.ranks.period import StepPeriods
from serried.trace.measure.ranks.slow_stage import SlowStage
from serried.trace.measure.ranks.slowest import COMPUTING, RankPace
from serried.trace.model.trace import Trace

WORTH_SAYING = 0.10
"""The least share of a period that is worth a verdict of its own."""
OVER_PLAN = 0.05
"""The least by which a bubble exceeds its plan that is worth one."""


class Trouble(Enum):
    """Names what a verdict may be about."""

    UNFINISHED = "unfinished"
    SLOW_RANK = "slow_rank"
    SLOW_STAGE = "slow_stage"
    DATA = "data"
    COMMUNICATION = "communication"
    UNRECORDED = "unrecorded"
    BUBBLE = "bubble"
    NONE = "none"


@dataclass(frozen=True)
class RunVerdict:
    """Holds the verdict; times are of a step, in nanoseconds."""

    trouble: Trouble
    step_ns: float
    """How long a step takes: the period, or a pipeline's window."""
    cost_ns: float
    """What of it the trouble costs."""
    ranks: tuple[int, ...] = ()
    """Who is named; nobody, where no rank stands out."""
    stages: tuple[int, ...] = ()
    host: str = ""
    pace: RankPace | None = None
    """The slow rank's."""
    stage: SlowStage | None = None
    cause: str = ""
    """What a pipeline is mostly idle for, by its name in ``idle``."""
    last_step: int = -1
    """The last step that the ranks recorded which recorded least; -1 for none."""

    @property
    def share(self) -> float:
        """What part of a step the trouble costs."""
        return self.cost_ns / self.step_ns if self.step_ns else 0.0


def run_verdict(trace: Trace, analysis: Analysis) -> RunVerdict:
    """Returns the verdict on a run."""
    found = analysis.statistics
    if not found.counted or found.bubbles is None:
        return _unfinished(trace)
    window = float(np.mean([each.window_ns for each in found.counted]))
    slow = next((each for each in analysis.paces if each.is_slow), None)
    if slow is not None:
        return _of_rank(trace, slow)
    if analysis.slow_stage is not None:
        return _of_stage(trace, analysis, analysis.slow_stage, window)
    if analysis.periods is not None:
        return _of_period(trace, analysis.periods)
    return _of_bubble(analysis, window)


def _unfinished(trace: Trace) -> RunVerdict:
    """Returns which ranks recorded least, where some recorded more."""
    ranks = np.asarray(trace.ranks)
    last = np.full(len(ranks), -1)
    np.maximum.at(last, np.searchsorted(ranks, trace.spans.rank), trace.spans.step)
    least = int(last.min(initial=-1))
    behind = ranks[last == least] if (last > least).any() else ranks[:0]
    host = host_of(trace, int(behind[0])) if len(behind) else ""
    named = tuple(behind.tolist())
    return RunVerdict(Trouble.UNFINISHED, 0.0, 0.0, ranks=named, host=host, last_step=least)


def _of_rank(trace: Trace, pace: RankPace) -> RunVerdict:
    is_waited_for = pace.evidence != COMPUTING
    cost = (pace.waited_for_ns or 0.0) if is_waited_for else _extra_ns(pace)
    return RunVerdict(
        Trouble.SLOW_RANK,
        step_ns=pace.step_ns,
        cost_ns=cost,
        ranks=(pace.rank,),
        stages=pace.stages,
        host=host_of(trace, pace.rank),
        pace=pace,
    )


def _extra_ns(pace: RankPace) -> float:
    slower = pace.slower or 0.0
    return pace.compute_ns * slower / (1 + slower)


def _of_stage(trace: Trace, analysis: Analysis, stage: SlowStage, window: float) -> RunVerdict:
    planned, cost = analysis.planned, 0.0
    if planned is not None and planned.own_times is not None:
        # Both plans compute alike, so their lengths are as 1 over what is not bubble.
        own, even = planned.own_times.of_makespan, planned.uniform.of_makespan
        cost = max(0.0, window * (1 - (1 - own) / (1 - even)))
    return RunVerdict(
        Trouble.SLOW_STAGE,
        step_ns=window,
        cost_ns=cost,
        ranks=stage.ranks,
        stages=stage.stages,
        host=host_of(trace, stage.ranks[0]),
        stage=stage,
    )


def _of_period(trace: Trace, periods: StepPeriods) -> RunVerdict:
    mean = periods.mean
    shares = {
        Trouble.DATA: mean.data_ns,
        Trouble.COMMUNICATION: mean.communication_ns,
        Trouble.UNRECORDED: mean.unrecorded_ns,
    }
    worst = max(shares, key=lambda each: shares[each])
    if shares[worst] < WORTH_SAYING * mean.period_ns:
        return RunVerdict(Trouble.NONE, mean.period_ns, 0.0)
    return RunVerdict(worst, mean.period_ns, shares[worst])


def _of_bubble(analysis: Analysis, window: float) -> RunVerdict:
    found, planned = analysis.statistics, analysis.planned
    assert found.bubbles is not None  # where steps are counted there are means of them
    share = found.bubbles.of_makespan
    causes = found.bubbles.causes
    cause = max(causes, key=lambda each: causes[each])
    least = None if found.ideal is None else float(found.ideal)
    if planned is not None:
        least = (planned.own_times or planned.uniform).of_makespan
    if cause == "other" and causes[cause] >= WORTH_SAYING:
        return RunVerdict(Trouble.UNRECORDED, window, causes[cause] * window, cause=cause)
    if least is None or share - least >= OVER_PLAN:
        return RunVerdict(Trouble.BUBBLE, window, (share - (least or 0.0)) * window, cause=cause)
    return RunVerdict(Trouble.NONE, window, 0.0, cause=cause)


def host_of(trace: Trace, rank: int) -> str:
    """Returns the name of the host that a rank ran on; nothing where no file says it."""
    return next((each.name for each in trace.hosts if rank in each.ranks), "")
