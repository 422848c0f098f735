"""DeepSpeed: the pipeline topology, and the groups that each of its features adds.

Read from deepspeed 0.15.0 to 0.19.8: runtime/pipe/topology.py (PipelineParallelGrid),
utils/groups.py, runtime/zero/mics_utils.py, module_inject/auto_ep_folding.py and
runtime/sequence_parallel/parallel_state_sp.py. Experts are in ``deepspeed_experts``, the sharding
features in ``deepspeed_shards``, hostfiles in ``deepspeed_hosts``.

    pipe · data · model, slowest first        16 ranks, pp 4, tp 2
    pipe [0 4 8 12] …    data [0 2] [1 3] …   model [0 1] …    ds_model [0 1 4 5 8 9 12 13] …

``kind`` asks for one feature alone; without it the settings say which there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from serried.errors import InputError, listed
from serried.frameworks.deepspeed import (
    experts as deepspeed_experts,
)
from serried.frameworks.deepspeed import (
    hosts as deepspeed_hosts,
)
from serried.frameworks.deepspeed import (
    shards as deepspeed_shards,
)
from serried.frameworks.deepspeed.feature import Feature
from serried.frameworks.framework import (
    Framework,
    choice,
    prime_factors,
    refuse_foreign_sizes,
    refuse_unknown_options,
    split_world,
    switch,
)
from serried.mesh import ByFirst, Chain, GroupKind, Layout, Mesh, RingPairs
from serried.mesh.sizes import Sizes

OPTIONS = {
    "kind": "one feature alone: topology, moe, autoep, autotp, ulysses, hpz, mics, qgz, hostfile",
    "topology": "given, or default: none given, prime factors go to pp and dp by turns",
    "axes": "axes of a topology, slowest first, such as pipe,data,model",
    "dims": "sizes of those axes, such as 2,4,2",
    "use_data_before_expert_parallel": "true puts expert data on neighbouring ranks",
    "enable_expert_tensor_parallelism": "true cuts experts by --tp too, as dense layers (false)",
    "autotp_size": "tensor parallel ranks under AutoTP (default --tp)",
    "autoep_size": "expert parallel ranks under AutoEP (default --ep)",
    "expert_tensor_parallel_size": "reserved; AutoEP takes 1 only",
    "sequence_parallel_size": "ranks that share a sequence (Ulysses, ALST)",
    "data_parallel_size": "beside sequence_parallel_size: a mesh of the two",
    "zero_hpz_partition_size": "ranks of a ZeRO++ secondary partition",
    "zero_quantized_gradients": "true makes the all-to-all groups of ZeRO++ qgZ",
    "names": "kinds or keys: what qgZ groups are called, local or local_0, local_1 … (kinds)",
    "mics_shard_size": "ranks of a MiCS shard, before 0.19.7",
    "mics_hierarchical_params_gather": "true gathers MiCS shards by node first",
    "devices_per_node": "ranks of a node (default 8)",
    "hostfile": "the lines of a hostfile, such as 'worker-0 slots=4'",
    "include": "hosts and slots to use, such as worker-0@worker-1:0,2",
    "exclude": "hosts and slots to leave out, in the same form",
}
ORDER = "pipe,data,model"
KINDS = (
    *("all", "topology", "moe", "autoep", "autotp", "ulysses", "hpz", "mics", "qgz", "hostfile"),
)


def layout(sizes: Sizes, version: str) -> Layout:
    """Returns DeepSpeed's layout; raises InputError wherever DeepSpeed would refuse."""
    refuse_unknown_options(sizes, "deepspeed", OPTIONS)
    refuse_foreign_sizes(sizes, "deepspeed", ("tp", "pp", "dp", "ep"))
    if sizes.order not in (None, ORDER):
        raise InputError(
            "order '{order}' cannot be set: pipelines use {fixed}; "
            "--set axes=… --set dims=… make any other topology",
            order=sizes.order,
            fixed=ORDER,
        )
    # Features are independent of one another in DeepSpeed: each brings meshes and kinds of its own.
    # A kind that two of them make stands once, and the first to say which kind carries a dimension
    # is heard.
    features = [make(sizes, version) for make in _wanted(sizes)]
    world_size = next((f.world_size for f in features if f.world_size), sizes.world_size)
    meshes: dict[str, Mesh] = {}
    dims: dict[str, str] = {}
    for feature in features:
        meshes |= feature.meshes
        dims = feature.dims | dims
    kinds = {kind.name: kind for feature in features for kind in feature.kinds}
    return Layout(
        framework="deepspeed",
        version=version,
        world_size=world_size,
        sizes=_sizes(sizes, {dim: _size(kinds[name], meshes) for dim, name in dims.items()}),
        order=features[0].order,
        meshes=meshes,
        kinds=tuple(kinds.values()),
        dims=dims,
        findings=tuple(finding for feature in features for finding in feature.findings),
        ranks_per_host=next((f.ranks_per_host for f in features if f.ranks_per_host), ()),
    )


def _sizes(sizes: Sizes, made: Mapping[str, int]) -> dict[str, int]:
    """Returns the size of each dimension: that of its groups, else what was asked for."""
    known = {"tp": sizes.tp, "pp": sizes.pp, "ep": sizes.ep, "cp": 1, **made}
    return {"dp": sizes.world_size // (known["tp"] * known["pp"])} | known


def _size(kind: GroupKind, meshes: Mapping[str, Mesh]) -> int:
    return math.prod(meshes[kind.mesh].sizes[axis] for axis in kind.axes)


def _wanted(sizes: Sizes) -> list[Callable[[Sizes, str], Feature]]:
    """Returns the features asked for by name, or by their settings."""
    named = choice(sizes, "kind", KINDS)
    if named != "all":
        return [FEATURES[named]]
    # AutoEP makes AutoTP's groups and the expert groups itself, so it stands for both.
    asked = [
        ("hostfile" in sizes.options, "hostfile"),
        ("autoep_size" in sizes.options, "autoep"),
        ("autotp_size" in sizes.options and "autoep_size" not in sizes.options, "autotp"),
        ("sequence_parallel_size" in sizes.options, "ulysses"),
        ("zero_hpz_partition_size" in sizes.options, "hpz"),
        ("mics_shard_size" in sizes.options, "mics"),
        (switch(sizes, "zero_quantized_gradients"), "qgz"),
        (sizes.ep > 1 and "autoep_size" not in sizes.options, "moe"),
    ]
    names = [name for is_asked, name in asked if is_asked]
    # A hostfile, AutoEP and AutoTP say where all ranks stand; without them a pipeline topology
    # does, and comes first, so that it is the one to say which kind carries a dimension.
    if not {"hostfile", "autoep", "autotp"} & {*names}:
        names.insert(0, "topology")
    return [FEATURES[name] for name in names]


PAIRS = Chain((RingPairs(), ByFirst()))
"""Rank by rank, each with the rank of the next stage: lists that the grid keeps."""

GRID = (
    GroupKind("ds_model", ("pipe", "model"), about="overflow checks of one whole model"),
    GroupKind("data", ("data",), about="same weights, other batches"),
    GroupKind("p2p", ("pipe",), rule=PAIRS, about="stage to next stage, the last to the first"),
    GroupKind("pipe", ("pipe",), about="consecutive stages"),
    GroupKind("model", ("model",), about="parts of every layer"),
    GroupKind("slice", ("model",), twin_of="model", about="the grid's own name for model"),
)
"""What PipelineParallelGrid makes, in its order; p2p is a list of pairs that it keeps."""


def topology(sizes: Sizes, version: str) -> Feature:
    """Returns the groups of a pipeline grid, or the axis lists of any other topology."""
    if "axes" in sizes.options or "dims" in sizes.options:
        return _free_topology(sizes)
    if choice(sizes, "topology", ("given", "default")) == "default":
        return _default_topology(sizes)
    factors = {"pp": sizes.pp, "tp": sizes.tp}
    dp = split_world(sizes.world_size, factors, sizes.dp)
    mesh = Mesh({"pipe": sizes.pp, "data": dp, "model": sizes.tp})
    dims = {"dp": "data", "tp": "model", "pp": "pipe"}
    return Feature({"dense": mesh}, GRID, dims, order=ORDER)


def _default_topology(sizes: Sizes) -> Feature:
    """Returns the grid of a job that gives no topology: pipe and data, without tensor ranks."""
    if (sizes.pp, sizes.tp, sizes.dp) != (1, 1, None):
        raise InputError(
            "topology=default takes no pp, tp or dp: the prime factors of the {world} ranks go to "
            "pp and dp by turns",
            world=sizes.world_size,
        )
    primes = prime_factors(sizes.world_size)
    mesh = Mesh({"pipe": math.prod(primes[::2]), "data": math.prod(primes[1::2]), "model": 1})
    kinds = tuple(replace(kind, twin_of=None) for kind in GRID if kind.name != "model")
    return Feature({"dense": mesh}, kinds, {"dp": "data", "pp": "pipe"}, order="pipe,data")


def _free_topology(sizes: Sizes) -> Feature:
    # DeepSpeed's ProcessTopology takes axes of any name: axes=pipe,data,model with dims=4,2,2.
    names = [word for word in sizes.options.get("axes", "").split(",") if word]
    words = [word for word in sizes.options.get("dims", "").split(",") if word]
    if len(names) != len(words) or not all(word.isdecimal() and int(word) for word in words):
        raise InputError(
            "axes={axes} and dims={dims} do not pair up; give one size of at least 1 per axis",
            axes=",".join(names),
            dims=",".join(words),
        )
    # A name given twice would be lost in the dict below, and its size with it.
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise InputError("axes names '{name}' twice; each axis stands once", name=twice)
    axes = dict(zip(names, map(int, words), strict=True))
    if math.prod(axes.values()) != sizes.world_size:
        raise InputError(
            "a topology of {axes} holds {held} ranks, but there are {world}",
            axes=listed(f"{axis}={size}" for axis, size in axes.items()),
            held=math.prod(axes.values()),
            world=sizes.world_size,
        )
    kinds = tuple(GroupKind(f"axis:{axis}", (axis,)) for axis in axes)
    known = {"dp": "data", "tp": "model", "pp": "pipe"}
    dims = {dim: f"axis:{axis}" for dim, axis in known.items() if axis in axes}
    return Feature({"dense": Mesh(axes)}, kinds, dims, order=",".join(axes))


FEATURES: Mapping[str, Callable[[Sizes, str], Feature]] = {
    "topology": topology,
    "moe": deepspeed_experts.mixture,
    "autoep": deepspeed_experts.folded,
    "autotp": deepspeed_shards.tensor,
    "ulysses": deepspeed_shards.sequence,
    "hpz": deepspeed_shards.secondary,
    "mics": deepspeed_shards.mics,
    "qgz": deepspeed_shards.all_to_all,
    "hostfile": deepspeed_hosts.hosts,
}

DEEPSPEED = Framework(
    name="deepspeed",
    title="DeepSpeed",
    version="0.19.8",
    source="deepspeed deepspeed/runtime/pipe/topology.py, deepspeed/utils/groups.py",
    dims=("dp", "tp", "pp", "ep"),
    options=OPTIONS,
    default_order=ORDER,
    orders=(ORDER,),
    make=layout,
    versions=("0.15.0", "0.18.9", "0.19.6", "0.19.8"),
)
