"""Megatron-LM's options: read however a file writes them, and written as a script.

Names and defaults: Megatron-LM megatron/training/arguments.py.
``--yaml-cfg``: megatron/training/yaml_arguments.py, section ``model_parallel``. Recipes:
tests/functional_tests/test_cases/*/*/model_config.yaml, a mapping of command line options.
Trainer arguments: those of a trainer on Megatron-core, such as LLaMA-Factory's examples/megatron.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from serried.finding import said
from serried.frameworks.megatron.order import TP_PP_DP
from serried.launch.facts.config import Reading
from serried.launch.facts.emit import LaunchJob, array, options
from serried.launch.facts.flags import Flag, Meaning, sizes, take
from serried.launch.facts.found import Facts
from serried.launch.facts.keys import Keys
from serried.launch.facts.keys import take as take_keys
from serried.mesh.sizes import Sizes

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

MEGABLOCKS = {"moe-expert-model-parallelism": Meaning("_experts_over_data", "yes")}
"""The option of MegaBlocks' fork that divides experts over the data ranks."""

MARKS = frozenset(
    name
    for name in (*SIZES, *INDIRECT, "use-tp-pp-dp-mapping", "use-mcore-models")
    if name not in ("num-layers", "use-distributed-optimizer")
)
"""Options that only Megatron-LM and its kin have."""

SHAPE = frozenset(("num-layers", "hidden-size", "num-attention-heads", "micro-batch-size"))
"""Options that together are Megatron-LM's, though each has them elsewhere too."""

PROGRAM = re.compile(
    r"(?:.*[./])?pretrain_(?:gpt|t5|bert|ict|mamba|retro|vlm|mimo|vision_\w+|realm)(?:\.py)?"
)
"""Programs of Megatron-LM."""

PARALLEL = frozenset(SIZES) - {"num-layers"}
TRAINER = frozenset(("use-distributed-optimizer", "finetuning-type"))
"""Keys beside sizes of the same names that PaddleFormers has, and it does not have these."""

STAGES = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
"""Megatron-FSDP's sharding strategy -> the ZeRO stage that does the same."""

ZERO_IS_NONE = (
    "encoder_tensor_model_parallel_size",
    "encoder_pipeline_model_parallel_size",
    "pipeline_model_parallel_split_rank",
)

WRITTEN = {
    name: meaning
    for name, meaning in {**SIZES, **OPTIONS}.items()
    if name not in ("enable-gloo-process-groups", "virtual-pipeline-model-parallel-size")
} | {
    "num-virtual-stages-per-pipeline-rank": Meaning("virtual_pipeline_model_parallel_size"),
}
"""Options that a script is written with."""


# ----------------------------------------------------------------------- reading


def read_flags(flags: Sequence[Flag], file: str) -> Reading:
    """Returns what options on a command line say."""
    facts = Facts(file)
    take(facts, flags, {**MEANINGS, **MEGABLOCKS})
    complete(facts)
    framework = None if ask_for_version(facts) else "megatron"
    over_data = facts.drop("_experts_over_data")
    derive = _experts_over_data if over_data and not facts.says("ep") else None
    return Reading("Megatron script", facts, framework, version_of(facts), derive=derive)


def _experts_over_data(sizes: Sizes) -> Sizes:
    """Returns the sizes with experts divided over the data ranks, as MegaBlocks' fork does.

    Source: stanford-futuredata/Megatron-LM megatron/arguments.py, --moe-expert-model-parallelism.
    """
    return replace(sizes, ep=max(1, sizes.world_size // (sizes.tp * sizes.pp * sizes.cp)))


def is_program(program: str, names: Collection[str]) -> bool:
    """Tells Megatron-LM by its program, or by the options of its models, without any size.

    >>> is_program("pretrain_t5.py", ()), is_program("train.py", {"num-layers"})
    (True, False)
    """
    return bool(PROGRAM.fullmatch(program)) or set(names) >= SHAPE


def is_yaml(keys: Keys) -> bool:
    """Tells whether a YAML file is one of these."""
    if keys.has("MODEL_ARGS") or keys.has("model_parallel", "language_model"):
        return True
    names = {key.replace("_", "-") for key in keys.entries}
    return bool(names & PARALLEL and names & TRAINER)


def read_yaml(keys: Keys) -> Reading:
    """Returns what a YAML file says."""
    facts = Facts(keys.file)
    if keys.has("MODEL_ARGS"):
        take_keys(facts, keys, MEANINGS, section="MODEL_ARGS")
        name = "Megatron functional-test YAML"
    elif not keys.has("model_parallel"):
        take_keys(facts, keys, MEANINGS)
        name = "Megatron trainer YAML"
    else:
        take_keys(facts, keys, MEANINGS, section="model_parallel")
        take_keys(facts, keys, MEANINGS, section="language_model")
        name = "Megatron --yaml-cfg"
    complete(facts)
    framework = None if ask_for_version(facts) else "megatron"
    return Reading(name, facts, framework, version_of(facts))


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
    # A strategy of Megatron-FSDP goes before the switch, which shards the optimizer alone.
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
        # 32 layers on 4 stages of a pipeline, 2 layers to a virtual stage: 4 chunks on each rank.
        layers, pp = facts.number("layers"), facts.number("pp") or 1
        if layers and per_stage.value > 0 and layers % (pp * per_stage.value) == 0:
            facts.claim(name, replace(per_stage, value=layers // pp // per_stage.value))
    chunks = facts.settled().get(name)
    # One chunk is a pipeline without interleaving.
    if chunks and chunks.value == 1:
        facts.drop(name)
    elif chunks:
        facts.claim("chunks", chunks)


def _weight_shards(facts: Facts, product: str, size: str, name: str) -> None:
    """Turns tp x gtp, as the option says, into gtp."""
    shards = facts.drop(product)
    of = facts.number(size) or facts.number("tp") or 1
    # 8 shards with tp 2 are gtp 4: the option counts the parts that tp makes, too.
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


# ----------------------------------------------------------------------- writing


def arguments(job: LaunchJob) -> list[str]:
    """Returns the options that lay the job out."""
    lines = options(job, WRITTEN)
    order = job.sizes.order
    # The order may be asked for as a setting, which is among the lines, or as '--order'.
    if order == TP_PP_DP and "--use-tp-pp-dp-mapping" not in lines:
        lines.append("--use-tp-pp-dp-mapping")
    for name, size in (("gtp_remat_size", "tp"), ("expert_gtp_remat_size", "etp")):
        shards = job.size(name)
        if shards:
            of = job.size(size) or job.sizes.tp
            flag = "tensor-parallel-num-weight-shards"
            prefix = "expert-" if size == "etp" else ""
            lines.append(f"--{prefix}{flag} {shards * of}")
    if job.sizes.zero in (1, 2, 3):
        lines.append("--use-distributed-optimizer")
    return lines


def write(job: LaunchJob) -> str:
    """Returns a script that starts the job on each node."""
    return "\n".join(
        [
            "#!/bin/bash",
            job.mark,
            "# Layout only: add the model, its data and its training options.",
            f"GPUS_PER_NODE={job.ranks_per_node}",
            f"NUM_NODES={job.num_nodes}",
            "MASTER_ADDR=${MASTER_ADDR:-localhost}",
            "MASTER_PORT=${MASTER_PORT:-6000}",
            "NODE_RANK=${NODE_RANK:-0}",
            "",
            *array(
                "DISTRIBUTED_ARGS",
                [
                    "--nproc_per_node $GPUS_PER_NODE",
                    "--nnodes $NUM_NODES",
                    "--node_rank $NODE_RANK",
                    "--master_addr $MASTER_ADDR",
                    "--master_port $MASTER_PORT",
                ],
            ),
            "",
            *array("MODEL_PARALLEL_ARGS", arguments(job)),
            "",
            'torchrun "${DISTRIBUTED_ARGS[@]}" pretrain_gpt.py \\',
            '    "${MODEL_PARALLEL_ARGS[@]}" \\',
            '    "$@"',
            "",
        ]
    )
