"""What a card says of the job at hand: its size, its nodes, its stages, what a rank holds.

rank    Ranks of this job run from 0 to 15.  Rank 5: node 0, local rank 5, stage 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from serried.errors import Listed, listed
from serried.finding import Sentence, said
from serried.mesh.rank import place_of
from serried.plan.memory.rank_memory import PlannedMemory
from serried.units import memory_text
from serried.views.learn.card_job import CardJob, known, nodes_spanned
from serried.views.learn.split_numbers import SPLITS, split_lines
from serried.views.plan.words import memory_word
from serried.views.sentences import say


def here_lines(key: str, job: CardJob, lang: str) -> Iterator[str]:
    """Yields what a card says of the job at hand, a sentence each.

    Raises InputError where the rank is outside the world.
    """
    ask = _HERE.get(key)
    if key in SPLITS:
        yield from (say(sentence, lang) for sentence in split_lines(key, job))
    elif ask:
        yield from (say(sentence, lang) for sentence in ask(job))


def _world(job: CardJob) -> Iterator[Sentence]:
    layout = job.layout
    factors = " x ".join(
        f"{axis} {size}" for axis, size in reversed(list(layout.mesh.sizes.items())) if size > 1
    )
    yield said(
        "This job has {world} ranks on {nodes} nodes: {factors}",
        world=layout.world_size,
        nodes=job.placement.num_nodes,
        factors=factors or "1",
    )


def _node(job: CardJob) -> Iterator[Sentence]:
    yield said(
        "This job has {nodes} nodes of {ranks} ranks at most",
        nodes=job.placement.num_nodes,
        ranks=job.placement.ranks_on_largest,
    )
    yield from _crossing(job)
    if job.rank is not None:
        node = job.placement.node(known(job).rank)
        yield said("Rank {rank} is on node {node}", rank=job.rank, node=node)


def _rank(job: CardJob) -> Iterator[Sentence]:
    yield said("Ranks of this job run from 0 to {last}", last=job.layout.world_size - 1)
    if job.rank is not None:
        place = known(job)
        yield said(
            "Rank {rank}: node {node}, local rank {local}, stage {stage}; {along}",
            rank=job.rank,
            node=place.node,
            local=place.local_rank,
            stage=place.stage,
            along=_along(job),
        )


def _local_rank(job: CardJob) -> Iterator[Sentence]:
    most = job.placement.ranks_on_largest
    yield said("Local ranks of this job run from 0 to {last}", last=most - 1)
    rank = job.rank if job.rank is not None else job.layout.world_size - 1
    place = place_of(job.layout, job.placement, rank)
    yield said(
        "Rank {rank} is local rank {local} of node {node}",
        rank=rank,
        local=place.local_rank,
        node=place.node,
    )


def _numbering(job: CardJob) -> Iterator[Sentence]:
    sizes = job.layout.mesh.sizes
    yield said("The order here is {order}", order=job.layout.order)
    step, told = 1, []
    # Axes of the mesh stand slowest first.
    for axis, size in reversed(list(sizes.items())):
        if size > 1:
            told.append(f"{axis} {step}")
        step *= size
    if told and job.layout.mesh.holds_world(job.layout.world_size):
        yield said(
            "From one rank to the next along an axis the number grows by: {steps}",
            steps=listed(told),
        )
    if job.rank is not None:
        yield said("Rank {rank} stands at {along}", rank=job.rank, along=_along(job))


def _along(job: CardJob) -> Listed:
    """Returns where the selected rank stands on the axes that are split, the fastest first."""
    sizes = job.layout.mesh.sizes
    at = reversed(list(known(job).coordinates.items()))
    return listed(f"{axis} {place}" for axis, place in at if sizes.get(axis, 1) > 1)


def _microbatch(job: CardJob) -> Iterator[Sentence]:
    if job.plan:
        asked = job.plan.asked
        yield said(
            "Here: {global_batch} / (dp {dp} x {size}) = {count} microbatches a step",
            global_batch=asked.global_batch,
            dp=asked.degrees.dp,
            size=asked.micro_batch,
            count=asked.num_microbatches,
        )


def _crossing(job: CardJob) -> Iterator[Sentence]:
    """Yields which groups leave their nodes."""
    across = [dim for dim, kind in job.layout.dims.items() if nodes_spanned(job, kind) > 1]
    if across:
        yield said("Groups that cross nodes: {dims}", dims=listed(across, last="and"))
    elif job.placement.num_nodes > 1:
        yield said("No group of a dimension crosses nodes")
    else:
        yield said("All ranks of this job are on one node")


def _cuda(job: CardJob) -> Iterator[Sentence]:
    if job.plan:
        yield said(
            "Estimated for this job: CUDA context and NCCL take {size} of each GPU",
            size=memory_text(job.plan.memory.fullest.bytes_of("context")),
        )
    else:
        yield said(
            "This job runs {count} processes, each with a context", count=job.layout.world_size
        )


def _gemm(job: CardJob) -> Iterator[Sentence]:
    if job.plan:
        share = f"{job.plan.parts['matrices'] / job.plan.step_s:.1%}"
        yield said("Estimated for this job: {share} of a step", share=share)


def _stage(job: CardJob) -> Iterator[Sentence]:
    pp = job.layout.sizes.get("pp", 1)
    yield said("Pipelines of this job have {count} ranks", count=pp)
    if job.plan:
        counts = [stage.num_layers for stage in job.plan.asked.stages]
        yield said("Layers of the stages: {counts}", counts=listed(counts, limit=16))
    if job.rank is not None:
        stage = known(job).stage
        yield said("Rank {rank} holds stage {stage}", rank=job.rank, stage=stage)


def _group(job: CardJob) -> Iterator[Sentence]:
    kinds = [kind for kind in job.layout.kinds if not kind.twin_of]
    yield said(
        "{framework} makes {count} kinds of groups for this job",
        framework=job.layout.framework,
        count=len(kinds),
    )


def _moe(job: CardJob) -> Iterator[Sentence]:
    yield from split_lines("ep", job)
    model = job.plan.asked.model if job.plan else None
    if model is not None and model.experts:
        yield said(
            "{model} has {count} experts in a layer; ep is {ep}",
            model=model.name,
            count=model.experts.count,
            ep=job.layout.sizes.get("ep", 1),
        )


def _zero(job: CardJob) -> Iterator[Sentence]:
    sharding = job.layout.sharding
    if sharding is None:
        yield said("What ranks share here is up to the program")
        return
    cuts = sharding.dense
    if not cuts.cut_states:
        yield said("This job is at stage 0: nothing is sharded, every data rank keeps all of it")
    else:
        whole = {"parameters": "parameters", "gradients": "gradients"}
        names = [memory_word(whole.get(each, each)) for each in cuts.cut_states]
        yield said(
            "This job is at stage {stage}; cut into {ranks} parts, one on each rank: {states}",
            stage=sharding.stage,
            ranks=cuts.optimizer.ranks,
            states=listed(names, last="and"),
        )
    if job.plan:
        if job.plan.asked.zero != sharding.stage:
            yield said("The plan takes stage {stage}", stage=job.plan.asked.zero)
        yield from _states(job.plan.memory.fullest)


def _states(fullest: PlannedMemory) -> Iterator[Sentence]:
    sizes = {name: fullest.bytes_of(name) for name in ("parameters", "gradients", "optimizer")}
    yield said(
        "Of the fullest rank, estimated: parameters {parameters}, gradients {gradients}, optimizer "
        "state {optimizer}",
        **{name: memory_text(size) for name, size in sizes.items()},
    )


def _mfu(job: CardJob) -> Iterator[Sentence]:
    if job.plan:
        yield said(
            "Estimated for this job: MFU {mfu}, HFU {hfu}",
            mfu=f"{job.plan.mfu():.1%}",
            hfu=f"{job.plan.hfu:.1%}",
        )


def _flops(job: CardJob) -> Iterator[Sentence]:
    if job.plan:
        yield said(
            "Estimated for this job: {rate:.0f} of {peak:.0f} TFLOP/s on each GPU",
            rate=job.plan.flops_per_s_gpu() / 1e12,
            peak=job.plan.peak_flops / 1e12,
        )


def _bubble(job: CardJob) -> Iterator[Sentence]:
    pp = job.layout.sizes.get("pp", 1)
    if pp == 1:
        yield said("This job has no pipeline (pp 1), so it has no bubble")
    elif job.plan is None:
        shares = [f"{count}: {(pp - 1) / (count + pp - 1):.1%}" for count in (pp, 4 * pp, 16 * pp)]
        yield said(
            "With pp {pp} under 1F1B, by the number of microbatches: {shares}",
            pp=pp,
            shares=listed(shares),
        )


_HERE: Mapping[str, Callable[[CardJob], Iterator[Sentence]]] = {
    "world": _world,
    "node": _node,
    "rank": _rank,
    "local_rank": _local_rank,
    "numbering": _numbering,
    "microbatch": _microbatch,
    "stage": _stage,
    "group": _group,
    "sp": lambda job: split_lines("tp", job),
    "moe": _moe,
    "zero": _zero,
    "fsdp": _zero,
    "mfu": _mfu,
    "hfu": _mfu,
    "flops": _flops,
    "bubble": _bubble,
    "zb": _bubble,
    "cuda": _cuda,
    "nccl": _group,
    "nvlink": _crossing,
    "nic": _crossing,
    "gemm": _gemm,
}
