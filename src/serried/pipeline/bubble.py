"""Bubbles: the three numbers that all go by the name of bubble rate, each under its own.

    p = 4 ranks, m = 8 microbatches, 1F1B, all halves one slot: makespan 33, work 24 a rank

    of_makespan     idle share of all ranks' time         1 - 24/33    = 0.273
    over_ideal      longer than without idle time         (33 - 24)/24 = 0.375
    longest_window  idle share of the rank that is there longest, first to last action

Megatron's paper speaks of over_ideal (arXiv 2104.04473), DeepSpeed and most others of
of_makespan, the zero-bubble papers of longest_window (2401.10241): that one leaves the stagger
between ranks out, which is right only where no rank waits for the others at the step's end.
With unequal ranks, work is their mean, so that waiting for a slower rank is idle time too.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from serried.pipeline.costs import Number
from serried.pipeline.simulate import Simulation


@dataclass(frozen=True)
class Bubble:
    """Holds the three shares; fractions where the simulation is exact."""

    of_makespan: Number
    over_ideal: Number
    longest_window: Number


def bubble(simulation: Simulation) -> Bubble:
    """Measures a simulation.

    >>> from serried.pipeline.costs import Costs
    >>> from serried.pipeline.schedules.gpipe import gpipe
    >>> from serried.pipeline.simulate import simulate
    >>> bubble(simulate(gpipe(4, 8), Costs())).of_makespan
    Fraction(3, 11)
    """
    work = sum(simulation.work.tolist())
    num_ranks = simulation.schedule.num_ranks
    makespan = max(simulation.rank_end.tolist())
    window = max((simulation.rank_end - simulation.rank_start).tolist())
    if not work:
        return Bubble(0, 0, 0)
    return Bubble(
        1 - _share(work, num_ranks * makespan),
        _share(num_ranks * makespan, work) - 1,
        1 - _share(work, num_ranks * window),
    )


def _share(part: Number, whole: Number) -> Number:
    if isinstance(part, float) or isinstance(whole, float):
        return part / whole
    return Fraction(part, whole)
