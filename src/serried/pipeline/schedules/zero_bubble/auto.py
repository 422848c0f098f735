"""Automatic: the schedule with the shortest window found for given times under a memory limit.

    p = 4, m = 12, all times one slot      limit  4    5    6    7 activations
                                           window 39   38   37   36 slots, of which work 36

Two families are tried and the best kept: eight ways of placing work round by round, with every
time known (``auto_rounds``), and ZB-H1's rule with other slopes: rank r warms up with
a (p - 1 - r) forwards and puts its weight halves off by a r, or as far as memory allows, for a
from 1 (ZB-H1) over 2 (ZB-H2) to 4. The first are as good or better for nearly all equal stages,
the second for some unequal ones. The window is the longest time from a rank's first action to
its last.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from serried.action import ActionKind
from serried.errors import InputError
from serried.pipeline.costs import Costs, Number, flat
from serried.pipeline.packed import Codes, chain, kind_of, work
from serried.pipeline.placement import loop
from serried.pipeline.schedule import Schedule
from serried.pipeline.schedules.sizes import some_of_each
from serried.pipeline.schedules.turns import late_weights
from serried.pipeline.schedules.zero_bubble.rounds import Policy, Problem, place
from serried.pipeline.simulate import simulate
from serried.pipeline.timing import timing

_HALVES = (ActionKind.F, ActionKind.I, ActionKind.W)
# How many warm-up forwards more a rank has than the next, 1 to 4 by quarters: ZB-H1 has 1, ZB-H2 2.
_SLOPES = [Fraction(quarters, 4) for quarters in range(4, 17)]
_LARGE = 8192
"""From this many microbatches times ranks on, only the first family is tried, for time."""


@dataclass(frozen=True)
class Memory:
    """Says what each kind of work adds to its rank's memory, and how much a rank has.

    Each is one number or one for each rank. By default activations are counted to W and the
    limit is p of them, as 1F1B needs.
    """

    limit: Number | Sequence[Number] | None = None
    forward: Number | Sequence[Number] = 1
    input_grad: Number | Sequence[Number] = 0
    weight_grad: Number | Sequence[Number] = -1

    def __post_init__(self) -> None:
        for number in () if self.limit is None else flat(self.limit):
            if not math.isfinite(number):
                raise InputError(
                    "{name}={number} is no number; it needs one of 0 or more",
                    name="memory-limit",
                    number=number,
                )


def auto(
    num_ranks: int,
    num_microbatches: int,
    costs: Costs | None = None,
    *,
    memory: Memory | None = None,
) -> Schedule:
    """Returns the schedule; one stage a rank, whose times ``costs`` may all tell apart.

    >>> from serried.pipeline.in_flight import peaks
    >>> peaks(auto(4, 12, memory=Memory(limit=6))).to_weight.tolist()
    [6, 6, 6, 6]

    Raises InputError when not one microbatch fits the memory of a rank.
    """
    some_of_each("auto", num_ranks, num_microbatches)
    costs = costs or Costs()
    problem = _problem(num_ranks, num_microbatches, costs, memory or Memory())
    best: tuple[Number, Schedule] | None = None
    for ranks in _candidates(problem):
        schedule = Schedule.of("auto", loop(num_ranks), num_microbatches, ranks)
        result = simulate(schedule, costs)
        # The heuristic knows mean times only, so candidates are judged by a simulation with the
        # real ones: by the rank that takes longest from its first action to its last.
        window = (result.rank_end - result.rank_start).max().item()
        if best is None or window < best[0]:
            best = window, schedule
    assert best, "what fits one microbatch fits one at a time"
    return best[1]


def _candidates(problem: Problem) -> Iterator[list[Codes]]:
    """Returns the lists to choose from, those that win a tie first."""
    # Rounds with every open choice of the heuristic; then, unless so many lists would take long,
    # ZB-H1's shape with steeper and flatter warm-ups.
    for late, deferred, filled in product((False, True), (True, False), (True, False)):
        placed = place(problem, Policy(late, deferred, filled))
        if placed is not None:
            yield [
                np.array([work(_HALVES[kind], rank, k) for kind, k in of_rank])
                for rank, of_rank in enumerate(placed)
            ]
    if problem.num_ranks * problem.num_microbatches < _LARGE:
        for slope, is_late in product(_SLOPES, (True, False)):
            ranks = [_sloped(problem, rank, slope, is_late) for rank in range(problem.num_ranks)]
            if all(_fits(problem, rank, codes) for rank, codes in enumerate(ranks)):
                yield ranks


def _sloped(problem: Problem, rank: int, slope: Fraction, is_late: bool) -> Codes:
    """Returns ZB-H1's list with another warm-up, weight halves as it or as late as memory takes."""
    m, limit = problem.num_microbatches, problem.limit[rank]
    forward, inputs, _ = (of_kind[rank] for of_kind in problem.memory)
    warmup = min(int(slope * (problem.num_ranks - 1 - rank)), int(limit // forward) - 1, m - 1)
    delay = int(slope * rank)
    if is_late:
        # An input half that still waits for its weight half holds ``waiting``; so many fit beside
        # the warm-up's activations and the one in the making.
        waiting = forward + inputs
        delay = int((limit - (warmup + 1) * forward) // waiting) if waiting > 0 else m
    codes = (work(kind, rank, range(m)) for kind in _HALVES)
    return late_weights(*codes, warmup=warmup, delay=min(delay, m))


def _fits(problem: Problem, rank: int, codes: Codes) -> bool:
    change = np.array([0, 0, 0, 0, 0], dtype=object)
    for kind, of_kind in zip(_HALVES, problem.memory, strict=True):
        change[kind] = of_kind[rank]
    return bool(np.cumsum(change[kind_of(codes)]).max() <= problem.limit[rank])


def _problem(num_ranks: int, m: int, costs: Costs, memory: Memory) -> Problem:
    """Returns the mean times of each stage as the scheduler reads them, and its memory."""
    ranks = [chain(*(work(kind, rank, range(m)) for kind in _HALVES)) for rank in range(num_ranks)]
    # Only durations are read off this list, on which its order has no influence.
    one_by_one = Schedule.of("auto", loop(num_ranks), m, ranks)
    times = timing(one_by_one, costs, np.full(len(one_by_one.code), -1))
    total = times.duration.reshape(num_ranks, len(_HALVES), m).sum(axis=2)
    # Ticks are whole numbers and stay so: rounding down costs less than one tick.
    mean = total / m if times.ticks.per_unit is None else total // m
    travel = times.ticks.array(costs.links.travel(num_ranks))
    latency = np.broadcast_to(travel, (num_ranks, num_ranks))
    limit = num_ranks if memory.limit is None else memory.limit
    needs = [_each(num_ranks, name, getattr(memory, name)) for name in _FIELDS]
    problem = Problem(
        m,
        [of_kind.tolist() for of_kind in mean.T],
        latency.tolist(),
        needs,
        _each(num_ranks, "limit", limit),
    )
    _check(problem)
    return problem


_FIELDS = ("forward", "input_grad", "weight_grad")


def _each(num_ranks: int, name: str, value: Number | Sequence[Number]) -> list[Number]:
    """Returns a number for every rank; raises InputError for a list of another length."""
    if not isinstance(value, Sequence):
        return [value] * num_ranks
    if len(value) != num_ranks:
        raise InputError(
            "the memory of {name} has {count} numbers for {ranks} ranks; give one, or one for each",
            name=name.replace("_", "-"),
            count=len(value),
            ranks=num_ranks,
        )
    return list(value)


def _check(problem: Problem) -> None:
    """Refuses limits below one microbatch, and halves that let go of more than it took."""
    for rank, (forward, inputs, weights, limit) in enumerate(
        zip(*problem.memory, problem.limit, strict=True)
    ):
        needs = max(forward, forward + inputs)
        if limit < needs:
            raise InputError(
                "a memory limit of {limit} cannot be; one microbatch on rank {rank} takes {needs}",
                limit=limit,
                rank=rank,
                needs=needs,
            )
        if forward <= 0 or forward + inputs + weights != 0:
            raise InputError(
                "memory of {forward}, {inputs} and {weights} for F, I and W on rank {rank} cannot "
                "be; a forward takes some and its two halves let go of all of it",
                forward=forward,
                inputs=inputs,
                weights=weights,
                rank=rank,
            )
