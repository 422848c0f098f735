"""The critical path: one chain of actions and messages that makes the step as long as it is.

    0F0 --> 1F0 --> 2F0 --> 3F0  3B0 --> 2B0 --> ...  0B7      nothing on it waits

It is found from the end: an action that began as soon as its rank was free follows the action
before it on that rank, any other the message it waited for. Shortening anything that is not on it
gains nothing. The messages on it are what latency costs: with each unit of latency more a step
takes as many units longer as there are messages, on the longest path that has most of them.

    1F1B, p = 4, m = 8     every steady microbatch waits for a message there and back: 16
    GPipe, p = 4, m = 8    only the way in and out: 2 (p - 1) = 6
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from serried.action import Action, ActionKind
from serried.pipeline.costs import Edges, Number
from serried.pipeline.simulate import Simulation, simulate


@dataclass(frozen=True)
class Step:
    """Holds one piece of the path; the pieces follow one another without a gap.

    ``action`` is what runs, of a pair the half that the path passes through, or the action whose
    message is under way where ``is_message``. A reduction or the optimizer has its own kind.
    """

    rank: int
    action: Action
    start: Number
    end: Number
    is_message: bool = False


def critical_path(simulation: Simulation) -> list[Step]:
    """Returns the path from time 0 to the makespan.

    >>> from serried.pipeline.costs import Costs
    >>> from serried.pipeline.schedules.gpipe import gpipe
    >>> from serried.pipeline.simulate import simulate
    >>> [str(step.action) for step in critical_path(simulate(gpipe(2, 1), Costs()))]
    ['0F0', '1F0', '1B0', '0B0']
    """
    steps, until, entry = _back_through_tail(simulation)
    while entry >= 0:
        before, entry, until = _one_back(simulation, entry, until)
        steps += before
    return steps[::-1]


def _back_through_tail(simulation: Simulation) -> tuple[list[Step], int, int]:
    """Returns the steps after the last action, latest first, its end, and its entry."""
    schedule, tail, ticks = simulation.schedule, simulation.tail, simulation.ticks
    rank = int(simulation.rank_end.argmax())
    steps, until = [], simulation.rank_end[rank]
    if tail.end[rank] > tail.start[rank]:
        start = tail.start[rank]
        optimizer = Action(ActionKind.OPTIMIZER)
        steps.append(Step(rank, optimizer, ticks.number(start), ticks.number(until)))
        if tail.reduced[rank] < start:  # it waited for the gradients of all ranks
            rank = int(tail.reduced.argmax())
        until = start
    last = int(schedule.first[rank + 1]) - 1
    done = simulation.end[last]
    if until == done + simulation.timing.held[last]:
        if done < until:  # the rank's last message held it
            times = ticks.number(done), ticks.number(until)
            steps.append(Step(rank, schedule.action(last), *times, is_message=True))
        return steps, done, last
    while True:
        # The reduction that ends here followed its stage's last gradient, or another at once.
        ends_here = (one for one in tail.reductions if (one.rank, one.end) == (rank, until))
        reduction = next(ends_here)
        action = Action(ActionKind.REDUCE_GRAD, reduction.stage)
        steps.append(Step(rank, action, ticks.number(reduction.start), ticks.number(until)))
        until = reduction.start
        if simulation.end[reduction.after] == until:
            return steps, until, reduction.after


def _one_back(simulation: Simulation, entry: int, until: int) -> tuple[list[Step], int, int]:
    """Returns the step of an entry and the message before it, latest first, and what precedes."""
    schedule, ticks = simulation.schedule, simulation.ticks
    rank, action = int(schedule.rank[entry]), schedule.action(entry)
    # An overlapped pair is two entries that run as one: whichever half the path passes through,
    # the pair begins at its forward and waits for the inputs of both.
    begin, end = entry, entry
    if schedule.joined[entry]:
        end += 1
    elif entry > schedule.first[rank] and schedule.joined[entry - 1]:
        begin -= 1
    start = simulation.start[begin]
    is_first = begin == schedule.first[rank]
    free = 0 if is_first else simulation.end[begin - 1] + simulation.timing.held[begin - 1]
    # What began as soon as the rank was free followed the action before it; anything else waited
    # for a message and is followed from when that arrived (it may have recomputed until then).
    if start == free:
        steps = [Step(rank, action, ticks.number(start), ticks.number(until))]
        if is_first:
            return steps, -1, 0
        source, sent = begin - 1, simulation.end[begin - 1]
    else:
        waiting = max(begin, end, key=lambda half: simulation.arrival[half])
        start = simulation.arrival[waiting]
        steps = [Step(rank, action, ticks.number(start), ticks.number(until))]
        source = int(simulation.source[waiting])
        sent = simulation.end[source]
    if sent < start:
        message = schedule.action(source)
        times = ticks.number(sent), ticks.number(start)
        steps.append(Step(int(schedule.rank[source]), message, *times, is_message=True))
    return steps, source, sent


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
    return [[number + by for number in row] for row in latency]
