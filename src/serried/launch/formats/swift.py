"""Writes commands of ms-swift: ``megatron sft``, and ``swift sft`` under DeepSpeed or FSDP.

What such commands say is read by their options: ``huggingface`` and ``megatron``. ms-swift's own
default of ``expert_tensor_parallel_size`` is 1, so that it is always written.
"""

from __future__ import annotations

from serried.launch.facts.emit import ADD_THE_REST, LaunchJob, options
from serried.launch.formats.huggingface import strategy_of
from serried.launch.formats.megatron import WRITTEN


def write(job: LaunchJob) -> str:
    """Returns a script that starts the job on each node."""
    words = [f"NPROC_PER_NODE={job.ranks_per_node}", f"NNODES={job.num_nodes}", *_command(job)]
    return "\n".join(["#!/bin/bash", job.mark, ADD_THE_REST, " \\\n".join(words), ""])


def _command(job: LaunchJob) -> list[str]:
    if job.framework == "megatron":
        lines = [each for each in options(job, WRITTEN, dashes=False) if ETP not in each]
        etp = f"--{ETP} {job.layout.sizes.get('etp', 1)}"
        zero = ["--use_distributed_optimizer true"] if job.sizes.zero == 1 else []
        return ["megatron sft", *(f"    {each}" for each in (*lines, etp, *zero))]
    chosen = {
        "deepspeed": f"--deepspeed zero{job.sizes.zero or 0}",
        "fsdp": f'--fsdp "{strategy_of(job)}"',
        "devicemesh": f"--sequence_parallel_size {job.width('sequence')}",
    }
    return ["swift sft", *([f"    {chosen[job.framework]}"] if job.framework in chosen else [])]


ETP = "expert_tensor_parallel_size"
