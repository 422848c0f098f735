"""Timing: costs laid over a schedule, one number for every entry, in ticks.

Ticks are integers, exact for fractions, so that a simulation adds and compares fast:

    1/3 and 1/4 of a unit  ->  4 and 3 ticks, 12 of them in a unit
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

from serried.action import ActionKind
from serried.errors import InputError
from serried.pipeline.costs import Costs, Duration, Number
from serried.pipeline.longest_path import Times
from serried.pipeline.packed import Numbers
from serried.pipeline.schedule import Schedule

_LARGE = 1 << 36
"""A million numbers below this add up in 64 bits, and more than a million times over."""


@dataclass(frozen=True)
class Ticks:
    """Says how many ticks a unit of time has, and in what numbers they are counted."""

    per_unit: int | None
    """None where times are floats and stay so."""
    is_large: bool = False
    """Whether some time has more ticks than 64 bits could add up; then they are Python's own."""

    @classmethod
    def of(cls, numbers: Iterable[Number]) -> Ticks:
        """Finds the fewest ticks that make every number whole.

        >>> Ticks.of([1, Fraction(1, 3), Fraction(1, 4)])
        Ticks(per_unit=12, is_large=False)
        """
        exact = []
        for number in numbers:
            # A float such as 0.1 does not hold what it stands for, so one makes all times floats.
            if isinstance(number, float) and not number.is_integer():
                return cls(None)
            exact.append(Fraction(number))
        per_unit = lcm(*{number.denominator for number in exact})
        return cls(per_unit, any(number * per_unit >= _LARGE for number in exact))

    def array(self, values: object) -> Times:
        """Returns numbers, nested as they are, as an array of ticks."""
        table = np.array(values, dtype=object)
        if self.per_unit is None:
            return table.astype(np.float64)
        whole = [int(number * self.per_unit) for number in table.ravel()]
        dtype = object if self.is_large else np.int64
        return np.array(whole, dtype).reshape(table.shape)

    def number(self, ticks: object) -> Number:
        """Returns a time in units: an integer where it is one, else a fraction, or a float.

        >>> Ticks(12).number(18), Ticks(12).number(24), Ticks(None).number(0.5)
        (Fraction(3, 2), 2, 0.5)
        """
        if self.per_unit is None:
            return float(ticks)  # type: ignore[arg-type]
        value = Fraction(int(ticks), self.per_unit)  # type: ignore[call-overload]
        return int(value) if value.denominator == 1 else value


@dataclass(frozen=True, eq=False)
class Timing:
    """Holds, for every entry, how long it runs and what its messages take.

    Of an overlapped pair the forward runs for no time and the backward for all of it.
    """

    ticks: Ticks
    duration: Times
    travel: Times
    """How long the message that the entry waits for is under way; 0 where there is none."""
    early: Times
    """How long before that message arrives the entry may start, to recompute its forward."""
    held: Times
    """How long the entry's own blocking messages hold its rank when it has ended."""


def timing(schedule: Schedule, costs: Costs, remote: Numbers) -> Timing:
    """Lays costs over a schedule; ``remote`` is each entry's producer on another rank or -1."""
    between = costs.links.travel(schedule.num_ranks)
    ticks = Ticks.of([*costs.times(), *between.ravel()])
    travel = _travel(schedule, ticks.array(between), remote)
    early = np.zeros_like(travel)
    if costs.is_recompute_early:
        early = _recompute(schedule, costs, ticks)
        early[np.flatnonzero(schedule.joined) + 1] = 0  # a pair's halves start together
    held = np.zeros_like(travel)
    if costs.links.is_blocking:
        sent = np.flatnonzero(remote >= 0)
        np.maximum.at(held, remote[sent], travel[sent])
        # Both messages of a pair leave when it ends.
        forward = np.flatnonzero(schedule.joined)
        held[forward + 1] = np.maximum(held[forward], held[forward + 1])
        held[forward] = 0
    return Timing(ticks, _durations(schedule, costs, ticks), travel, early, held)


def spread(schedule: Schedule, name: str, duration: Duration, ticks: Ticks) -> Times:
    """Returns a duration for every (direction, stage, microbatch), in ticks."""
    placement = schedule.placement
    shape = (placement.num_directions, placement.num_stages, schedule.microbatches_each_way)
    try:
        table = ticks.array(duration)
        return np.broadcast_to(table[:, None] if table.ndim == 1 else table, shape)
    except ValueError as error:
        raise InputError(
            "the times of {name} do not fit {stages} stages and {microbatches} microbatches; "
            "give one number, one per stage, or one per stage and microbatch",
            name=name.replace("_", "-"),
            stages=shape[1],
            microbatches=shape[2],
        ) from error


def _at(schedule: Schedule, table: Times, entries: Numbers) -> Times:
    """Returns a table's numbers for some entries."""
    found: Times = table[
        schedule.direction[entries], schedule.stage[entries], schedule.microbatch[entries]
    ]
    return found


def _travel(schedule: Schedule, between: Times, remote: Numbers) -> Times:
    travel = np.zeros(len(remote), between.dtype)
    received = np.flatnonzero(remote >= 0)
    if between.ndim:
        rank = schedule.rank
        travel[received] = between[rank[remote[received]], rank[received]]
    else:
        travel[received] = between
    return travel


def _durations(schedule: Schedule, costs: Costs, ticks: Ticks) -> Times:
    halves = {
        name: spread(schedule, name, getattr(costs, name), ticks)
        for name in ("forward", "input_grad", "weight_grad")
    }
    whole = halves["input_grad"] + halves["weight_grad"]
    if costs.backward is not None:
        whole = spread(schedule, "backward", costs.backward, ticks)
    tables = {
        ActionKind.F: _with_extra(costs, ticks, halves["forward"], "forward"),
        ActionKind.B: _with_extra(costs, ticks, whole, "input_grad", "weight_grad"),
        ActionKind.I: _with_extra(costs, ticks, halves["input_grad"], "input_grad"),
        ActionKind.W: _with_extra(costs, ticks, halves["weight_grad"], "weight_grad"),
    }
    duration = _recompute(schedule, costs, ticks)
    for kind, table in tables.items():
        entries = np.flatnonzero(schedule.kind == kind)
        duration[entries] += _at(schedule, table, entries)
    # Of an overlapped pair the backward's entry takes all the time and the forward's none. Without
    # a time of its own a pair takes as long as both.
    forward = np.flatnonzero(schedule.joined)
    if costs.overlap is None:
        duration[forward + 1] += duration[forward]
    else:
        table = spread(schedule, "overlap", costs.overlap, ticks)
        duration[forward + 1] = _at(schedule, table, forward)
    duration[forward] = 0
    return duration


def _with_extra(costs: Costs, ticks: Ticks, table: Times, *halves: str) -> Times:
    """Adds what the first stage takes for the embedding and the last for the loss."""
    table = table.copy()
    for half in halves:
        for stage, extra in ((0, costs.embedding), (-1, costs.loss)):
            table[:, stage] += ticks.array(getattr(extra, half))
    return table


def _recompute(schedule: Schedule, costs: Costs, ticks: Ticks) -> Times:
    """Returns how long each backward, or its input half, runs its forward again."""
    table = spread(schedule, "recompute", costs.recompute, ticks)
    again = np.zeros(len(schedule.code), table.dtype)
    kind = schedule.kind
    entries = np.flatnonzero((kind == ActionKind.B) | (kind == ActionKind.I))
    again[entries] = _at(schedule, table, entries)
    return again
