"""What one rank sends in a step, by group kind: collective, bytes, how often, link, what hides it.

    kind       collective                  how often                      beside
    tp         all_reduce, or its halves   layers x microbatches          GEMMs, where overlapped
    cp         sendrecv round a ring       layers x microbatches          attention
    ep         all_to_all                  MoE layers x microbatches      nothing, or half a batch
    pp         sendrecv                    chunks x microbatches          other microbatches
    dp         reduce_scatter, all_gather  once                           the last backward
    expert_dp  the same, of experts        once                           the last backward
    fsdp       all_gather, reduce_scatter  layers x microbatches          the layer before
    dp         all_reduce, of copies       layers x microbatches          the layer before (HSDP)
    embedding  all_reduce                  once, tied embeddings, pp > 1  nothing

Counted for a rank of the fullest stage. Ranks are laid out as Megatron does: tp, cp, ep, dp, pp,
or pp before dp where that order is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from serried.errors import InputError
from serried.plan.busbw import BusbwTable
from serried.plan.cluster.cluster import Cluster
from serried.plan.precision import recipe
from serried.plan.request import PlanRequest
from serried.plan.traffic import volumes
from serried.plan.traffic.ways import GroupLinks, quickest

LINKS = ("node", "NVLink domain", "rail", "spine")
"""Classes of links, nearest first; a rail joins GPUs of the same place in their nodes."""
NEAR_S, FAR_S = 3.4e-6, 14e-6
"""Latency of a step in the node and across; NCCL 2.x, src/graph/tuning.cc, Simple protocol."""


@dataclass(frozen=True)
class Transfer:
    """Holds one collective of one group kind, as a rank of the fullest stage runs it."""

    kind: str
    collective: str
    ranks: int
    size_bytes: float
    """The buffer: what an all-gather receives and a reduce-scatter sends, all in all."""
    sent_bytes: float
    """What leaves the rank each time, by a ring."""
    times: float
    """How often in a step."""
    link: str
    """The slowest class of ``LINKS`` on its way."""
    beside: str
    """What runs at the same time; "" for nothing."""
    algorithm: str
    seconds: float
    """One of them alone on its links."""
    links: GroupLinks
    """What joins its ranks."""

    @property
    def step_bytes(self) -> float:
        """What leaves the rank in a step."""
        return self.sent_bytes * self.times

    @property
    def step_seconds(self) -> float:
        """All of a step, if nothing hid them."""
        return self.seconds * self.times


def step_transfers(request: PlanRequest, busbw: BusbwTable | None = None) -> tuple[Transfer, ...]:
    """Returns what a rank of the fullest stage sends in a step, kinds of one rank left out.

    Times are those of ``busbw`` where it has the operation, measured by ``serried check``, and
    closed forms (``traffic.ways``) else.
    """
    return tuple(each for each in _all(request, busbw) if each.ranks > 1)


def _all(asked: PlanRequest, busbw: BusbwTable | None) -> Iterator[Transfer]:
    model, degrees = asked.model, asked.degrees
    layers = -(-(model.layers + model.mtp_layers) // degrees.pp)
    times = layers * asked.num_microbatches
    pricer = Pricer(asked.cluster, busbw)
    buffer = 2.0 * asked.tokens * model.hidden
    yield from _tensor(asked, pricer, times, buffer)
    keys = model.latent.kv_rank + model.latent.rope_dim if model.latent else None
    width = keys or 2 * model.kv_heads * model.head_dim / degrees.tp
    ring = 2.0 * asked.tokens * width
    yield pricer.transfer(
        "cp",
        "sendrecv",
        degrees.cp,
        degrees.tp,
        ring,
        ring,
        times * 3 * (degrees.cp - 1),
        "attention",
    )
    yield from _expert(asked, pricer, buffer)
    yield from _stages(asked, pricer, buffer)
    yield from _replicas(asked, pricer, times)


def _tensor(asked: PlanRequest, pricer: Pricer, times: float, buffer: float) -> Iterator[Transfer]:
    tp, beside = asked.degrees.tp, "GEMMs" if asked.hides_tensor else ""
    again = 1.0 + 0.5 * asked.recomputed_share
    part = buffer * float(volumes.kept(tp))
    if not asked.has_sequence_parallel:
        halves = volumes.TP_HALVES / 2 * again
        yield pricer.transfer("tp", "all_reduce", tp, 1, buffer, 2 * part, times * halves, beside)
        return
    # Sequence parallel gathers inputs again for the gradients of weights, which adapters freeze.
    gathers = times * ((4 if asked.lora else 6) + 2 * asked.recomputed_share)
    yield pricer.transfer("tp", "all_gather", tp, 1, buffer, part, gathers, beside)
    scatters = times * 4 * again
    yield pricer.transfer("tp", "reduce_scatter", tp, 1, buffer, part, scatters, beside)


def _expert(asked: PlanRequest, pricer: Pricer, buffer: float) -> Iterator[Transfer]:
    model, degrees = asked.model, asked.degrees
    if model.experts is None:
        return
    moe = -(-(model.num_moe_layers + model.mtp_layers) // degrees.pp)
    routed = buffer * model.experts.top_k / degrees.tp
    often = 4.0 * moe * asked.num_microbatches * (1.0 + 0.5 * asked.recomputed_share)
    beside = "half a batch" if asked.hides_exchange else ""
    sent = routed * float(volumes.kept(degrees.ep))
    apart = degrees.etp
    yield pricer.transfer("ep", "all_to_all", degrees.ep, apart, routed, sent, often, beside)


def _stages(asked: PlanRequest, pricer: Pricer, buffer: float) -> Iterator[Transfer]:
    degrees, model = asked.degrees, asked.model
    split = degrees.tp if asked.has_sequence_parallel else 1
    message = buffer / split
    often = 2.0 * degrees.chunks * asked.num_microbatches
    apart = degrees.tp * degrees.cp if asked.inner == "pp" else degrees.stage_ranks
    yield pricer.transfer(
        "pp", "sendrecv", degrees.pp, apart, message, message, often, "other microbatches"
    )
    if model.is_tied and degrees.pp > 1:
        moved = recipe(asked.states).reduced_bytes
        table = float(moved * model.vocab * model.hidden) / degrees.tp
        yield pricer.transfer("embedding", "all_reduce", 2, apart, table, table, 1.0, "")


def _replicas(asked: PlanRequest, pricer: Pricer, times: float) -> Iterator[Transfer]:
    """Yields what replicas exchange: once a step, or of each layer where weights are sharded."""
    dense, routed = _weights(asked)
    degrees, kept = asked.degrees, recipe(asked.states)
    ranks = asked.shard_ranks if asked.zero >= 3 and asked.shard_ranks else degrees.shard_ranks
    layers = times / asked.num_microbatches
    between = degrees.pp if asked.inner == "pp" else 1
    for kind, weights, count, apart in (
        ("dp", dense, ranks, degrees.tp * between),
        ("expert_dp", routed, degrees.expert_dp, degrees.ep * degrees.etp * between),
    ):
        if not weights:
            continue
        gathered, reduced = weights * kept.computed_bytes, weights * kept.reduced_bytes
        share = float(volumes.kept(count))
        if asked.zero >= 3:
            gathers = times * (1 if asked.is_kept_after_forward else 2)
            sizes = gathered / layers, gathered / layers * share
            yield pricer.transfer(
                "fsdp", "all_gather", count, apart, *sizes, gathers, "the layer before"
            )
            sizes = reduced / layers, reduced / layers * share
            yield pricer.transfer(
                "fsdp", "reduce_scatter", count, apart, *sizes, times, "the layer before"
            )
            copies = max(1, degrees.shard_ranks // count) if kind == "dp" else 1
            size = reduced / layers / count
            sent = 2 * size * float(volumes.kept(copies))
            yield pricer.transfer(
                "dp", "all_reduce", copies, apart * count, size, sent, times, "the layer before"
            )
        elif asked.zero == 0:
            yield pricer.transfer(
                kind, "all_reduce", count, apart, reduced, 2 * reduced * share, 1.0, "last backward"
            )
        else:
            yield pricer.transfer(
                kind, "reduce_scatter", count, apart, reduced, reduced * share, 1.0, "last backward"
            )
            yield pricer.transfer(
                kind, "all_gather", count, apart, gathered, gathered * share, 1.0, "first forward"
            )


def _weights(asked: PlanRequest) -> tuple[float, float]:
    """Returns the dense and routed weights that a rank trains, the model's ends left to others."""
    if asked.lora is not None:
        return sum(map(asked.trained, asked.stages)) / asked.degrees.pp, 0.0
    model, degrees = asked.model, asked.degrees
    hidden, columns = model.hidden, 3 if model.is_gated else 2
    latent = model.latent
    into = hidden * (model.query_dim + 2 * model.kv_heads * model.head_dim)
    if latent:
        into = hidden * (latent.q_rank + latent.kv_rank + latent.rope_dim)
        into += latent.q_rank * model.query_dim
        into += latent.kv_rank * model.heads * (latent.nope_dim + latent.v_dim)
    attention = into + hidden * model.value_dim
    experts = model.experts
    moe = model.num_moe_layers + (model.mtp_layers if experts else 0)
    plain = model.layers - model.num_moe_layers + (0 if experts else model.mtp_layers)
    dense = (model.layers + model.mtp_layers) * attention + plain * columns * hidden * model.ffn
    routed = 0.0
    if experts:
        dense += moe * columns * hidden * experts.shared_ffn
        routed = moe * columns * hidden * experts.ffn * experts.count
        routed /= degrees.ep * degrees.etp * degrees.pp
    return dense / degrees.tp / degrees.pp, routed


@dataclass(frozen=True)
class Pricer:
    """Places groups on a cluster and prices what they run."""

    cluster: Cluster
    busbw: BusbwTable | None

    def transfer(
        self,
        kind: str,
        collective: str,
        ranks: int,
        apart: int,
        size: float,
        sent: float,
        times: float,
        beside: str,
    ) -> Transfer:
        """Returns one transfer of a group whose members lie ``apart`` ranks from each other."""
        links = self.links(ranks, apart)
        name, seconds = quickest(collective, size, links)
        if self.busbw is not None and ranks > 1:
            nodes = max(1, -(-ranks * apart // self.cluster.gpus_per_node))
            try:
                measured = self.busbw.time_ns(
                    collective, ranks=ranks, nodes=min(nodes, ranks), size_bytes=max(1, round(size))
                )
                name, seconds = "measured", measured / 1e9
            except InputError:
                pass
        link = self.link(ranks, apart)
        return Transfer(
            kind, collective, ranks, size, sent, times, link, beside, name, seconds, links
        )

    def links(self, ranks: int, apart: int) -> GroupLinks:
        """Returns what joins a group's ranks."""
        cluster = self.cluster
        near = int(np.clip(cluster.nvlink_domain // apart, 1, ranks))
        gpu = cluster.gpu
        fast = gpu.link_bytes_per_s * gpu.link_reached
        far = cluster.nic_bytes_per_s * cluster.nic_reached
        summed = gpu.link_bytes_per_s * cluster.switch_share
        return GroupLinks(ranks, near, fast, far, NEAR_S, FAR_S, summed)

    def link(self, ranks: int, apart: int) -> str:
        """Returns the farthest class of links on a group's way."""
        span, node = ranks * apart, self.cluster.gpus_per_node
        if span <= node:
            return LINKS[0]
        if span <= self.cluster.nvlink_domain:
            return LINKS[1]
        return LINKS[2] if apart % node == 0 or node % apart == 0 else LINKS[3]
