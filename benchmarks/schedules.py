"""A million actions generated and simulated, beside torch's own generator; run by ``make bench``.

torch makes the same lists in the constructor of its schedule class and lowers them to messages,
which every rank pays before its first step; ours are made, simulated and measured. torch is given a
smaller size, for at the full one it takes minutes, and the ratio is that of both at that size.
"""

from __future__ import annotations

import gc
import resource
import statistics
import time
from collections.abc import Callable

from serried.pipeline import Costs, Request, bubble, generate, idle, peaks, simulate

FULL = Request(64, 1024, 8, 64)
SMALL = Request(16, 128, 4, 16)
OURS_RUNS = 5


class Stage:
    """Is as much of a stage as torch's schedule classes look at before they run."""

    has_backward, submod, group, device = True, None, None, "cpu"
    group_rank = 0

    def __init__(self, index: int, num_stages: int, num_ranks: int) -> None:
        self.stage_index, self.num_stages, self.group_size = index, num_stages, num_ranks
        self.is_first, self.is_last = index == 0, index == num_stages - 1
        self.stage_index_to_group_rank = {s: s % num_ranks for s in range(num_stages)}


def ours(asked: Request) -> int:
    result = simulate(generate("interleaved-1f1b", asked), Costs())
    bubble(result), peaks(result.schedule), idle(result).by_cause()
    return len(result.schedule.code)


def torchs(asked: Request) -> int:
    from torch.distributed.pipelining.schedules import ScheduleInterleaved1F1B

    num_stages = asked.num_ranks * (asked.chunks or 1)
    stages = [
        Stage(index, num_stages, asked.num_ranks) for index in range(0, num_stages, asked.num_ranks)
    ]
    made = ScheduleInterleaved1F1B(stages, asked.num_microbatches)  # type: ignore[arg-type]
    return sum(action is not None for row in made.pipeline_order.values() for action in row)


def seconds(work: Callable[[Request], int], asked: Request) -> tuple[float, int]:
    gc.collect()
    start = time.perf_counter()
    count = work(asked)
    return time.perf_counter() - start, count


def sizes(asked: Request) -> str:
    return f"{asked.num_ranks} ranks x {asked.num_microbatches:,} microbatches x {asked.chunks}"


def main() -> None:
    times, counts = zip(*(seconds(ours, FULL) for _ in range(OURS_RUNS)), strict=True)
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(f"interleaved 1F1B, {sizes(FULL)} chunks: generated, simulated, measured")
    print(
        f"  serried        {statistics.median(times):8.2f} s  median of {OURS_RUNS} "
        f"({min(times):.2f} to {max(times):.2f}), {counts[0]:,} actions, {memory_mb:.0f} MB"
    )
    small = statistics.median(seconds(ours, SMALL)[0] for _ in range(OURS_RUNS))
    print(f"interleaved 1F1B, {sizes(SMALL)} chunks")
    print(f"  serried        {small:8.3f} s  median of {OURS_RUNS}")
    try:
        import torch

        theirs, count = seconds(torchs, SMALL)
    except ImportError as error:
        print(f"  torch          not installed here ({error.name}); see the extra 'torch'")
        return
    print(
        f"  torch {torch.__version__:8s} {theirs:8.3f} s  one run, {count:,} actions, constructor"
    )
    print(f"  ratio          {theirs / small:8.0f} x")


if __name__ == "__main__":
    main()
