"""Statistics of Megatron's timers: what a step is made of on every rank, as far as totals tell.

    forward-backward   |F|B|F|B| messages, and all that is left: idle time, Python, launches|
                        computing  messages            rest

A rank's timers add up to no more than its forward-backward time; what is left of that is the
*rest*. It holds the idle time that no message's timer covered, so the share in which a rank did
not compute is no less than its bubble. Ranks of one stage are compared, as in ``slowest``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from serried.errors import InputError
from serried.mesh import Layout
from serried.trace.formats.megatron.timers import TimerLog
from serried.trace.model.laid_out import laid_out
from serried.trace.model.recorded_order import pipeline_ranks

_WHOLE = "forward-backward"
_COMPUTE = {"forward": "forward-compute", "backward": "backward-compute"}
_MESSAGES = ("-send", "-recv")


@dataclass(frozen=True)
class TimerTimes:
    """Says what one timer showed, a mean over intervals, in milliseconds of a step."""

    name: str
    least_ms: float | None
    most_ms: float


@dataclass(frozen=True)
class TimedRank:
    """Says what one rank's timers showed, a mean over intervals, in milliseconds of a step."""

    rank: int
    stage: int | None
    """None where nobody said how ranks stand."""
    forward_ms: float
    backward_ms: float
    messages_ms: float
    rest_ms: float
    not_computing: float
    """What part of its forward-backward time it computed nothing; no less than its bubble."""
    slower: float | None
    """How much longer it computes than the median of the others of its stage."""


@dataclass(frozen=True)
class TimerStatistics:
    """Holds what a log of timers says; times are milliseconds."""

    step_ms: float
    jitter: float
    tflops: float | None
    """TFLOP/s of one GPU, as Megatron counts them."""
    samples_per_s: float | None
    tokens_per_s: float | None
    sizes: dict[str, int]
    timers: tuple[TimerTimes, ...]
    ranks: tuple[TimedRank, ...]
    """Empty for logs that do not print every rank's times."""

    @property
    def has_pipeline(self) -> bool:
        """Whether ranks stand in stages, as far as anybody said."""
        return not self.sizes or self.sizes.get("pp", 1) > 1


def measure_timers(log: TimerLog, sizes: Mapping[str, int] | None = None) -> TimerStatistics:
    """Measures a log; ``sizes`` say how ranks stand where the log does not.

    Raises InputError when they do not make as many ranks as the log has.
    """
    # The first line pays for memory, caches and connections.
    timed = [each for each in log.iterations if each.elapsed_ms > 0]
    lines = timed[1:] or timed
    elapsed = np.array([each.elapsed_ms for each in lines])
    if not lines:
        raise InputError(
            "{path} has no iteration line with a time beside its timers; a step's length is not "
            "known",
            path=log.path,
        )
    samples = [1e3 * each.samples / each.elapsed_ms for each in lines if each.samples]
    tflops = [each.tflops for each in lines if each.tflops]
    speed = float(np.mean(samples)) if samples else None
    layout = _layout(log, sizes)
    return TimerStatistics(
        step_ms=float(elapsed.mean()),
        jitter=float(elapsed.std() / elapsed.mean()),
        tflops=float(np.mean(tflops)) if tflops else None,
        samples_per_s=speed,
        tokens_per_s=speed * log.seq_length if speed and log.seq_length else None,
        sizes=dict(layout.sizes) if layout else {},
        timers=_timers(log),
        ranks=_ranks(log, layout),
    )


def _layout(log: TimerLog, sizes: Mapping[str, int] | None) -> Layout | None:
    """Returns how ranks stand: by the sizes given, else by those that the log has."""
    ranks = [rank for block in log.blocks for times in block.by_rank.values() for rank in times]
    seen = max(ranks, default=-1) + 1
    # A log that does not say its size has at least the ranks that were timed.
    world_size = log.world_size or seen
    if not world_size or not (sizes or log.sizes):
        return None
    if world_size < seen:
        raise InputError(
            "{path} has times of {seen} ranks and says that there are {world}; logs of two jobs "
            "are mixed in it",
            path=log.path,
            seen=seen,
            world=world_size,
        )
    return laid_out("megatron", world_size, sizes or log.sizes)


def _timers(log: TimerLog) -> tuple[TimerTimes, ...]:
    """Returns every timer's least and most, in the order in which they were first printed."""
    names = dict.fromkeys(name for block in log.blocks for name in block.most)
    found = []
    for name in names:
        # The forms `max` and `one rank` print no least time.
        least = [block.least[name] for block in log.blocks if name in block.least]
        most = [block.most[name] for block in log.blocks if name in block.most]
        found.append(
            TimerTimes(name, float(np.mean(least)) if least else None, float(np.mean(most)))
        )
    return tuple(found)


def _ranks(log: TimerLog, layout: Layout | None) -> tuple[TimedRank, ...]:
    times = _means(log)
    ranks = sorted(times.get(_WHOLE, {}))
    if not ranks or not all(name in times for name in _COMPUTE.values()):
        return ()
    parts = {
        name: np.array([times[timer].get(rank, 0.0) for rank in ranks])
        for name, timer in _COMPUTE.items()
    }
    whole = np.array([times[_WHOLE][rank] for rank in ranks])
    messages = np.zeros(len(ranks))
    for name, by_rank in times.items():
        # forward-recv, backward-send, and both in one: forward-send-backward-recv.
        if name.endswith(_MESSAGES):
            messages += [by_rank.get(rank, 0.0) for rank in ranks]
    compute = parts["forward"] + parts["backward"]
    # Timers are rounded, so what is left may come out just below nothing.
    rest = np.maximum(whole - compute - messages, 0)
    idle = 1 - np.divide(compute, whole, out=np.zeros_like(whole), where=whole > 0)
    stages = _stages(layout, ranks)
    slower = _slower(dict(zip(ranks, compute.tolist(), strict=True)), stages)
    return tuple(
        TimedRank(
            rank=rank,
            stage=stages.get(rank),
            forward_ms=float(parts["forward"][at]),
            backward_ms=float(parts["backward"][at]),
            messages_ms=float(messages[at]),
            rest_ms=float(rest[at]),
            not_computing=float(idle[at]),
            slower=slower.get(rank),
        )
        for at, rank in enumerate(ranks)
    )


def _means(log: TimerLog) -> dict[str, dict[int, float]]:
    """Returns by timer and rank the mean over blocks."""
    collected: dict[str, dict[int, list[float]]] = {}
    for block in log.blocks:
        for name, by_rank in block.by_rank.items():
            for rank, time in by_rank.items():
                collected.setdefault(name, {}).setdefault(rank, []).append(time)
    return {
        name: {rank: float(np.mean(times)) for rank, times in by_rank.items()}
        for name, by_rank in collected.items()
    }


def _stages(layout: Layout | None, ranks: list[int]) -> dict[int, int]:
    if layout is None:
        return {}
    table = pipeline_ranks(layout, layout.world_size)
    place = {rank: at for column in table.tolist() for at, rank in enumerate(column)}
    return {rank: place[rank] for rank in ranks}


def _slower(compute: Mapping[int, float], stages: Mapping[int, int]) -> dict[int, float]:
    """Returns how much longer each rank computes than the median of the others of its stage."""
    of_stage: dict[int, list[int]] = {}
    for rank, stage in stages.items():
        of_stage.setdefault(stage, []).append(rank)
    found = {}
    for ranks in of_stage.values():
        ranks.sort(key=lambda rank: compute[rank])
        times = [compute[rank] for rank in ranks]
        for at, rank in enumerate(ranks):
            # 0 where the rank is alone at its stage: there is nobody to compare it with.
            if middle := _median_without(times, at):
                found[rank] = compute[rank] / middle - 1
    return found


def _median_without(values: Sequence[float], at: int) -> float:
    """Returns the median of ascending ``values`` but the one at a place; 0 where none is left.

    >>> _median_without([1.0, 2.0, 4.0, 9.0], 0), _median_without([1.0, 2.0, 4.0], 2)
    (4.0, 1.5)
    """
    count = len(values) - 1
    if not count:
        return 0.0
    low, high = ((count - 1) // 2, count // 2)
    # Places behind the one that is left out move up by one.
    return (values[low + (low >= at)] + values[high + (high >= at)]) / 2
