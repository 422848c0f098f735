"""Accelerate's ParallelismConfig: one mesh of the axes longer than one, and merged kinds.

Read from accelerate 1.15.0, accelerate/parallelism_config.py. Mesh order, slowest first:
dp_replicate, dp_shard, cp, sp, tp; merged are dp, dp_shard_cp and dp_cp. With sp > 1 Accelerate
makes no mesh and DeepSpeed (ALST) makes sequence groups of neighbouring ranks.
"""

from __future__ import annotations

import math

from serried.errors import InputError, listed
from serried.frameworks.devicemesh import of_mesh
from serried.frameworks.framework import (
    Framework,
    divisors,
    number,
    refuse_foreign_sizes,
    refuse_unknown_options,
    switch,
)
from serried.frameworks.internlm import refuse_other_orders
from serried.mesh import GroupKind, Layout, Mesh
from serried.mesh.sizes import Sizes

ORDER = "dp_replicate,dp_shard,cp,sp,tp"
OPTIONS = {
    "dp_replicate_size": "copies that hold whole weights (default 1)",
    "dp_shard_size": "ranks that share weights (default what --dp leaves, else 1)",
    "sp_size": "sequence parallel ranks under DeepSpeed (default 1)",
    "use_fsdp": "true launches under FSDP, which needs a dimension to shard (default false)",
}


def layout(sizes: Sizes, version: str) -> Layout:
    """Returns the mesh of a ParallelismConfig; raises InputError where Accelerate would refuse."""
    refuse_unknown_options(sizes, "accelerate", OPTIONS)
    refuse_foreign_sizes(sizes, "accelerate", ("tp", "cp", "dp"))
    refuse_other_orders(sizes.order, ORDER, "accelerate")
    replicate = number(sizes, "dp_replicate_size", 1)
    axes = {
        "dp_replicate": replicate,
        "dp_shard": number(sizes, "dp_shard_size", max(1, (sizes.dp or 1) // replicate)),
        "cp": sizes.cp,
        "sp": number(sizes, "sp_size", 1),
        "tp": sizes.tp,
    }
    _check(axes, sizes)
    # With sp above 1 (DeepSpeed's ALST) Accelerate makes no mesh and leaves the groups to
    # DeepSpeed.
    if axes["sp"] > 1:
        return _sequence(axes["sp"], sizes, version)
    # Sizes that are all 1 ask for nothing: every rank then holds a whole copy of the weights.
    if math.prod(axes.values()) == 1:
        axes["dp_replicate"] = sizes.world_size
    there = {axis: size for axis, size in axes.items() if size > 1} or {"dp_replicate": 1}
    merged = {
        "dp": ("dp_replicate", "dp_shard"),
        "dp_shard_cp": ("dp_shard", "cp"),
        "dp_cp": ("dp_replicate", "dp_shard", "cp"),
    }
    kinds = [GroupKind(axis, (axis,), about=ABOUT[axis]) for axis in there]
    for name, over in merged.items():
        kept = tuple(axis for axis in over if axis in there)
        kinds += [GroupKind(name, kept, about=ABOUT[name])] if kept else []
    return of_mesh("accelerate", version, sizes.world_size, Mesh(there), tuple(kinds))


ABOUT = {
    "dp_replicate": "whole copies of the weights",
    "dp_shard": "shards of the weights",
    "cp": "other tokens of the same sequences",
    "tp": "parts of every layer",
    "dp": "same weights, other batches",
    "dp_shard_cp": "shards of the weights, context folded in",
    "dp_cp": "the mean loss",
}


def _sequence(sp: int, sizes: Sizes, version: str) -> Layout:
    if sizes.world_size % sp:
        raise InputError(
            "sp_size={size} does not divide {world} ranks; sizes that do: {fits}",
            size=sp,
            world=sizes.world_size,
            fits=listed(divisors(sizes.world_size), limit=24),
        )
    mesh = Mesh({"data": sizes.world_size // sp, "sp": sp})
    kinds = (
        GroupKind("sequence", ("sp",), about="parts of the same sequences"),
        GroupKind("sequence_data", ("data", "sp"), about="gradients and shards"),
    )
    dims = {"dp": "sequence_data"}
    return of_mesh("accelerate", version, sizes.world_size, mesh, kinds, dims)


def _check(axes: dict[str, int], sizes: Sizes) -> None:
    if axes["cp"] > 1 and axes["sp"] > 1:
        raise InputError(
            "cp={cp} and sp_size={sp} exclude each other; set one of them to 1",
            cp=axes["cp"],
            sp=axes["sp"],
        )
    # Accelerate calls it pure data parallelism: copies of the weights, and no shards of them.
    pure = axes["dp_replicate"] > 1 and axes["dp_shard"] == 1
    if pure and (axes["tp"] > 1 or axes["cp"] > 1):
        raise InputError(
            "tp={tp} or cp={cp} does not go with dp_replicate_size={replicate} alone; "
            "raise dp_shard_size above 1",
            tp=axes["tp"],
            cp=axes["cp"],
            replicate=axes["dp_replicate"],
        )
    # The ranks of sp stand in no mesh, so they need not multiply to the world; _sequence checks
    # them.
    total = math.prod(axes.values())
    if total not in (1, sizes.world_size) and axes["sp"] == 1:
        raise InputError(
            "dp_replicate x dp_shard x tp x cp is {total}, but there are {world} ranks; "
            "give --dp or dp_shard_size so that it is that many",
            total=total,
            world=sizes.world_size,
        )
    data = axes["dp_replicate"] * axes["dp_shard"] if total > 1 else sizes.world_size
    if sizes.dp not in (None, data):
        raise InputError(
            "dp={dp} does not fit: the other sizes leave dp={left}", dp=sizes.dp, left=data
        )
    if switch(sizes, "use_fsdp") and axes["dp_shard"] == axes["cp"] == 1:
        raise InputError(
            "FSDP has nothing to shard along: dp_shard_size and cp are both 1; raise one of them"
        )


TRAFFIC_SETTINGS = {
    "cp_comm_strategy": ("allgather", "alltoall"),
}
"""Settings on which what travels depends, but no group, with their values."""

TRAFFIC_ABOUT = {
    "cp_comm_strategy": "allgather or alltoall: how K and V travel (default allgather)",
}


ACCELERATE = Framework(
    name="accelerate",
    title="Accelerate ParallelismConfig",
    version="1.15.0",
    source="accelerate accelerate/parallelism_config.py",
    dims=("dp", "tp", "cp"),
    options=OPTIONS | TRAFFIC_ABOUT,
    default_order=ORDER,
    orders=(ORDER,),
    make=layout,
    traffic_settings=TRAFFIC_SETTINGS,
    versions=("1.10.0", "1.15.0"),
)
