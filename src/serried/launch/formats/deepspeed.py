"""DeepSpeed's JSON, options of Megatron-DeepSpeed, and GPT-NeoX's YAML: read, and a script written.

Keys: DeepSpeed 0.19.8 deepspeed/runtime/config.py. Sizes of pipelines and tensors are not in
the JSON: they are arguments of the program (Megatron-DeepSpeed megatron/arguments.py), or
keys of GPT-NeoX's YAML (megatron/neox_arguments).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from serried.finding import said
from serried.launch.facts.config import Reading
from serried.launch.facts.emit import LaunchJob, options
from serried.launch.facts.flags import Flag, Meaning, sizes
from serried.launch.facts.flags import take as take_flags
from serried.launch.facts.found import Facts
from serried.launch.facts.keys import Keys, take
from serried.launch.formats import hostfile

JSON = {
    "zero-optimization.stage": Meaning("zero"),
    "zero-optimization.zero-hpz-partition-size": Meaning("zero_hpz_partition_size"),
    "zero-optimization.zero-quantized-gradients": Meaning("zero_quantized_gradients", "yes"),
    "zero-optimization.mics-shard-size": Meaning("mics_shard_size"),
    "zero-optimization.mics-hierarchical-params-gather": Meaning(
        "mics_hierarchical_params_gather", "yes"
    ),
    "sequence-parallel-size": Meaning("sequence_parallel_size"),
    "data-parallel-size": Meaning("data_parallel_size"),
    "tensor-parallel.autotp-size": Meaning("autotp_size"),
    "tensor-parallel.tp.tp-size": Meaning("autotp_size"),
    "expert-parallel.autoep-size": Meaning("autoep_size"),
    "expert-parallel.expert-tensor-parallel-size": Meaning("expert_tensor_parallel_size"),
    "use-data-before-expert-parallelism": Meaning("use_data_before_expert_parallel", "yes"),
}
ONE_IS_NONE = (
    *("zero_hpz_partition_size", "mics_shard_size", "sequence_parallel_size", "autotp_size"),
    *("autoep_size", "expert_tensor_parallel_size"),
)
"""Features that a size of one, or less, leaves out."""

EXPERTS_IN_PARTS = Meaning("enable_expert_tensor_parallelism", "yes")

FLAGS = sizes(
    tensor_model_parallel_size="tp",
    pipeline_model_parallel_size="pp",
    model_parallel_size="tp",
    pipe_parallel_size="pp",
    moe_expert_parallel_size="ep",
    ds_sequence_parallel_size="sequence_parallel_size",
    zero_stage="zero",
    num_layers="layers",
) | {"enable-expert-tensor-parallelism": EXPERTS_IN_PARTS}
"""Options of Megatron-DeepSpeed."""

NEOX = {
    **sizes(pipe_parallel_size="pp", model_parallel_size="tp", num_layers="layers"),
    **sizes(moe_expert_parallel_size="ep", moe_deepspeed_expert_parallel_size="ep"),
    "zero-optimization.stage": Meaning("zero"),
    "enable-expert-tensor-parallelism": EXPERTS_IN_PARTS,
}
MARKS = frozenset(
    (
        *("deepspeed", "deepspeed-config", "ds-sequence-parallel-size"),
        *("moe-expert-parallel-size", "zero-stage"),
    )
)
"""Options that tell Megatron-DeepSpeed from Megatron-LM."""


WRITTEN = {
    name: meaning
    for name, meaning in FLAGS.items()
    if name not in ("model-parallel-size", "pipe-parallel-size", "num-layers")
}
"""Options that a script is written with; the JSON beside it holds the rest."""


def is_json(keys: Keys) -> bool:
    """Tells whether a JSON file is a DeepSpeed config."""
    known = ("zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu")
    return any(keys.has(each) for each in known)


def is_neox(keys: Keys) -> bool:
    """Tells whether a YAML file is GPT-NeoX's, with dashes or underscores."""
    names = {key.replace("_", "-") for key in keys.entries}
    return {"pipe-parallel-size", "model-parallel-size"} <= names


def read(keys: Keys, beside: Mapping[str, str]) -> Reading:
    """Returns what the JSON says, and the ranks of the hostfile given beside it, if any."""
    facts = Facts(keys.file)
    take(facts, keys, JSON)
    if keys.value("expert_parallel.enabled") is not True:
        # AutoEPConfig.enabled is false where nothing is said.
        facts.drop("autoep_size")
    _tidy(facts)
    for name, text in beside.items():
        if hostfile.is_one(text):
            hosts = Facts(PurePosixPath(name).name)
            hostfile.count(hosts, hostfile.read(text, hosts.file))
            facts.join(hosts)
    version = None
    if facts.says("mics_shard_size"):
        version = "0.18.9"
        facts.note(
            said(
                "{file} sets mics_shard_size, which DeepSpeed 0.19.7 dropped; read for 0.18.9",
                file=facts.file,
            )
        )
    return Reading("DeepSpeed JSON", facts, "deepspeed", version)


def read_neox(keys: Keys) -> Reading:
    """Returns what GPT-NeoX's YAML says; a size of zero there is one."""
    facts = Facts(keys.file)
    take(facts, keys, NEOX)
    for name in ("pp", "tp"):
        if facts.number(name) == 0:
            facts.drop(name)
    return Reading("GPT-NeoX YAML", facts, "deepspeed")


def read_flags(flags: Sequence[Flag], file: str) -> Reading:
    """Returns what options of Megatron-DeepSpeed say."""
    facts = Facts(file)
    take_flags(facts, flags, FLAGS)
    _tidy(facts)
    return Reading("Megatron-DeepSpeed script", facts, "deepspeed")


def _tidy(facts: Facts) -> None:
    """Leaves out features that are off, and says sizes by their neutral names too."""
    for name in ONE_IS_NONE:
        number = facts.number(name)
        if number is not None and number <= 1:
            facts.drop(name)
    if facts.text("zero_quantized_gradients") == "false":
        facts.drop("zero_quantized_gradients")
    # A hierarchical gather without shards of MiCS means nothing.
    if not facts.says("mics_shard_size"):
        facts.drop("mics_hierarchical_params_gather")
    for option, name in (("autotp_size", "tp"), ("autoep_size", "ep")):
        found = facts.settled().get(option)
        if found and not facts.says(name):
            facts.claim(name, found)


# ----------------------------------------------------------------------- writing


def arguments(job: LaunchJob) -> list[str]:
    """Returns the options that lay the job out."""
    return options(job, WRITTEN)


def arguments_of_torchrun(job: LaunchJob) -> list[str]:
    """Returns the same for a launcher that is not DeepSpeed's own."""
    return [*arguments(job), "--deepspeed"]


def _json(job: LaunchJob) -> str:
    """Returns the JSON with what has its place there."""
    tree: dict[str, object] = {"train_micro_batch_size_per_gpu": 1}
    on_the_command_line = {meaning.name for meaning in WRITTEN.values()} - {"zero"}
    for key, meaning in JSON.items():
        name = meaning.name
        value: object = job.size(name) if meaning.kind == "size" else job.is_on(name)
        # Each size is written once: options of the script hold some already, and autotp_size has
        # two places in the JSON.
        if value is None or name in on_the_command_line or key == "tensor-parallel.tp.tp-size":
            continue
        *sections, last = key.replace("-", "_").split(".")
        place = tree
        for section in sections:
            inner = place.setdefault(section, {})
            place = inner if isinstance(inner, dict) else place
        place[last] = value
        # AutoEP is off unless the JSON says so ('read').
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
            _json(job),
            "EOT",
            "",
            f"deepspeed {hosts} pretrain_gpt.py \\",
            *(f"    {line} \\" for line in arguments(job)),
            "    --deepspeed --deepspeed_config ds_config.json \\",
            '    "$@"',
            "",
        ]
    )
