"""FSDP2 and HSDP: weights sharded over a mesh axis, whole copies along another.

Read from torch 2.13.0, torch/distributed/fsdp (fully_shard, ShardingStrategy) and its HSDP
examples. The mesh is (dp_replicate, dp_shard[, tp]), tp fastest; HYBRID_SHARD shards inside a
node and replicates across nodes.

    16 ranks, HYBRID_SHARD, nodes of 8     dp_shard [0 … 7] [8 … 15]     dp_replicate [0 8] …
"""

from __future__ import annotations

from serried.errors import InputError, listed
from serried.frameworks.devicemesh import of_mesh
from serried.frameworks.framework import (
    Framework,
    choice,
    divisors,
    number,
    refuse_foreign_sizes,
    refuse_unknown_options,
    split_world,
)
from serried.frameworks.internlm import refuse_other_orders
from serried.mesh import GroupKind, Layout, Mesh
from serried.mesh.sizes import Sizes

ORDER = "dp_replicate,dp_shard,tp"
STRATEGIES = ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2")
OPTIONS = {
    "sharding_strategy": "FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, HYBRID_SHARD_ZERO2",
    "dp_shard": "ranks that share weights (default by strategy: all, one, or a node)",
    "devices_per_node": "ranks of a node, for HYBRID_SHARD (default 8)",
}


def layout(sizes: Sizes, version: str) -> Layout:
    """Returns the mesh of FSDP2 or HSDP; raises InputError where the sizes do not divide."""
    refuse_unknown_options(sizes, "fsdp", OPTIONS)
    refuse_foreign_sizes(sizes, "fsdp", ("tp", "dp"))
    refuse_other_orders(sizes.order, ORDER, "fsdp")
    dp = split_world(sizes.world_size, {"tp": sizes.tp}, sizes.dp)
    strategy = choice(sizes, "sharding_strategy", STRATEGIES)
    shard = number(sizes, "dp_shard", _default_shard(sizes, strategy, dp))
    if dp % shard:
        raise InputError(
            "shards of {shard} ranks do not divide dp={dp}; dp_shard can be {fits}",
            shard=shard,
            dp=dp,
            fits=listed(divisors(dp), limit=24),
        )
    mesh = Mesh({"dp_replicate": dp // shard, "dp_shard": shard, "tp": sizes.tp})
    kinds = [
        GroupKind("dp_replicate", ("dp_replicate",), about="gradients across whole copies"),
        GroupKind("dp_shard", ("dp_shard",), about="shards of the weights"),
        GroupKind("dp", ("dp_replicate", "dp_shard"), about="same weights, other batches"),
    ]
    if sizes.tp > 1:
        kinds.append(GroupKind("tp", ("tp",), about="parts of every layer"))
    return of_mesh("fsdp", version, sizes.world_size, mesh, tuple(kinds))


def _default_shard(sizes: Sizes, strategy: str, dp: int) -> int:
    if strategy == "NO_SHARD":
        return 1
    if not strategy.startswith("HYBRID"):
        return dp
    per_node = number(sizes, "devices_per_node", 8)
    return max(1, min(per_node // sizes.tp, dp))


FSDP = Framework(
    name="fsdp",
    title="FSDP2 / HSDP",
    version="2.13.0",
    source="torch torch/distributed/fsdp",
    dims=("dp", "tp"),
    options=OPTIONS,
    default_order=ORDER,
    orders=(ORDER,),
    make=layout,
    versions=("2.2.0", "2.13.0"),
)
