"""What each framework does in its groups under the settings at hand, read from its source.

A fact is a variant by name: ``holds: shards`` says that data ranks hold parts of the weights. The
sentences stand in ``practice.en.toml`` and ``practice.zh.toml``, a table for each fact. Where a
setting that decides is not known, the variant says under which setting what holds. ``practice``
adds what follows from these facts for any framework.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from serried.frameworks.framework import at_least
from serried.mesh import Layout
from serried.views.explain.content import pairs

STAGES = {"0": "whole", "1": "state", "2": "gradients", "3": "shards"}
"""What data ranks hold at each ZeRO stage."""

WHOLE = ("whole", "state", "gradients", "owners", "open_state")
"""Variants of ``holds`` in which every data rank has the weights whole."""

SHARDED = ("shards", "hybrid", "kept", "kept_hybrid", "weight")
"""Variants of ``holds`` in which it has a part of them."""


class Practice(NamedTuple):
    """Holds the variant of each fact, and what the kinds that sentences speak of are called."""

    facts: Mapping[str, str]
    names: Mapping[str, str] = MappingProxyType({})


def _named(layout: Layout, *wanted: str) -> str:
    """Returns the first of some kinds that the layout has; "" when it has none."""
    return next((name for name in wanted if name in {kind.name for kind in layout.kinds}), "")


def _stage(layout: Layout, otherwise: str) -> str:
    return STAGES.get(layout.settings.get("zero", ""), otherwise)


def _is_on(layout: Layout, key: str) -> bool:
    return layout.settings.get(key, "").lower() in ("true", "1")


# ----------------------------------------------------------------------- Megatron

MEGATRON_NAMES = "megatron_names"
"""The file that tells the field of every kind that has another name in some version."""


def fields_of(layout: Layout) -> dict[str, str]:
    """Returns Megatron's kinds by the names of their fields, whatever they are called here."""
    fields = pairs(MEGATRON_NAMES)
    return {fields.get(kind.name, kind.name): kind.name for kind in layout.kinds}


def _megatron(layout: Layout) -> Practice:
    """Returns Megatron's facts.

    Read from megatron/training/arguments.py and megatron/core/transformer/moe.
    """
    fields, version, settings = fields_of(layout), layout.version, layout.settings
    grids = at_least(version, "0.10")
    stage = _stage(layout, "open")
    # FSDP of torch shards weights whatever the stage. Several instances of the distributed
    # optimizer imply that its state is sharded, even where no stage was told.
    if _is_on(layout, "use_torch_fsdp2"):
        stage = "shards"
    elif "intra_dp_cp" in fields and int(settings.get(INSTANCES, "1")) > 1 and stage == "open":
        stage = "state"
    sequence = settings.get("sequence_parallel", "").lower()
    facts = {
        "holds": stage,
        "unsaid": "megatron",
        "tensor": {"true": "scatter", "false": "reduce"}.get(sequence, "either"),
        "context": _megatron_context(layout, fields),
        "experts": _dispatcher(settings.get("moe_token_dispatcher_type", ""), version),
        "grid": "apart" if grids else "inside",
        "etp": "megatron" if layout.sizes.get("etp", 1) > 1 else "none",
        "tied": "megatron",
        "precision": "megatron",
    }
    dp_cp = fields.get("dp_cp", "dp_cp")
    names = {field: field for field in pairs(MEGATRON_NAMES).values()} | fields
    names |= {
        "grads": dp_cp,
        "shards": fields.get("intra_dp_cp", dp_cp),
        "tokens": fields.get("tp_ep", "tp_ep"),
        "ep": fields.get("ep", fields.get("tp_ep", "ep")),
        "same_experts": fields.get("expt_dp_cp", fields.get("expt_dp", "expt_dp")),
        "expert_tensor": fields.get("expt_tp", "expt_tp"),
        "embd": fields.get("embd", "embd"),
        "levels": "HIERARCHICAL_CONTEXT_PARALLEL_GROUP",
        "etp_factor": "etp × ",
        "sequence_setting": "--sequence-parallel",
    }
    return Practice(facts, names)


INSTANCES = "num_distributed_optimizer_instances"


def _megatron_context(layout: Layout, fields: Mapping[str, str]) -> str:
    # a2a+p2p runs on two levels of groups. Groups of such levels prove it where the setting is
    # missing; with the setting alone, the text has no such groups to name.
    ways = {"p2p": "ring", "all_gather": "gather", "a2a": "heads", "a2a+p2p": "levels"}
    asked = ways.get(layout.settings.get("cp_comm_type", ""))
    if asked is None and any("HIERARCHICAL_CONTEXT" in name for name in fields):
        return "levels"
    if asked == "levels" and not any("HIERARCHICAL_CONTEXT" in name for name in fields):
        return "two_levels"
    return asked or ("megatron" if at_least(layout.version, "0.10") else "ring")


def _dispatcher(asked: str, version: str) -> str:
    """Returns how tokens travel; 0.4 and 0.5 have no setting and always gather."""
    known = {"allgather": "gather", "alltoall": "alltoall", "flex": "flex"}
    known["alltoall_seq"] = "alltoall"
    return known.get(asked, "megatron" if at_least(version, "0.6") else "gather")


# ----------------------------------------------------------------------- InternLM, InternEvo


def _internlm(layout: Layout) -> Practice:
    """Returns InternLM's and InternEvo's facts.

    Read from internlm/core/parallel and internlm/solver/optimizer/hybrid_zero_optim.py.
    """
    sizes, settings = layout.sizes, layout.settings
    # isp splits weights over the weight group and their optimizer state over weight_data, whatever
    # the data groups are; FSDP overrides what zero1 says of the weights.
    is_alone = sizes.get("zero1", 0) == 1
    mode = settings.get("tensor.mode", "mtp")
    facts = {"holds": "whole" if is_alone else "owners", "tied": "never"}
    names = {"shards": "zero1", "same_experts": "expert_data", "grads": "data"}
    has_modes = layout.framework == "internevo" and at_least(layout.version, "0.3")
    facts["tensor"] = {"mtp": "reduce", "msp": "scatter", "fsp": "scatter", "isp": "isp"}[mode]
    if not has_modes and layout.version != "0.1.0":
        facts["tensor"] = "either"
        names["sequence_setting"] = "parallel.sequence_parallel"
    if has_modes and mode == "isp":
        split = layout.sizes.get("weight", 1) > 1
        names |= {"grads": "weight_data", "weight": "weight", "shards": "zero1"}
        names |= {} if split else {"data": "weight_data"}
        facts |= {"holds": "weight", "splits": "isp"} if split else {"splits": "isp_whole"}
    if _is_on(layout, "zero1.fsdp"):
        copied = sizes["dp"] > sizes.get("zero1", 1)
        facts["holds"] = "whole" if is_alone else "hybrid" if copied else "shards"
        names["copies"] = "zero3_dp"
    if "expert_tensor" in {kind.name for kind in layout.kinds}:
        facts["grid"] = "apart"
    return Practice(facts, names)


# ----------------------------------------------------------------------- DeepSpeed


def _deepspeed(layout: Layout) -> Practice:
    """Returns DeepSpeed's facts.

    Read from deepspeed runtime/zero, runtime/pipe, utils/groups.py, runtime/zero/mics.py.
    """
    # hpZ and qgZ are of ZeRO stage 3, so their groups tell the stage where no setting does.
    needs_three = ("zero_param_intra", "local", "local_0")
    holds = _stage(layout, "shards" if _named(layout, *needs_three) else "open")
    data = _named(layout, "sequence_data", "data_parallel", "dense_dp", "data", "expert_data")
    data = data or layout.dims.get("dp", "data")
    names = {"data": data, "grads": data, "shards": data}
    if _named(layout, "shard"):
        holds = "hybrid" if _named(layout, "replicate") else "shards"
        names |= {"shards": "shard", "copies": "replicate"}
    facts = {
        "holds": holds,
        "again": "near" if _named(layout, "zero_param_intra") else "always",
        "unsaid": "deepspeed",
        "tensor": "reduce" if _named(layout, "tensor_parallel", "dense_dp") else "either",
        "grid": "folded" if _named(layout, "edp") else "inside",
        "tied": "deepspeed",
    }
    names |= {
        "same_experts": _named(layout, "edp", "expert_data"),
        "ep": _named(layout, "ep", "expert"),
        "near": "zero_param_intra",
        "sequence_setting": "Megatron-DeepSpeed --sequence-parallel",
    }
    return Practice(facts, names)


# ----------------------------------------------------------------------- meshes of torch


def _shards(replicate: int, sharded: bool, *, kept: bool = False) -> str:
    if not sharded:
        return "whole"
    return ("kept" if kept else "shards") if replicate == 1 else _hybrid(kept)


def _hybrid(kept: bool) -> str:
    return "kept_hybrid" if kept else "hybrid"


def _torchtitan(layout: Layout) -> Practice:
    """Returns torchtitan's facts.

    Read from torchtitan distributed/parallel_dims.py, models/llama3/parallelize.py, fsdp.py.
    """
    sizes, settings = layout.sizes, layout.settings
    # FSDP shards over dp_shard and cp together, so cp alone shards as well; by default it keeps the
    # gathered weights only where a pipeline would gather them again for every microbatch.
    sharded = sizes["dp_shard"] > 1 or sizes["cp"] > 1
    reshard = settings.get("fsdp_reshard_after_forward", "default")
    keeps = reshard == "never" or (reshard == "default" and sizes["pp"] > 1)
    over = _named(layout, "fsdp", "dp_shard_cp")
    if not over and sizes["cp"] > 1:
        over = "dp_shard × cp" if _named(layout, "dp_shard") else "cp"
    experts = _named(layout, "efsdp", "dp_shard_mod_ep")
    is_sp = settings.get("enable_sequence_parallel", "true").lower() != "false"
    rotate = settings.get("context_parallel_rotate_method", "")
    facts = {
        "holds": _shards(sizes["dp_replicate"], sharded, kept=keeps),
        "tensor": "scatter" if is_sp else "reduce",
        "context": {"allgather": "gather", "alltoall": "rotate"}.get(rotate, "torchtitan"),
        "grid": "sparse" if experts == "efsdp" else "borrowed",
        "expert_gradients": "shards" if experts else "all",
        "tied": "never",
    }
    names = {"shards": over or _named(layout, "dp_shard") or "dp_shard"}
    names |= {"copies": "dp_replicate", "same_experts": experts}
    if not sharded:
        names["grads"] = _named(layout, "dp_replicate") or layout.dims.get("dp", "dp")
    else:
        names["grads"] = names["shards"]
    return Practice(facts, names)


def _accelerate(layout: Layout) -> Practice:
    """Returns Accelerate's facts; its sp runs on DeepSpeed.

    Read from accelerate parallelism_config.py and utils/fsdp_utils.py.
    """
    sizes = layout.sizes
    if _named(layout, "sequence"):
        facts = {"holds": _stage(layout, "open"), "unsaid": "deepspeed", "tensor": "reduce"}
        return Practice(facts)
    sharded = sizes.get("dp_shard", 1) > 1 or sizes.get("cp", 1) > 1
    way = layout.settings.get("cp_comm_strategy", "")
    # As in torchtitan, FSDP shards over dp_shard and cp together wherever cp splits anything.
    over = "dp_shard_cp" if sizes.get("cp", 1) > 1 else _named(layout, "dp_shard")
    facts = {
        "holds": _shards(sizes.get("dp_replicate", 1), sharded),
        "again": "either",
        "tensor": "reduce",
        "context": {"allgather": "gather", "alltoall": "rotate"}.get(way, "accelerate"),
    }
    names = {"shards": over, "copies": "dp_replicate"}
    names["grads"] = over if sharded else _named(layout, "dp_replicate", "dp") or "dp"
    names["data"] = layout.dims.get("dp") or names["grads"]
    return Practice(facts, names)


def _fsdp(layout: Layout) -> Practice:
    """Returns FSDP's facts.

    Read from torch/distributed/fsdp: ShardingStrategy, and fully_shard's mesh.
    """
    strategy = layout.settings.get("sharding_strategy", "")
    # These two strategies keep gathered weights from forward to backward, as ZeRO stage 2 does.
    kept = strategy in ("SHARD_GRAD_OP", "HYBRID_SHARD_ZERO2")
    sizes = layout.sizes
    holds = _shards(sizes["dp_replicate"], sizes["dp_shard"] > 1, kept=kept)
    facts = {"holds": holds, "tensor": "either", "again": "always" if strategy else "either"}
    names = {"shards": "dp_shard", "copies": "dp_replicate", "grads": "dp"}
    return Practice(facts, names | {"sequence_setting": "SequenceParallel"})


# ----------------------------------------------------------------------- others


def _colossalai(layout: Layout) -> Practice:
    """Returns ColossalAI's facts: its hybrid plugins have no ZeRO stage 3, Gemini is one.

    Read from colossalai booster/plugin.
    """
    settings = layout.settings
    mixed = next((k.name for k in layout.kinds if k.name.startswith("mixed_dp")), "")
    names = {"grads": mixed or layout.dims["dp"], "shards": mixed or layout.dims["dp"]}
    names |= {"same_experts": "moe_dp", "copies": "extra_dp"}
    holds = _stage(layout, "open_state")
    copies = layout.sizes.get("extra_dp", 1) > 1
    unsaid = "colossalai"
    # The data dimension names the plugin: zero is Gemini's, inner_dp is LowLevelZero's.
    if layout.dims["dp"] == "zero":
        holds = "hybrid" if copies else "shards"
    elif layout.dims["dp"] == "inner_dp":
        unsaid = "low_level_zero"
    mode = settings.get("sequence_parallelism_mode", "alone")
    tensor = "scatter" if mode in ("split_gather", "ring") else "reduce"
    facts = {"holds": holds, "unsaid": unsaid, "tensor": tensor, "sp_note": mode}
    return Practice(facts, names)


def _nanotron(layout: Layout) -> Practice:
    """Returns Nanotron's facts.

    Read from nanotron parallel/context.py, trainer.py, optim/zero.py.
    """
    mode = layout.settings.get("tp_mode", "").upper()
    facts = {
        "holds": _stage(layout, "open_state"),
        "unsaid": "nanotron",
        "tensor": {"REDUCE_SCATTER": "scatter", "ALL_REDUCE": "reduce"}.get(mode, "either"),
        "context": "ring",
        "grid": "factor",
        "expert_gradients": "all",
    }
    grads = _named(layout, "dp_cp_pg", "dp_pg")
    names = {"grads": grads, "shards": "dp_pg", "sequence_setting": "tp_mode REDUCE_SCATTER"}
    return Practice(facts, names)


def _paddle(layout: Layout) -> Practice:
    """Returns Paddle's facts.

    Read from paddle distributed/fleet/meta_parallel/sharding and fleet/base/topology.py.
    """
    sizes = layout.sizes
    sharded, copied = sizes.get("sharding", 1) > 1, sizes.get("dp", 1) > 1
    holds = _stage(layout, "sharing") if sharded else "whole"
    if holds == "shards" and copied:
        holds = "hybrid"
    grads = _named(layout, "dp_sep", "data")
    # Batches differ over dp and over sharding; beside shards, ranks of dp are their copies.
    both = "data × sharding" if copied else "sharding"
    names = {"shards": "sharding", "copies": grads, "same_experts": "moe_sharding"}
    names |= {"data": both if sharded else "data", "grads": "sharding" if sharded else grads}
    names["grads_with_sep"] = _named(layout, "dp_sep") or "dp_sep"
    sequence = layout.settings.get("sequence_parallel", "").lower()
    facts = {
        "holds": holds,
        "unsaid": "paddle",
        "tensor": {"true": "scatter", "false": "reduce"}.get(sequence, "either"),
        "repeats": "open",
    }
    return Practice(facts, names | {"sequence_setting": "sequence_parallel"})


def of_program(layout: Layout) -> Practice:
    """Returns what holds of axes that the user names: a name suggests, a program decides."""
    told = ("holds", "splits", "tensor", "context", "experts", "expert_gradients", "repeats")
    facts = dict.fromkeys((*told, "combines"), "program") | {"grid": "factor"}
    return Practice(facts)


PRACTICES: Mapping[str, Callable[[Layout], Practice]] = {
    "megatron": _megatron,
    "internlm": _internlm,
    "internevo": _internlm,
    "deepspeed": _deepspeed,
    "torchtitan": _torchtitan,
    "accelerate": _accelerate,
    "fsdp": _fsdp,
    "colossalai": _colossalai,
    "nanotron": _nanotron,
    "paddle": _paddle,
}
"""What each framework does; devicemesh and custom leave it to the user's program."""
