"""What Megatron-LM's options mean, however a file writes them, and what follows from several.

Names and defaults: Megatron-LM megatron/training/arguments.py.
"""

from __future__ import annotations

from dataclasses import replace

from serried.finding import said
from serried.launch.facts.facts import Facts
from serried.launch.facts.flags import Meaning, sizes

SIZES = sizes(
    tensor_model_parallel_size="tp",
    pipeline_model_parallel_size="pp",
    context_parallel_size="cp",
    expert_model_parallel_size="ep",
    expert_tensor_parallel_size="etp",
    num_layers="layers",
    decoder_first_pipeline_num_layers="layers_first",
    decoder_last_pipeline_num_layers="layers_last",
)

OPTIONS = {
    "pipeline-model-parallel-layout": Meaning("layers_picture", "text"),
    "use-tp-pp-dp-mapping": Meaning("use_tp_pp_dp_mapping", "yes"),
    "num-distributed-optimizer-instances": Meaning("num_distributed_optimizer_instances"),
    "hierarchical-context-parallel-sizes": Meaning("hierarchical_context_parallel_sizes", "list"),
    "hybrid-context-parallel": Meaning("hybrid_context_parallel", "yes"),
    "disable-gloo-process-groups": Meaning("create_gloo_process_groups", "no"),
    "enable-gloo-process-groups": Meaning("create_gloo_process_groups", "yes"),
    "create-all-gather-group": Meaning("create_all_gather_group", "yes"),
    "use-sharp": Meaning("use_sharp", "yes"),
    "sharp-enabled-group": Meaning("sharp_enabled_group", "text"),
    "pipeline-model-parallel-split-rank": Meaning("pipeline_model_parallel_split_rank"),
    "encoder-tensor-model-parallel-size": Meaning("encoder_tensor_model_parallel_size"),
    "encoder-pipeline-model-parallel-size": Meaning("encoder_pipeline_model_parallel_size"),
    "virtual-pipeline-model-parallel-size": Meaning("virtual_pipeline_model_parallel_size"),
}

INDIRECT = {
    "num-layers-per-virtual-pipeline-stage": Meaning("_layers_per_virtual_stage"),
    "num-virtual-stages-per-pipeline-rank": Meaning("_virtual_stages"),
    "tensor-parallel-num-weight-shards": Meaning("_weight_shards"),
    "expert-tensor-parallel-num-weight-shards": Meaning("_expert_weight_shards"),
    "model-parallel-size": Meaning("_model_parallel_size"),
    "use-distributed-optimizer": Meaning("_distributed_optimizer", "yes"),
    "data-parallel-sharding-strategy": Meaning("_sharding_strategy", "text"),
}
"""Options that settle a size only together with another, or no more."""

MEANINGS = {**SIZES, **OPTIONS, **INDIRECT}

MARKS = frozenset(
    name
    for name in (*SIZES, *INDIRECT, "use-tp-pp-dp-mapping", "use-mcore-models")
    if name not in ("num-layers", "use-distributed-optimizer")
)
"""Options that only Megatron-LM and its kin have."""

STAGES = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
"""Megatron-FSDP's sharding strategy -> the ZeRO stage that does the same."""

ZERO_IS_NONE = (
    "encoder_tensor_model_parallel_size",
    "encoder_pipeline_model_parallel_size",
    "pipeline_model_parallel_split_rank",
)


def complete(facts: Facts) -> None:
    """Works out what options say together, and leaves only what a layout needs."""
    for name in ZERO_IS_NONE:
        if facts.number(name) == 0:
            facts.drop(name)
    _virtual_stages(facts)
    _zero(facts)
    _weight_shards(facts, "_weight_shards", "tp", "gtp_remat_size")
    _weight_shards(facts, "_expert_weight_shards", "etp", "expert_gtp_remat_size")
    old = facts.drop("_model_parallel_size")
    if old and not facts.says("tp"):
        facts.lack(
            "tp",
            said(
                "{where} is refused by Megatron-LM since 2020, which takes "
                "--tensor-model-parallel-size",
                where=old.where,
            ),
        )


def _zero(facts: Facts) -> None:
    """Says by its stage what is sharded over data parallel ranks."""
    strategy = facts.drop("_sharding_strategy")
    optimizer = facts.drop("_distributed_optimizer")
    if strategy and str(strategy.value) in STAGES:
        facts.claim("zero", replace(strategy, value=STAGES[str(strategy.value)]))
    elif optimizer and optimizer.value == "true":
        facts.claim("zero", replace(optimizer, value=1))


def _virtual_stages(facts: Facts) -> None:
    """Turns layers per virtual stage, or stages per rank, into model chunks per rank."""
    name = "virtual_pipeline_model_parallel_size"
    stages = facts.drop("_virtual_stages")
    per_stage = facts.drop("_layers_per_virtual_stage")
    if stages:
        facts.claim(name, stages)
    elif per_stage and isinstance(per_stage.value, int):
        layers, pp = facts.number("layers"), facts.number("pp") or 1
        if layers and per_stage.value > 0 and layers % (pp * per_stage.value) == 0:
            facts.claim(name, replace(per_stage, value=layers // pp // per_stage.value))
    chunks = facts.settled().get(name)
    if chunks and chunks.value == 1:
        facts.drop(name)
    elif chunks:
        facts.claim("chunks", chunks)


def _weight_shards(facts: Facts, product: str, size: str, name: str) -> None:
    """Turns tp x gtp, as the option says, into gtp."""
    shards = facts.drop(product)
    of = facts.number(size) or facts.number("tp") or 1
    if shards and isinstance(shards.value, int) and shards.value > of and shards.value % of == 0:
        facts.claim(name, replace(shards, value=shards.value // of))


def version_of(facts: Facts) -> str | None:
    """Returns a version that options demand, where they do."""
    if facts.says("gtp_remat_size") or facts.says("expert_gtp_remat_size"):
        return "0.19.0"
    return None


def ask_for_version(facts: Facts) -> bool:
    """Tells, and says in ``facts``, that options belong to several versions that differ."""
    encoder = facts.settled().get("encoder_tensor_model_parallel_size") or facts.settled().get(
        "encoder_pipeline_model_parallel_size"
    )
    if not encoder:
        return False
    facts.lack(
        "framework",
        said(
            "{where} is an option of Megatron-core 0.9 to 0.13, whose layouts differ",
            where=encoder.where,
        ),
        example="--framework megatron@0.12.0",
    )
    return True
