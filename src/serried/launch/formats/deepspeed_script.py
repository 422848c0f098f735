"""Writes Megatron-DeepSpeed scripts: sizes as options, sharding in the JSON beside them."""

from __future__ import annotations

import json

from serried.launch.facts.emit import LaunchJob, options
from serried.launch.formats.deepspeed_config import FLAGS, JSON

WRITTEN = {
    name: meaning
    for name, meaning in FLAGS.items()
    if name not in ("model-parallel-size", "pipe-parallel-size", "num-layers")
}


def arguments(job: LaunchJob) -> list[str]:
    """Returns the options that lay the job out."""
    return options(job, WRITTEN)


def arguments_of_torchrun(job: LaunchJob) -> list[str]:
    """Returns the same for a launcher that is not DeepSpeed's own."""
    return [*arguments(job), "--deepspeed"]


def config(job: LaunchJob) -> str:
    """Returns the JSON with what has its place there."""
    tree: dict[str, object] = {"train_micro_batch_size_per_gpu": 1}
    on_the_command_line = {meaning.name for meaning in WRITTEN.values()} - {"zero"}
    for key, meaning in JSON.items():
        name = meaning.name
        value: object = job.size(name) if meaning.kind == "size" else job.is_on(name)
        if value is None or name in on_the_command_line or key == "tensor-parallel.tp.tp-size":
            continue
        *sections, last = key.replace("-", "_").split(".")
        place = tree
        for section in sections:
            inner = place.setdefault(section, {})
            place = inner if isinstance(inner, dict) else place
        place[last] = value
        if name == "autoep_size":
            place["enabled"] = True
    return json.dumps(tree, indent=2)


def write(job: LaunchJob) -> str:
    """Returns a script that writes the JSON and starts the job."""
    hosts = f"--num_nodes {job.num_nodes} --num_gpus {job.ranks_per_node}"
    return "\n".join(
        [
            "#!/bin/bash",
            job.mark,
            "# Layout only: add the model, its data and its training options.",
            "cat <<EOT > ds_config.json",
            config(job),
            "EOT",
            "",
            f"deepspeed {hosts} pretrain_gpt.py \\",
            *(f"    {line} \\" for line in arguments(job)),
            "    --deepspeed --deepspeed_config ds_config.json \\",
            '    "$@"',
            "",
        ]
    )
