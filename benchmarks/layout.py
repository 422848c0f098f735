"""All groups of large layouts, beside what the packages themselves take to list them.

megatron-core runs unchanged with ``torch.distributed.new_group`` recorded instead of executed;
DeviceMesh makes its groups on torch's fake backend; DeepSpeed lists every axis of its topology.
Each side makes every group of every kind; one rank's groups stand beside the same work of
megatron-core, which lists all of them to find those of one rank, and the JSON of all groups
beside that of Python's own json. Peers that are not installed are named with the
command that installs them. Run by ``make bench``; a first argument sets the ranks of peers.
"""

from __future__ import annotations

import gc
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from unittest import mock

from serried.frameworks import Sizes, layout
from serried.mesh import Groups
from serried.views.layout import groups_json

WORLD, TP, PP, CP, EP = 131_072, 8, 8, 2, 8
LARGE = 1_048_576
RUNS = 15
Work = Callable[[int], int]
ENTRY = "from serried.views.cli.main import main; main()"


def ours(world: int) -> int:
    made = layout("megatron", Sizes(world, tp=TP, pp=PP, cp=CP, ep=EP))
    return sum(len(made.groups(kind.name)) for kind in made.kinds if kind.twin_of is None)


def ours_of_one_rank(world: int) -> int:
    made = layout("megatron", Sizes(world, tp=TP, pp=PP, cp=CP, ep=EP))
    return sum(map(len, made.groups_of(world // 2 + 5).values()))


def all_kinds(world: int) -> list[Groups]:
    made = layout("megatron", Sizes(world, tp=TP, pp=PP, cp=CP, ep=EP))
    return [made.groups(kind.name) for kind in made.kinds]


def our_json(world: int) -> int:
    kinds = all_kinds(world)
    return sum(len(part) for groups in kinds for part in groups_json.parts(groups)) and sum(
        map(len, kinds)
    )


def their_json(world: int) -> int:
    kinds = all_kinds(world)
    return sum(len(json.dumps(groups.lists())) for groups in kinds) and sum(map(len, kinds))


def our_mesh(world: int) -> int:
    settings = {"mesh_shape": ",".join(map(str, _shape(world)))}
    made = layout("devicemesh", Sizes(world, options=settings))
    return sum(len(made.groups(kind.name)) for kind in made.kinds)


def our_topology(world: int) -> int:
    made = layout("deepspeed", Sizes(world, tp=TP, pp=PP))
    return sum(len(made.groups(name)) for name in ("pipe", "data", "model"))


def megatron() -> Work:
    import torch.distributed as dist
    from megatron.core import parallel_state

    def work(world: int) -> int:
        made: list[list[int]] = []

        def record(ranks: list[int], *_: object, **__: object) -> object:
            made.append(ranks)
            return object()

        with (
            mock.patch.object(dist, "new_group", record),
            mock.patch.object(dist, "is_initialized", lambda: True),
            mock.patch.object(dist, "get_rank", lambda *_: 0),
            mock.patch.object(dist, "get_world_size", lambda *_: world),
        ):
            parallel_state.initialize_model_parallel(
                tensor_model_parallel_size=TP,
                pipeline_model_parallel_size=PP,
                context_parallel_size=CP,
                expert_model_parallel_size=EP,
                create_gloo_process_groups=False,
            )
        parallel_state.destroy_model_parallel()
        return len(made)

    return work


def device_mesh() -> Work:
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.testing._internal.distributed.fake_pg import FakeStore

    def work(world: int) -> int:
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=world)
        init_device_mesh("cpu", _shape(world))
        dist.destroy_process_group()
        return sum(world // size for size in _shape(world))

    return work


def topology() -> Work:
    from deepspeed.runtime.pipe.topology import PipeModelDataParallelTopology

    def work(world: int) -> int:
        made = PipeModelDataParallelTopology(PP, TP, world // (PP * TP))
        return sum(len(made.get_axis_comm_lists(axis)) for axis in ("pipe", "data", "model"))

    return work


def _shape(world: int) -> tuple[int, int, int, int]:
    return PP, world // (PP * CP * TP), CP, TP


PEERS: tuple[tuple[str, str, Work, Callable[[], Work]], ...] = (
    ("megatron-core", "20 kinds, recorded", ours, megatron),
    ("megatron-core", "all of them for one rank's", ours_of_one_rank, megatron),
    ("python", "json.dumps of the same groups", our_json, lambda: their_json),
    ("torch", "DeviceMesh of 4 axes, fake backend", our_mesh, device_mesh),
    ("deepspeed", "lists of 3 axes", our_topology, topology),
)
"""Package, what it does, our work, and its own once it is imported: imports are not counted."""


def seconds(work: Work, world: int) -> tuple[float, int]:
    gc.collect()
    start = time.perf_counter()
    count = work(world)
    return time.perf_counter() - start, count


def of_ours(work: Work, world: int, words: str) -> float:
    """Prints the median of our runs; returns it in seconds."""
    times, counts = zip(*(seconds(work, world) for _ in range(RUNS)), strict=True)
    middle: float = statistics.median(times)
    print(
        f"  serried, {words:34} {middle * 1e3:10.2f} ms  median of {RUNS} "
        f"({min(times) * 1e3:.2f} to {max(times) * 1e3:.2f}), {counts[0]:,} groups"
    )
    return middle


def beside(
    package: str, what: str, our_work: Work, prepare: Callable[[], Work], world: int
) -> None:
    mine = of_ours(our_work, world, f"as {package}")
    try:
        work = prepare()
    except ImportError as error:
        print(f"  {package}: not installed here ({error.name}); pip install {package}")
        return
    theirs, count = seconds(work, world)
    print(f"  {package}, {what:34} {theirs * 1e3:10.2f} ms  one run, {count:,} groups")
    print(f"  ratio {theirs / mine:.0f} x")


def command_line(*words: str) -> None:
    """Prints what a whole process takes from start to end: imports, groups, text."""
    sizes = ("--world-size", str(LARGE), "--tp", str(TP), "--pp", str(PP), "--cp", str(CP))
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", ENTRY, "groups", *sizes, "--ep", str(EP), *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    took = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    shown = " ".join(words) or "table"
    print(f"  serried groups, {shown:20} {took:6.2f} s, at most {peak:,.0f} MiB so far")


def main() -> None:
    world = int(sys.argv[1]) if len(sys.argv) > 1 else WORLD
    print(f"layout of {LARGE:,} ranks: tp {TP}, pp {PP}, cp {CP}, ep {EP}; every kind as arrays")
    of_ours(ours, LARGE, "all groups of every kind")
    of_ours(ours_of_one_rank, LARGE, "one rank's groups")
    command_line("--rank", "77777")
    command_line()
    command_line("--format", "json")
    print(f"layout of {world:,} ranks, the same sizes")
    for package, what, our_work, prepare in PEERS:
        beside(package, what, our_work, prepare, world)


if __name__ == "__main__":
    main()
