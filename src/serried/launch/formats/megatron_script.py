"""Writes Megatron-LM scripts: torchrun on each node, sizes as options."""

from __future__ import annotations

from serried.frameworks.megatron.order import TP_PP_DP
from serried.launch.facts.emit import LaunchJob, array, options
from serried.launch.facts.flags import Meaning
from serried.launch.formats.megatron_flags import OPTIONS, SIZES

WRITTEN = {
    name: meaning
    for name, meaning in {**SIZES, **OPTIONS}.items()
    if name not in ("enable-gloo-process-groups", "virtual-pipeline-model-parallel-size")
} | {
    "num-virtual-stages-per-pipeline-rank": Meaning("virtual_pipeline_model_parallel_size"),
}


def arguments(job: LaunchJob) -> list[str]:
    """Returns the options that lay the job out."""
    lines = options(job, WRITTEN)
    order = job.sizes.order
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
