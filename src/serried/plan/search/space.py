"""The layouts that a search looks at, as columns: one row for each that the rules allow.

manners    schedule x ZeRO stage x recompute x offload         a request each; selective recompute
           of what is cheap: norms, experts' activations, what MLA makes of latents
orders     dp or pp nearer, where the framework lets choose    rows of a manner
degrees    tp x cp x pp x ep x etp, dp from the number of GPUs
batches    microbatch size x chunks                            rows of a manner

a row stands if   tp divides heads and the feed-forward, and shares keys and values evenly
                  2 cp divides the sequence, ep the experts, ep etp the ranks of a stage
                  stages divide the layers, or the layers and both ends (Megatron's ways)
                  dp x microbatch divides the global batch
                  interleaved microbatches come in rounds of pp
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from serried.errors import InputError
from serried.plan.degrees import Degrees
from serried.plan.rank_order import orders_of
from serried.plan.request import Offloaded, PlanRequest, Recompute, Recomputed

Whole = NDArray[np.int64]
DEGREES = ("tp", "cp", "pp", "dp", "ep", "etp", "chunks", "micro_batch", "microbatches")
COLUMNS = (*DEGREES, "order")
"""What a row holds: its degrees, and the number of its order in the space's, -1 for none."""
SCHEDULES = ("1f1b", "interleaved-1f1b", "zb-h1", "zbv")
MOST_MICRO_BATCH = 64


@dataclass(frozen=True)
class SearchSpace:
    """Holds what a search varies; a tuple of one value fixes it.

    >>> SearchSpace(num_gpus=64).schedules
    ('1f1b', 'interleaved-1f1b', 'zb-h1', 'zbv')
    """

    num_gpus: int
    schedules: tuple[str, ...] = SCHEDULES
    zeros: tuple[int, ...] = (1, 3)
    recomputes: tuple[Recomputed, ...] = ("none", "selective", "full")
    offloads: tuple[Offloaded, ...] = ("none", "optimizer", "activations")
    tp: tuple[int, ...] | None = None
    """None: every size that the rules allow."""
    pp: tuple[int, ...] | None = None
    cp: tuple[int, ...] | None = None
    dp: tuple[int, ...] | None = None
    ep: tuple[int, ...] | None = None
    etp: tuple[int, ...] | None = None
    micro_batch: tuple[int, ...] | None = None
    chunks: tuple[int, ...] | None = None
    orders: tuple[str, ...] | None = None
    """Orders of axes, where one is chosen; None: all that the framework has, where they differ."""

    def __post_init__(self) -> None:
        if self.num_gpus < 1:
            raise InputError("{gpus} GPUs cannot be; a cluster has at least 1", gpus=self.num_gpus)

    @property
    def fixed(self) -> dict[str, int]:
        """Sizes that are asked for, by name.

        >>> SearchSpace(64, tp=(4,), chunks=(2,)).fixed
        {'tp': 4, 'chunks': 2}
        """
        names = ("tp", "pp", "cp", "dp", "ep", "etp", "micro_batch", "chunks")
        told = {name: getattr(self, name) for name in names}
        return {name: value[0] for name, value in told.items() if value and len(value) == 1}

    def manners(self, asked: PlanRequest) -> Iterator[PlanRequest]:
        """Returns a request for each schedule, ZeRO stage, recompute and offload."""
        kinds = product(self.schedules, self.zeros, self.recomputes, self.offloads)
        for schedule, zero, recompute, offload in kinds:
            told = asked.recompute if asked.recompute.kind == recompute else Recompute(recompute)
            if recompute == "selective" and asked.has_flash_attention and not told.modules:
                told = replace(told, modules=_cheap_modules(asked))
                if not told.modules:
                    continue  # what it would compute again is never kept
            yield replace(
                asked,
                schedule=schedule,
                zero=zero,
                recompute=told,
                offload=offload,
                degrees=Degrees(),
                shard_ranks=None,  # each layout's own, not the one rank's that was asked with
                stage_layers=None,
            )


def _cheap_modules(asked: PlanRequest) -> tuple[str, ...]:
    """Returns what a framework computes again at little cost; nothing where it names no modules."""
    if asked.framework == "torchtitan":
        return ("op",)
    if asked.framework != "megatron":
        return ()
    of_experts = ("moe_act",) if asked.model.experts else ()
    return ("layernorm", *of_experts, *(("mla_up_proj",) if asked.model.latent else ()))


def rows_of(space: SearchSpace, asked: PlanRequest) -> dict[str, Whole]:
    """Returns the columns of ``COLUMNS`` for one manner; they may have no row."""
    found = [rows for split in _splits(space, asked) if (rows := _batches(space, asked, *split))]
    if not found:
        return {name: np.zeros(0, np.int64) for name in COLUMNS}
    return {name: np.concatenate([rows[name] for rows in found]) for name in COLUMNS}


def _splits(
    space: SearchSpace, asked: PlanRequest
) -> Iterator[tuple[int, int, int, int, int, int]]:
    """Returns tp, cp, pp, dp, ep, etp that the model and the number of GPUs allow."""
    model, world = asked.model, space.num_gpus
    for tp in _chosen(space.tp, _tensor_sizes(asked, world)):
        for cp in _chosen(space.cp, _context_sizes(asked, world // tp)):
            for pp in _chosen(space.pp, _divisors(world // (tp * cp), model.layers + 2)):
                if world % (tp * cp * pp) or not _schedules_on(asked.schedule, pp):
                    continue
                if asked.zero >= 3 and pp > 1:
                    continue  # frameworks gather weights whole for each microbatch of a stage
                dp = world // (tp * cp * pp)
                if space.dp is not None and dp not in space.dp:
                    continue
                for ep, etp in _expert_sizes(space, asked, tp, tp * cp * dp):
                    yield tp, cp, pp, dp, ep, etp


def _batches(
    space: SearchSpace, asked: PlanRequest, tp: int, cp: int, pp: int, dp: int, ep: int, etp: int
) -> dict[str, Whole] | None:
    """Returns a row for each microbatch size and number of chunks; None without any."""
    if asked.global_batch % dp:
        return None
    per_replica = asked.global_batch // dp
    sizes = _chosen(space.micro_batch, _divisors(per_replica, MOST_MICRO_BATCH))
    chunks = [
        each
        for each in _chosen(space.chunks, _chunks(asked.schedule, asked.model.layers, pp))
        if _fills(asked.model.layers, pp * each)
    ]
    orders = orders_at(space, asked, pp, dp)
    rows = [
        (size, each, per_replica // size, order)
        for size in sizes
        for each in chunks
        for order in orders
        if per_replica % size == 0 and _rounds(asked.schedule, per_replica // size, pp)
    ]
    if not rows:
        return None
    micro_batch, of_chunks, microbatches, order = np.array(rows, np.int64).T
    same = {"tp": tp, "cp": cp, "pp": pp, "dp": dp, "ep": ep, "etp": etp}
    return {
        **{name: np.full(len(rows), value, np.int64) for name, value in same.items()},
        "chunks": of_chunks,
        "micro_batch": micro_batch,
        "microbatches": microbatches,
        "order": order,
    }


def orders_in(space: SearchSpace, asked: PlanRequest) -> tuple[str, ...]:
    """Returns the orders of axes that rows number: those given, or the framework's own."""
    return orders_of(asked.framework) if space.orders is None else space.orders


def orders_at(space: SearchSpace, asked: PlanRequest, pp: int, dp: int) -> Sequence[int]:
    """Returns the orders to weigh; one of none where all ranks share fast links, or one axis is 1.

    Of stages alone, or replicas alone, every order numbers the ranks alike.
    """
    orders = orders_in(space, asked)
    matters = pp > 1 and dp > 1 and space.num_gpus > asked.cluster.nvlink_domain
    return range(len(orders)) if orders and (matters or space.orders is not None) else [-1]


def _chosen(asked: tuple[int, ...] | None, allowed: Sequence[int]) -> list[int]:
    return [each for each in allowed if asked is None or each in asked]


def _divisors(count: int, most: int) -> list[int]:
    return [each for each in range(1, min(count, most) + 1) if count % each == 0]


def _tensor_sizes(asked: PlanRequest, most: int) -> list[int]:
    """Returns sizes of tp; beyond a fast domain its exchanges are never worth their time."""
    model, domain = asked.model, max(asked.cluster.nvlink_domain, asked.cluster.gpus_per_node)
    return [
        tp
        for tp in _divisors(model.heads, min(most, domain))
        if (model.kv_heads % tp == 0 or tp % model.kv_heads == 0)
        and model.ffn % tp == 0
        and most % tp == 0
    ]


def _context_sizes(asked: PlanRequest, most: int) -> list[int]:
    return [1] + [cp for cp in _divisors(most, 64) if cp > 1 and asked.sequence % (2 * cp) == 0]


def _expert_sizes(
    space: SearchSpace, asked: PlanRequest, tp: int, stage_ranks: int
) -> Iterator[tuple[int, int]]:
    experts = asked.model.experts
    if experts is None:
        yield 1, tp
        return
    for etp in _chosen(space.etp, sorted({1, tp})):
        for ep in _chosen(space.ep, _divisors(experts.count, stage_ranks)):
            if stage_ranks % (ep * etp) == 0 and experts.ffn % etp == 0:
                yield ep, etp


def _schedules_on(schedule: str, pp: int) -> bool:
    """Tells whether a schedule is looked at on so many ranks: one rank needs just one."""
    return pp > 1 or schedule == "1f1b"


def _chunks(schedule: str, layers: int, pp: int) -> list[int]:
    if schedule == "interleaved-1f1b":
        return list(range(2, layers // pp + 1))
    return [2] if schedule in ("zbv", "v-half", "v-min", "dualpipev") else [1]


def _fills(layers: int, stages: int) -> bool:
    return layers % stages == 0 or ((layers + 2) % stages == 0 and layers + 2 > stages)


def _rounds(schedule: str, microbatches: int, pp: int) -> bool:
    if schedule == "interleaved-1f1b":
        return microbatches % pp == 0
    return microbatches >= pp or schedule in ("1f1b", "gpipe")
