"""All groups of a 131,072-rank Megatron layout, beside megatron-core's own initialiser.

megatron-core runs unchanged with ``torch.distributed.new_group`` recorded instead of
executed; each side makes every group of every kind. Run by ``make bench``.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from unittest import mock

from serried.frameworks import Sizes, layout

WORLD, TP, PP, CP, EP = 131_072, 8, 8, 2, 8
OURS_RUNS = 15


def ours() -> int:
    made = layout("megatron", Sizes(WORLD, tp=TP, pp=PP, cp=CP, ep=EP))
    return sum(len(made.groups(kind.name)) for kind in made.kinds if kind.twin_of is None)


def megatron() -> int:
    import torch.distributed as dist
    from megatron.core import parallel_state

    made: list[list[int]] = []

    def record(ranks: list[int], *_: object, **__: object) -> object:
        made.append(ranks)
        return object()

    with (
        mock.patch.object(dist, "new_group", record),
        mock.patch.object(dist, "is_initialized", lambda: True),
        mock.patch.object(dist, "get_rank", lambda *_: 0),
        mock.patch.object(dist, "get_world_size", lambda *_: WORLD),
    ):
        parallel_state.initialize_model_parallel(
            tensor_model_parallel_size=TP,
            pipeline_model_parallel_size=PP,
            context_parallel_size=CP,
            expert_model_parallel_size=EP,
            create_gloo_process_groups=False,
        )
    return len(made)


def seconds(work: Callable[[], int]) -> tuple[float, int]:
    gc.collect()
    start = time.perf_counter()
    count = work()
    return time.perf_counter() - start, count


def main() -> None:
    times, counts = zip(*(seconds(ours) for _ in range(OURS_RUNS)), strict=True)
    mine = statistics.median(times)
    print(f"layout of {WORLD:,} ranks: tp {TP}, pp {PP}, cp {CP}, ep {EP}; every kind as arrays")
    print(
        f"  serried              {mine * 1e3:10.2f} ms  median of {OURS_RUNS} "
        f"({min(times) * 1e3:.2f} to {max(times) * 1e3:.2f}), {counts[0]:,} groups"
    )
    try:
        theirs, count = seconds(megatron)
    except ImportError as error:
        print(f"  megatron-core 0.16.1  not installed here ({error.name}); see the extra 'bench'")
        return
    print(f"  megatron-core 0.16.1 {theirs * 1e3:10.2f} ms  one run, {count:,} groups recorded")
    print(f"  ratio                {theirs / mine:10.0f} x")


if __name__ == "__main__":
    main()
