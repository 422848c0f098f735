"""Ways of doing the same, timed in rounds of mirrored blocks, and what their ratios say.

    a round   a  b  c │ c  b  a     a block each, in drawn order and then mirrored

What drifts meets all ways alike. Of each round the ratio of two ways is taken; the trimmed mean
over rounds has a 95 % confidence interval from resampling them.
"""

from __future__ import annotations

import gc
import os
import random
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch.distributed as dist

RESAMPLES = 4000
TRIM = 0.2
"""Share of rounds that are left out at either end, as those that something disturbed."""


class Cost(NamedTuple):
    """Is what a step of a block took: by the clock, and of the processor."""

    wall_s: float
    cpu_s: float


class Interval(NamedTuple):
    """Is a trimmed mean between the ends of its confidence interval."""

    middle: float
    low: float
    high: float

    def __truediv__(self, over: float) -> Interval:
        return Interval(*(each / over for each in self))

    def text(self, form: str) -> str:
        """Returns it as a text, each number in this form."""
        return f"{self.middle:{form}} ({self.low:{form}} to {self.high:{form}})"


def rounds_of(
    names: Sequence[str], run: Callable[[str], Cost], count: int
) -> list[dict[str, Cost]]:
    """Returns what ``run`` says of each way in each round, after a block that does not count.

    Garbage is collected between rounds only. All ranks draw the same order.
    """
    order = random.Random(0)
    for name in names:
        run(name)
    gc.collect()
    gc.freeze()
    gc.disable()
    found = []
    for _ in range(count):
        drawn = order.sample(names, len(names))
        costs: dict[str, list[Cost]] = {name: [] for name in names}
        for name in (*drawn, *reversed(drawn)):
            costs[name].append(run(name))
        found.append({name: mean(both) for name, both in costs.items()})
        gc.collect()
    gc.enable()
    return found


def of_all_ranks(found: list[dict[str, Cost]]) -> list[dict[str, Cost]]:
    """Returns what each round took in the mean of all ranks."""
    gathered: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, found)
    return [
        {name: mean([each[name] for each in of_ranks]) for name in of_ranks[0]}
        for of_ranks in zip(*gathered, strict=True)
    ]


def pin(number: int, ranks: int) -> None:
    """Gives each rank cores of its own, where the system knows how and there is one for each."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        share = len(cores) // ranks
        if share:
            os.sched_setaffinity(0, cores[number * share : (number + 1) * share])


def mean(costs: Sequence[Cost]) -> Cost:
    return Cost(*(statistics.fmean(each) for each in zip(*costs, strict=True)))


def centre(values: Sequence[float]) -> float:
    """Returns the mean without the lowest and the highest."""
    cut = int(len(values) * TRIM)
    return statistics.fmean(sorted(values)[cut : len(values) - cut])


def interval(values: Sequence[float]) -> Interval:
    """Returns the trimmed mean and its 95 % confidence interval, by resampling."""
    draw = random.Random(1)
    centres = sorted(centre(draw.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return Interval(
        centre(values), centres[int(0.025 * RESAMPLES)], centres[int(0.975 * RESAMPLES)]
    )


def verdict(found: Interval, noise: Interval, goal: float) -> str:
    """Says whether a share lies below the goal, where the noise leaves that to be seen."""
    spans = max(abs(noise.low), abs(noise.high))
    if found.low > max(goal, spans):
        return "no"
    if spans > goal or found.low <= goal <= found.high:
        return "drowns in noise"
    return "yes" if found.high < goal else "no"


def ratio_lines(
    found: list[dict[str, Cost]], told: Mapping[str, str], way: str, goal: float
) -> Iterator[str]:
    """Yields a table of each way over the plain one, and whether ``way`` stays below the goal.

    ``told`` names each way but ``plain``; ``again``, plain once more, is the noise.
    """
    yield f"{'':26} {'by the clock':30} by the processor"
    above: dict[str, list[Interval]] = {}
    for name, title in told.items():
        ratios = [[each[name][by] / each["plain"][by] for each in found] for by in (0, 1)]
        above[name] = [interval([each - 1 for each in ratio]) for ratio in ratios]
        texts = [interval(ratio).text(".4f") for ratio in ratios]
        yield f"{title:26} {texts[0]:30} {texts[1]}"
    words = [verdict(*both, goal) for both in zip(above[way], above["again"], strict=True)]
    yield f"{f'below 1 + {goal:.1%}':26} {words[0]:30} {words[1]}"
