"""What FSDP2 shards under torch itself, Accelerate and torchtitan: stages 0, 2 and 3.

Read from torch 2.13.0 (distributed/fsdp/_fully_shard), accelerate 1.15.0 (utils/fsdp_utils.py) and
torchtitan 0.3.0 (models/llama3/parallelize.py, fsdp.py: reshard_after_forward is not pp_enabled).

    3   FULL_SHARD, HYBRID_SHARD             reshard_after_forward: gathered for forward, let go,
                                             gathered again for backward
    2   SHARD_GRAD_OP, HYBRID_SHARD_ZERO2    parameters stay whole from forward to backward, and
                                             are shards between steps
    0   NO_SHARD, dp_replicate alone         whole copies; gradients are all-reduced

FSDP always shards the optimizer's state with the parameters, so it has no stage 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from serried.errors import InputError
from serried.finding import said
from serried.frameworks.sharding.cuts import by_stage, named, over, refuse_unknown
from serried.mesh import Layout
from serried.mesh.sharding import Cut, Sharding, StateCuts, Weights
from serried.mesh.sizes import Sizes

STRATEGY_OF = {0: "NO_SHARD", 2: "SHARD_GRAD_OP", 3: "FULL_SHARD"}
STAGE_OF = {"FULL_SHARD": 3, "HYBRID_SHARD": 3, "SHARD_GRAD_OP": 2, "HYBRID_SHARD_ZERO2": 2}
RESHARD_OF = {2: "never", 3: "always"}
RESHARD = "fsdp_reshard_after_forward"
SOURCES = {
    "fsdp": "torch {version} distributed/fsdp/_fully_shard",
    "accelerate": "accelerate {version} utils/fsdp_utils.py",
    "torchtitan": "torchtitan {version} models/llama3/parallelize.py",
}


def settled(framework: str, version: str, sizes: Sizes) -> Sizes:
    """Returns the sizes with what FSDP calls the stage; raises InputError where it has none."""
    if framework == "accelerate" and sizes.options.get("sp_size", "1") != "1":
        return sizes  # DeepSpeed runs it, and has all four
    cure = said("FSDP shards the optimizer's state together with gradients and parameters")
    refuse_unknown(framework, version, sizes.zero, (0, 2, 3), cure)
    assert sizes.zero is not None
    if framework == "fsdp":
        return _with_strategy(sizes, sizes.zero)
    if framework == "torchtitan":
        return _with_degrees(sizes, sizes.zero)
    return _with_copies(sizes, sizes.zero)


def _with_strategy(sizes: Sizes, stage: int) -> Sizes:
    given = sizes.options.get("sharding_strategy")
    if given is None:
        return _set(sizes, {"sharding_strategy": STRATEGY_OF[stage]})
    _require_same("sharding_strategy", given, STAGE_OF.get(given, 0), stage)
    return sizes


def _with_degrees(sizes: Sizes, stage: int) -> Sizes:
    given = sizes.options.get(RESHARD, "default")
    if stage and given != "default":
        _require_same(RESHARD, given, 2 if given == "never" else 3, stage)
        return sizes
    if stage:
        return _set(sizes, {RESHARD: RESHARD_OF[stage]})
    if sizes.cp > 1:
        raise InputError(
            "torchtitan shards weights over cp={cp} as well, so stage 0 needs cp=1; take stage 2 "
            "or 3",
            cp=sizes.cp,
        )
    if "data_parallel_shard_degree" in sizes.options:
        _require_same(
            "data_parallel_shard_degree", sizes.options["data_parallel_shard_degree"], 3, stage
        )
    copies = sizes.world_size // max(1, sizes.pp * sizes.tp)
    return _set(sizes, {"data_parallel_replicate_degree": str(copies)})


def _with_copies(sizes: Sizes, stage: int) -> Sizes:
    """Returns Accelerate's sizes: what is left of the world are shards, at stage 0 copies."""
    given = sizes.options.get("dp_shard_size", "1")
    if stage == 0 and given != "1":
        _require_same("dp_shard_size", given, 3, stage)
    if {"dp_shard_size", "dp_replicate_size"} & {*sizes.options}:
        return sizes
    left = sizes.dp or max(1, sizes.world_size // (sizes.tp * sizes.cp))
    return _set(sizes, {"dp_shard_size" if stage else "dp_replicate_size": str(left)})


def _require_same(setting: str, value: str, means: int, stage: int) -> None:
    """Raises InputError where a setting says one stage and another is asked for."""
    if means != stage:
        raise InputError(
            "{setting}={value} is ZeRO stage {means}, and stage {stage} is asked for; leave one "
            "of them out",
            setting=setting,
            value=value,
            means=means,
            stage=stage,
        )


def _set(sizes: Sizes, settings: Mapping[str, str]) -> Sizes:
    return replace(sizes, options={**sizes.options, **settings})


def sharding(layout: Layout) -> Sharding:
    """Returns what the ranks of FSDP2 or HSDP share."""
    if named(layout, "sequence"):
        return _by_deepspeed(layout)
    cut = _shards(layout)
    stage = _stage(layout) if cut.ranks > 1 else 0
    data = _data(layout, cut)
    across = named(layout, "dp_replicate") if data.ranks > cut.ranks else ""
    return Sharding(
        stage,
        _cuts(stage, data, cut, across, weights="dense"),
        spelled=_spelled(layout, stage),
        source=SOURCES[layout.framework].format(version=layout.version),
        expert=_expert(layout, stage),
        padding=said("each parameter's first dim is padded to a multiple of the ranks")
        if stage
        else None,
        notes=(said("nothing is shared, for one rank holds each copy; raise dp_shard"),)
        if cut.ranks == 1 and layout.settings.get("zero", "0") != "0"
        else (),
    )


def _cuts(stage: int, data: Cut, cut: Cut, across: str, *, weights: Weights) -> StateCuts:
    """Returns FSDP's cuts: all three states lie as shards, whatever stays gathered in a step."""
    return by_stage(
        3 if stage else 0,
        weights=weights,
        data=data,
        cut=cut,
        across=across,
        is_kept=stage == 2,
    )


def _stage(layout: Layout) -> int:
    """Returns what is done with gathered weights after a forward: 2 keeps them, 3 does not."""
    if layout.framework == "fsdp":
        return STAGE_OF.get(layout.settings.get("sharding_strategy", "FULL_SHARD"), 3)
    if layout.framework == "accelerate":
        return int(layout.settings.get("zero", 3))
    reshard = layout.settings.get(RESHARD, "default")
    keeps = reshard == "never" or (reshard == "default" and layout.sizes["pp"] > 1)
    return 2 if keeps else 3


def _shards(layout: Layout) -> Cut:
    """Returns the cut of FSDP: over dp_shard, with cp folded in where there is cp."""
    merged = named(layout, "fsdp", "dp_shard_cp")
    kinds = (merged,) if merged else (named(layout, "dp_shard"), named(layout, "cp"))
    return over(layout, *filter(None, kinds))


def _data(layout: Layout, cut: Cut) -> Cut:
    whole = named(layout, "loss", "dp_cp", "dp")
    return over(layout, whole) if whole else cut


def _expert(layout: Layout, stage: int) -> StateCuts | None:
    kind = named(layout, "efsdp", "dp_shard_mod_ep")
    if not kind or layout.sizes.get("ep", 1) == 1:
        return None
    cut, copies = over(layout, kind), named(layout, "dp_replicate")
    data = over(layout, kind, copies)
    across = copies if data.ranks > cut.ranks else ""
    return _cuts(stage, data, cut, across, weights="expert")


def _spelled(layout: Layout, stage: int) -> str:
    if layout.framework == "fsdp":
        return str(layout.settings.get("sharding_strategy", "FULL_SHARD"))
    if not stage:
        return "dp_replicate"
    return f"reshard_after_forward={stage == 3}"


def _by_deepspeed(layout: Layout) -> Sharding:
    """Returns what DeepSpeed's ranks share where Accelerate leaves sequences to it (ALST)."""
    stage = int(layout.settings.get("zero", 0))
    data = over(layout, "sequence_data")
    return Sharding(
        stage,
        by_stage(stage, weights="dense", data=data, cut=data),
        spelled=f"zero_optimization.stage: {stage}",
        source=f"accelerate {layout.version} utils/deepspeed.py",
    )
