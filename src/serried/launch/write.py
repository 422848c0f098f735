"""Writes a launch config for a layout, and proves it by reading it back.

A target that is another framework's lays the same sizes out under its own rules; it is
taken only when every rank keeps its groups, dimension by dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from serried import frameworks
from serried.errors import InputError, listed
from serried.finding import said
from serried.frameworks.framework import Framework
from serried.frameworks.paddle import ORDERS as PADDLE_ORDERS
from serried.launch.facts.emit import LaunchJob
from serried.launch.formats import (
    accelerate,
    axolotl,
    colossalai,
    deepspeed,
    huggingface,
    internlm,
    maxtext,
    megatron,
    nanotron,
    paddle,
    swift,
    torchtitan,
)
from serried.launch.formats.reinforcement import nemo_rl, openrlhf, verl
from serried.launch.read import read
from serried.mesh import Layout, Placement
from serried.mesh.sizes import Sizes

WRITERS: dict[str, Callable[[LaunchJob], str]] = {
    "megatron": megatron.write,
    "deepspeed": deepspeed.write,
    "accelerate": accelerate.write,
    "internevo": internlm.write,
    "internlm": internlm.write,
    "torchtitan": torchtitan.write,
    "nanotron": nanotron.write,
    "paddle": paddle.write,
}
"""Frameworks whose launch files serried writes."""

TRAINERS: dict[str, tuple[tuple[str, ...], Callable[[LaunchJob], str]]] = {
    "verl": (("megatron", "fsdp", "devicemesh"), verl.write),
    "swift": (("megatron", "deepspeed", "fsdp", "accelerate", "devicemesh"), swift.write),
    "axolotl": (("accelerate", "deepspeed", "fsdp", "devicemesh"), axolotl.write),
    "nemo-rl": (("megatron", "devicemesh"), nemo_rl.write),
    "maxtext": (("devicemesh",), maxtext.write),
    "openrlhf": (("deepspeed", "devicemesh"), openrlhf.write),
    "hf-trainer": (("deepspeed", "fsdp", "accelerate"), huggingface.write),
}
"""Trainers, and the frameworks under which each divides the ranks; the first takes all others'."""

PROGRAMS: dict[str, tuple[str, Callable[[LaunchJob], list[str]]]] = {
    "megatron": ("pretrain_gpt.py", megatron.arguments),
    "deepspeed": ("pretrain_gpt.py", deepspeed.arguments_of_torchrun),
    "torchtitan": ("-m torchtitan.train", torchtitan.arguments),
    "colossalai": ("train.py", colossalai.arguments),
}
"""Frameworks that torchrun starts with sizes as options: the program, and its arguments."""

ALONE = ("sharding", "sep", "sp", "gtp_remat", "moe_sharding")
"""Axes that no other framework has."""

TARGETS = (*WRITERS, *TRAINERS, "torchrun", "slurm")
DIMS = ("tp", "pp", "cp", "ep", "dp")
"""Dimensions by which layouts are compared, in the order in which a difference is told."""


def write(target: str, layout: Layout, placement: Placement, *, sizes: Sizes) -> str:
    """Returns a launch config for ``layout``, which ``sizes`` made, on ``placement``.

    Raises InputError for an unknown target, for nodes that differ, and for a layout that the
    target cannot express, naming the axis that stands in the way.
    """
    if target not in TARGETS:
        raise InputError(
            "'{target}' is not written; targets that are: {targets}",
            target=target,
            targets=listed(TARGETS, limit=40),
        )
    placement.require_alike()
    takes, trainer = TRAINERS.get(target, ((), None))
    wanted = target if target in WRITERS else layout.framework
    if takes and wanted not in takes:
        wanted = takes[0]
    job = LaunchJob(layout, sizes, placement)
    if wanted != layout.framework:
        job = _translated(layout, frameworks.find(wanted), placement)
    written = trainer or WRITERS.get(target)
    text = written(job) if written else _launched(target, job)
    _prove(text, target, job)
    return text


# ----------------------------------------------------------------------- launchers


def _launched(target: str, job: LaunchJob) -> str:
    """Returns a torchrun command, alone or as a Slurm job."""
    if job.framework not in PROGRAMS:
        own = said("--emit {name} writes its own config", name=job.framework)
        raise InputError(
            "{target} starts {framework} with no options that hold a layout; {cure}",
            target=target,
            framework=job.framework,
            cure=own if job.framework in WRITERS else said("its program holds it"),
        )
    program, arguments = PROGRAMS[job.framework]
    ranks = f"--nnodes {job.num_nodes} --nproc_per_node {job.ranks_per_node}"
    if target == "torchrun":
        words = [f"torchrun {ranks} {program}", *(f"    {line}" for line in arguments(job))]
        return "\n".join(["#!/bin/bash", job.mark, " \\\n".join(words), ""])
    # Slurm starts one torchrun on each node, and torchrun the ranks of that node.
    words = [
        f"srun torchrun {ranks} \\\n    --rdzv_backend c10d --rdzv_endpoint $MASTER_ADDR:29500",
        f"    {program}",
        *(f"    {line}" for line in arguments(job)),
    ]
    return "\n".join(
        [
            "#!/bin/bash",
            job.mark,
            f"#SBATCH --nodes={job.num_nodes}",
            "#SBATCH --ntasks-per-node=1",
            f"#SBATCH --gpus-per-node={min(job.placement.gpus_per_node, _gpus(job))}",
            'MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
            " \\\n".join(words),
            "",
        ]
    )


def _gpus(job: LaunchJob) -> int:
    return job.ranks_per_node * job.placement.gpus_per_rank


# ----------------------------------------------------------------------- other frameworks


def _translated(layout: Layout, framework: Framework, placement: Placement) -> LaunchJob:
    """Returns the job under another framework's rules, in the order that keeps every group."""
    # Sizes go first, so that an axis the other framework lacks is named as such and not as groups
    # that differ.
    for axis in (*(dim for dim in DIMS if dim not in framework.dims), *ALONE):
        size = layout.sizes.get(axis, 1)
        if size > 1:
            raise InputError(
                "{target} has no {axis}, and this layout has {axis}={size}",
                target=framework.name,
                axis=axis,
                size=size,
            )
    refusals: list[InputError] = []
    differences: list[InputError] = []
    for sizes in _candidates(layout, framework):
        try:
            made = framework.layout(sizes)
        except InputError as error:
            refusals.append(
                InputError(
                    "{target} cannot lay this out: {reason}", target=framework.name, reason=error
                )
            )
            continue
        difference = _difference(layout, made)
        if difference is None:
            return LaunchJob(made, sizes, placement)
        differences.append(difference)
    # A layout that came out otherwise tells more than the refusal of one of several orders.
    raise (differences or refusals)[0]


def _candidates(layout: Layout, framework: Framework) -> Iterator[Sizes]:
    """Yields the sizes of a layout as a framework takes them, in each order it offers."""
    found = layout.sizes
    sizes = Sizes(
        layout.world_size,
        tp=found.get("tp", 1),
        pp=found.get("pp", 1),
        cp=found.get("cp", 1),
        ep=found.get("ep", 1),
    )
    dp = str(found.get("dp", 1))
    if framework.name == "accelerate":
        yield replace(sizes, options={"dp_shard_size": dp, "use_fsdp": "true"})
        yield replace(sizes, options={"dp_replicate_size": dp})
    elif framework.name == "torchtitan":
        yield replace(sizes, options={"data_parallel_shard_degree": dp})
    elif framework.name == "paddle":
        for order in PADDLE_ORDERS:
            yield replace(sizes, options={"hybrid_parallel_topo_order": order})
            sharding = {"hybrid_parallel_topo_order": order, "sharding_degree": dp}
            yield replace(sizes, options=sharding)
    elif framework.name == "nanotron":
        yield replace(sizes, dp=int(dp))
    elif framework.name == "megatron":
        # Experts of a dense model must not stand against the order, so they take tp x cp.
        etp = found.get("etp") if sizes.ep > 1 else None
        for order in framework.orders:
            yield replace(sizes, order=order, etp=etp)
            yield replace(sizes, order=order, etp=sizes.tp * sizes.cp)
    else:
        yield sizes


def _difference(layout: Layout, made: Layout) -> InputError | None:
    """Returns the error for the first dimension whose groups differ, or None."""
    for dim in DIMS:
        if layout.sizes.get(dim, 1) == 1 and made.sizes.get(dim, 1) == 1:
            continue
        if dim not in layout.dims or dim not in made.dims:
            continue
        ours, theirs = _groups(layout, dim), _groups(made, dim)
        if ours != theirs:
            # The least group that only one side has: its first rank is in another one, or in none,
            # on the other side.
            rank = min(ours ^ theirs)[0]
            return InputError(
                "{target} cannot lay this out, {axis} stands in the way: rank {rank} has the "
                "{axis} group {ours} here and {theirs} in {target} ({order})",
                target=made.framework,
                axis=dim,
                rank=rank,
                ours=_shown(ours, rank),
                theirs=_shown(theirs, rank),
                order=made.order,
            )
    return None


def _groups(layout: Layout, dim: str) -> set[tuple[int, ...]]:
    return {tuple(group) for group in layout.groups(layout.dims[dim]).lists()}


def _shown(groups: set[tuple[int, ...]], rank: int) -> str:
    """Returns the ranks of the group that ``rank`` is in; [] where it is in none."""
    ranks = next((each for each in sorted(groups) if rank in each), ())
    words = [str(rank) for rank in ranks[:8]]
    return f"[{' '.join(words)}{' …' if len(ranks) > 8 else ''}]"


# ----------------------------------------------------------------------- proof


def _prove(text: str, target: str, job: LaunchJob) -> None:
    """Raises InputError unless reading ``text`` back gives the layout of ``job``."""
    config = read(text, name=f"written for {target}")
    try:
        back = frameworks.layout(config.framework_at, config.sizes())
    except InputError as error:
        raise InputError(
            "{target} cannot express this layout: read back, {reason}",
            target=target,
            reason=error,
        ) from error
    if back == job.layout:
        return
    # What was lost is named from the plainest on: a size, the order, a setting, at last a kind.
    for name in (*DIMS, *job.layout.sizes):
        ours, theirs = job.layout.sizes.get(name, 1), back.sizes.get(name, 1)
        if ours != theirs:
            raise InputError(
                "{target} cannot express {axis}={size} of this layout",
                target=target,
                axis=name,
                size=ours,
            )
    if back.order != job.layout.order:
        raise InputError(
            "{target} cannot express the order {order} of this layout",
            target=target,
            order=job.layout.order,
        )
    read_back = config.sizes().options
    lost = [
        f"{key}={value}" for key, value in job.sizes.options.items() if read_back.get(key) != value
    ]
    lost = lost or [kind.name for kind in job.layout.kinds if kind not in back.kinds]
    raise InputError(
        "{target} cannot express all of this layout; it has no place for {lost}",
        target=target,
        lost=listed(lost),
    )
