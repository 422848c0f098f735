"""torchtitan: one dense mesh, tp fastest, and a second mesh over the same ranks for experts.

Read from torchtitan 0.1.0, 0.2.0 to 0.2.2 and 0.3.0 (PyPI) and main b5bcd76c,
torchtitan/distributed/parallel_dims.py (ParallelDims). Slowest axis first:

    0.1      pp dp_replicate dp_shard cp tp, those longer than one; dp, dp_shard_cp, dp_cp merged
    0.2.0    dp_shard split in dp_shard_mod_ep x dp_shard_in_ep; ep merges in_ep, cp (and tp)
    0.2.1 on pp batch cp tp · pp dp_replicate fsdp tp · pp dp_replicate efsdp ep etp
    0.3 on   no etp; efsdp = dp_shard cp tp / ep; dp_shard or fsdp by spmd_backend

EP is no factor of the world: experts lie over ranks that dense layers use otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

from serried.errors import InputError, listed
from serried.frameworks.framework import (
    Framework,
    at_least,
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

ORDER = "pp,dp_replicate,dp_shard,cp,tp"
OPTIONS = {
    "data_parallel_replicate_degree": "copies that hold whole weights (default 1)",
    "data_parallel_shard_degree": "ranks that share weights (default -1: what is left)",
    "spmd_backend": "spmd_types, full_dtensor or partial_dtensor, from 0.3 on",
}
BACKENDS = ("spmd_types", "full_dtensor", "partial_dtensor")
ABOUT = {
    "pp": "consecutive stages",
    "batch": "other batches",
    "loss": "the mean loss",
    "dp_replicate": "whole copies of the weights",
    "dp_shard": "shards of the weights",
    "fsdp": "shards of the weights, context folded in",
    "cp": "other tokens of the same sequences",
    "tp": "parts of every layer",
    "ep": "other experts",
    "efsdp": "shards of the experts",
    "etp": "parts of each expert",
    "dp": "same weights, other batches",
    "dp_cp": "the mean loss",
    "dp_shard_cp": "shards of the weights, context folded in",
}


@dataclass(frozen=True)
class ParallelDims:
    """Holds every parallel degree of one job."""

    pp: int
    replicate: int
    shard: int
    cp: int
    tp: int
    ep: int
    etp: int


def layout(sizes: Sizes, version: str) -> Layout:
    """Returns torchtitan's layout; raises InputError wherever torchtitan would refuse."""
    options = [key for key in OPTIONS if key != "spmd_backend" or at_least(version, "0.3")]
    refuse_unknown_options(sizes, "torchtitan", options)
    has_ep, has_etp = at_least(version, "0.2"), not at_least(version, "0.3")
    takes = ("tp", "pp", "cp", "dp") + (("ep",) if has_ep else ())
    refuse_foreign_sizes(sizes, "torchtitan", takes + (("etp",) if has_ep and has_etp else ()))
    refuse_other_orders(sizes.order, ORDER, "torchtitan")
    degrees = _degrees(sizes)
    if at_least(version, "0.2.1"):
        meshes, kinds = _staggered(sizes, version, degrees)
    else:
        meshes, kinds = _single(version, degrees)
    # The data ranks are dp and dp_cp up to 0.2.0, batch and loss from 0.2.1 on; 0.3 may make a dp
    # besides, along the same axes as batch.
    names = {kind.name for kind in kinds}
    dp = "batch" if "batch" in names else "dp"
    carried = {"dp": dp, "tp": "tp", "pp": "pp", "cp": "cp", "ep": "ep"}
    return Layout(
        framework="torchtitan",
        version=version,
        world_size=sizes.world_size,
        sizes={"tp": degrees.tp, "pp": degrees.pp, "cp": degrees.cp, "ep": degrees.ep}
        | {"dp": degrees.replicate * degrees.shard}
        | {"dp_replicate": degrees.replicate, "dp_shard": degrees.shard}
        | ({"etp": degrees.etp} if has_ep and has_etp else {}),
        order=ORDER,
        meshes=meshes,
        kinds=kinds,
        dims={dim: kind for dim, kind in carried.items() if kind in names},
        dp_with_cp=next((name for name in ("loss", "dp_cp") if name in names), None),
    )


def _degrees(sizes: Sizes) -> ParallelDims:
    """Returns the degrees; those of data parallelism follow from the rest."""
    replicate = number(sizes, "data_parallel_replicate_degree", 1)
    shard = number(sizes, "data_parallel_shard_degree", -1)
    factors = {"pp": sizes.pp, "data_parallel_replicate_degree": replicate}
    factors |= {"cp": sizes.cp, "tp": sizes.tp}
    left = split_world(sizes.world_size, factors, None)
    if shard not in (-1, left):
        raise InputError(
            "data_parallel_shard_degree={shard} does not fit: the other degrees leave {left} of "
            "{world} ranks; give {left}, or -1 for what is left",
            shard=shard,
            left=left,
            world=sizes.world_size,
        )
    if sizes.dp not in (None, replicate * left):
        raise InputError(
            "dp={dp} does not fit: replicate x shard is {replicate} x {left}",
            dp=sizes.dp,
            replicate=replicate,
            left=left,
        )
    etp = 1 if sizes.etp is None else sizes.etp
    return ParallelDims(sizes.pp, replicate, left, sizes.cp, sizes.tp, sizes.ep, etp)


def _kind(name: str, axes: tuple[str, ...], mesh: str = "dense") -> GroupKind:
    return GroupKind(name, axes, mesh, about=ABOUT.get(name, ""))


# --------------------------------------------------------------- one mesh: 0.1 and 0.2.0


def _single(version: str, degrees: ParallelDims) -> tuple[dict[str, Mesh], tuple[GroupKind, ...]]:
    """Returns the mesh of axes longer than one, each axis a kind, and the merged kinds."""
    # With experts (0.2.0) dp_shard is two axes: an expert group takes its ranks from the faster,
    # dp_shard_in_ep, together with cp, and with tp where experts are not split over it.
    with_ep = degrees.ep > 1
    inside, outside = _shards(degrees) if with_ep else (1, degrees.shard)
    names = ("dp_shard_mod_ep", "dp_shard_in_ep") if with_ep else ("dp_shard", "unused")
    axes = {"pp": degrees.pp, "dp_replicate": degrees.replicate, names[0]: outside}
    axes |= {names[1]: inside, "cp": degrees.cp, "tp": degrees.tp}
    there = {axis: size for axis, size in axes.items() if size > 1 or axis == "dp_shard_mod_ep"}
    merged = {
        "dp": ("dp_replicate", *names),
        "dp_shard_cp": (*names, "cp"),
        "dp_cp": ("dp_replicate", *names, "cp"),
    }
    if with_ep:
        lanes = ("tp",) if degrees.etp == 1 else ()
        merged["ep"] = ("dp_shard_in_ep", "cp", *lanes)
    kinds = [_kind(axis, (axis,)) for axis in there]
    for name, over in merged.items():
        kept = tuple(axis for axis in over if axis in there)
        kinds += [_kind(name, kept)] if kept else []
    return {"dense": Mesh(there or {"dp_shard": 1})}, tuple(kinds)


def _shards(degrees: ParallelDims) -> tuple[int, int]:
    """Returns how many of the shards lie inside and outside an expert group (0.2.0)."""
    if degrees.etp not in (degrees.tp, 1):
        raise _other_etp(degrees)
    # What ep cannot take from cp (and tp) it takes from dp_shard, so it is a multiple of the former
    # and the rest divides the latter.
    lanes = 1 if degrees.etp == degrees.tp else degrees.tp
    borrowed = degrees.cp * lanes
    if degrees.ep % borrowed or degrees.shard * borrowed % degrees.ep:
        fits = [borrowed * n for n in divisors(degrees.shard)]
        raise InputError(
            "ep={ep} does not fit: it is a multiple of {borrowed} and divides {whole}; "
            "sizes that do: {fits}",
            ep=degrees.ep,
            borrowed=borrowed,
            whole=degrees.shard * borrowed,
            fits=listed(fits, limit=24),
        )
    return degrees.ep // borrowed, degrees.shard * borrowed // degrees.ep


def _other_etp(degrees: ParallelDims) -> InputError:
    return InputError(
        "etp={etp} is neither 1 nor tp={tp}, all that torchtitan 0.2 supports",
        etp=degrees.etp,
        tp=degrees.tp,
    )


# ----------------------------------------------------------- staggered meshes: 0.2.1 on


def _staggered(
    sizes: Sizes, version: str, degrees: ParallelDims
) -> tuple[dict[str, Mesh], tuple[GroupKind, ...]]:
    """Returns the meshes over all ranks, and each of their axes as a kind."""
    has_etp = not at_least(version, "0.3")
    etp = degrees.etp if has_etp else 1
    if degrees.ep > 1 and has_etp and etp not in (degrees.tp, 1):
        raise _other_etp(degrees)
    # Experts take no ranks of their own: ep and etp are cut from dp_shard x cp x tp, and what is
    # left is efsdp. With 16 ranks, tp=2 and ep=4, 0.3.0 makes ep groups 0 1 2 3 and efsdp groups 0
    # 4 8 12.
    whole = degrees.shard * degrees.cp * degrees.tp
    if whole % (etp * degrees.ep):
        raise InputError(
            "ep={ep} x etp={etp} does not divide dp_shard x cp x tp = {whole}; "
            "sizes that do: {fits}",
            ep=degrees.ep,
            etp=etp,
            whole=whole,
            fits=listed(divisors(whole), limit=24),
        )
    head = {"pp": degrees.pp, "dp_replicate": degrees.replicate}
    meshes = {
        "dense": Mesh(head | {"dp_shard": degrees.shard, "cp": degrees.cp, "tp": degrees.tp}),
        "sparse": Mesh(head | {"efsdp": whole // (etp * degrees.ep), "ep": degrees.ep, "etp": etp}),
    }
    data = ("dp_replicate", "dp_shard")
    kinds = {
        "pp": _kind("pp", ("pp",)),
        "batch": _kind("batch", data),
        "loss": _kind("loss", (*data, "cp")),
        "dp_replicate": _kind("dp_replicate", ("dp_replicate",)),
        "fsdp": _kind("fsdp", ("dp_shard", "cp")),
        "cp": _kind("cp", ("cp",)),
        "tp": _kind("tp", ("tp",)),
        "ep": _kind("ep", ("ep",), "sparse"),
        "efsdp": _kind("efsdp", ("efsdp",), "sparse"),
        "etp": _kind("etp", ("etp",), "sparse"),
        "dp": _kind("dp", data),
        "dp_shard": _kind("dp_shard", ("dp_shard",)),
    }
    return meshes, tuple(kinds[name] for name in _names(sizes, has_etp))


def _names(sizes: Sizes, has_etp: bool) -> tuple[str, ...]:
    if has_etp:
        return "pp", "batch", "loss", "dp_replicate", "fsdp", "cp", "tp", "ep", "efsdp", "etp"
    shards = {
        "partial_dtensor": ("fsdp",),
        "full_dtensor": ("dp_shard",),
        "spmd_types": ("dp", "dp_shard"),
    }
    backend = choice(sizes, "spmd_backend", BACKENDS)
    return ("pp", "batch", "loss", "dp_replicate", "cp", "tp", "ep", "efsdp", *shards[backend])


TRAFFIC_SETTINGS = {
    "fsdp_reshard_after_forward": ("default", "always", "never"),
    "context_parallel_rotate_method": ("allgather", "alltoall"),
    "enable_sequence_parallel": ("true", "false"),
}
"""Settings on which what travels depends, but no group, with their values."""

TRAFFIC_ABOUT = {
    "fsdp_reshard_after_forward": "default, always or never: gather weights again before backward",
    "context_parallel_rotate_method": "allgather (the default) or alltoall: how K and V travel",
    "enable_sequence_parallel": "false keeps activations whole on tensor ranks, from 0.3 on",
}


TORCHTITAN = Framework(
    name="torchtitan",
    title="torchtitan",
    version="0.3.0",
    source="torchtitan torchtitan/distributed/parallel_dims.py",
    dims=("dp", "tp", "pp", "cp", "ep"),
    options=OPTIONS | TRAFFIC_ABOUT,
    default_order=ORDER,
    orders=(ORDER,),
    make=layout,
    traffic_settings=TRAFFIC_SETTINGS,
    versions=("0.1.0", "0.2.0", "0.2.1", "0.2.2", "0.3.0", "main"),
)
