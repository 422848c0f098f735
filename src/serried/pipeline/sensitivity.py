"""Sensitivity to latency: how much longer a step gets with each unit of latency more.

    1F1B, p = 4, m = 8     every steady microbatch waits for a message there and back: 16
    GPipe, p = 4, m = 8    only the way in and out: 2 (p - 1) = 6

It is the number of messages on the critical path; of several longest paths, the one with most.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from serried.pipeline.costs import Edges, Number
from serried.pipeline.simulate import Simulation, simulate


def latency_adds(simulation: Simulation) -> int:
    """Returns what a unit of latency more, on every message, adds to the makespan at first.

    >>> from serried.pipeline.costs import Costs
    >>> from serried.pipeline.schedules.gpipe import gpipe
    >>> latency_adds(simulate(gpipe(4, 8), Costs()))
    6
    """
    schedule, costs = simulation.schedule, simulation.costs
    # So little that even on every message it is less than the smallest difference of two paths.
    per_unit = simulation.ticks.per_unit
    little = Fraction(1, (per_unit or 1 << 20) * (len(schedule.code) + 1))
    links = replace(costs.links, latency=_raised(costs.links.latency, little))
    longer = simulate(schedule, replace(costs, links=links)).makespan
    return round((longer - simulation.makespan) / little)


def _raised(latency: Edges, by: Number) -> Edges:
    if isinstance(latency, int | float | Fraction):
        return latency + by
    return [[each + by for each in row] for row in latency]
