"""Reads options and YAML of Hugging Face's Trainer and of programs that are built upon it.

Names: transformers 5.0 src/transformers/training_args.py (TrainingArguments); LLaMA-Factory
examples/train_*; ms-swift swift/arguments/sft_args.py, whose ``--deepspeed zero2`` names a config
of its own.

    --deepspeed F           DeepSpeed, whose JSON has the stage
    --fsdp "full_shard …"   FSDP; hybrid_shard shards inside a node
    neither                 whole weights on each rank (DDP)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from serried.finding import said
from serried.launch.facts.config import Reading
from serried.launch.facts.device_mesh import laid_over
from serried.launch.facts.emit import LaunchJob, torchrun
from serried.launch.facts.flags import Flag, Meaning
from serried.launch.facts.flags import take as take_flags
from serried.launch.facts.found import Facts, Found
from serried.launch.facts.keys import Keys, take
from serried.launch.formats import accelerate, deepspeed
from serried.mesh.sizes import Sizes

MEANINGS = {
    "deepspeed": Meaning("_deepspeed", "text"),
    "deepspeed-config": Meaning("_deepspeed", "text"),
    "fsdp": Meaning("_fsdp", "list"),
    "sequence-parallel-size": Meaning("sequence_parallel_size"),
    "zero-stage": Meaning("zero"),
}
ENVIRONMENT = {"NPROC_PER_NODE": Meaning("gpus_per_node"), "NNODES": Meaning("nodes")}
"""What ms-swift's YAML sets for torchrun."""

MARKS = frozenset(("per-device-train-batch-size", "per-gpu-train-batch-size", "finetuning-type"))
"""Arguments that a trainer of this family has, and no other."""

# 'zero2' and 'zero3_offload', which ms-swift has configs for.
BUILT_IN = re.compile(r"zero([0-3])(?:_offload)?")
STRATEGIES = {
    "full_shard": "FULL_SHARD",
    "shard_grad_op": "SHARD_GRAD_OP",
    "hybrid_shard": "HYBRID_SHARD",
    "hybrid_shard_zero2": "HYBRID_SHARD_ZERO2",
    "no_shard": "NO_SHARD",
    "fsdp2": "FULL_SHARD",
    "true": "FULL_SHARD",
}
"""Words of ``--fsdp``, ms-swift's own config among them -> the strategy they ask for."""


def has_marks(flags: Sequence[Flag]) -> bool:
    """Tells whether options are of a trainer of this family."""
    if any(flag.name in MARKS for flag in flags):
        return True
    words = {flag.name: flag.values[0].start for flag in flags if flag.values}
    told = words.get("fsdp", "").replace(",", " ").split()
    return bool(BUILT_IN.fullmatch(words.get("deepspeed", ""))) or bool({*told} & {*STRATEGIES})


def read_flags(
    flags: Sequence[Flag],
    file: str,
    name: str,
    *,
    has_deepspeed: bool = False,
    is_swift: bool = False,
) -> Reading:
    """Returns what options on a command line say; ``name`` is how such a command is called.

    ``has_deepspeed`` tells that DeepSpeed's own launcher starts it, ``is_swift`` that ms-swift
    does, which has parts of sequences besides.
    """
    facts = Facts(file)
    take_flags(facts, flags, MEANINGS)
    if not is_swift:
        facts.drop("sequence_parallel_size")
    # '--deepspeed' alone is a switch of programs that make their config themselves.
    has_deepspeed = has_deepspeed or any(flag.name == "deepspeed" for flag in flags)
    return settle(facts, name, has_deepspeed=has_deepspeed)


def is_yaml(keys: Keys) -> bool:
    """Tells whether a YAML file holds arguments of such a trainer."""
    return bool(MARKS & {key.replace("_", "-") for key in keys.entries})


def read_yaml(keys: Keys) -> Reading:
    """Returns what the file says; a DeepSpeed config may stand in it, or be named."""
    facts = Facts(keys.file)
    take(facts, keys, MEANINGS)
    take(facts, keys, ENVIRONMENT, section="ENV", name_of=str)
    inline = keys.below("deepspeed")
    if inline.entries:
        take(facts, keys, deepspeed.JSON, section="deepspeed")
        facts.claim("_deepspeed", Found("", keys.file, key="deepspeed"))
    return settle(facts, "Hugging Face trainer YAML")


def settle(facts: Facts, name: str, *, has_deepspeed: bool = False) -> Reading:
    """Decides the framework, and leaves only what its layout needs."""
    has_deepspeed = has_deepspeed or facts.says("_deepspeed")
    for each in facts.claims.get("_deepspeed", []):
        if stage := BUILT_IN.fullmatch(str(each.value)):
            facts.claim("zero", replace(each, value=int(stage[1])))
    json, sequence = facts.drop("_deepspeed"), facts.settled().get("sequence_parallel_size")
    if sequence and sequence.value != 1:
        return _in_parts(facts, name, sequence)
    if sequence:
        facts.drop("sequence_parallel_size")
    if has_deepspeed:
        facts.drop("_fsdp")
        text = str(json.value) if json else ""
        return Reading(name, facts, "deepspeed", names=text if text.endswith(".json") else "")
    facts.drop("zero")
    return _fsdp(facts, name)


def _fsdp(facts: Facts, name: str) -> Reading:
    """Returns FSDP where words ask for it, else whole weights on each rank."""
    unclear = [each.because for each in facts.unsettled() if each.name == "_fsdp"]
    told = facts.drop("_fsdp")
    if unclear:
        facts.lack("framework", unclear[0])
        return Reading(name, facts)
    words = str(told.value).replace(",", " ").lower().split() if told else []
    if told and words and words != ["false"]:
        strategy = next((STRATEGIES[word] for word in words if word in STRATEGIES), "FULL_SHARD")
        facts.claim("_type", replace(told, value="FSDP"))
        facts.claim("_strategy", replace(told, value=strategy))
        return accelerate.settle(facts, name)
    facts.note(
        said(
            "{file} names neither deepspeed nor fsdp, so each rank holds whole weights, unless "
            "the config of 'accelerate launch' says otherwise",
            file=facts.file,
        )
    )
    return Reading(name, facts, "accelerate")


def _in_parts(facts: Facts, name: str, sequence: Found) -> Reading:
    """Returns ms-swift's parts of sequences, which lie in a mesh of its own."""
    facts.drop("_fsdp")
    facts.note(
        said(
            "{where}: ms-swift cuts it into ring x sequence where it does not divide the "
            "attention heads; here they are one axis",
            where=sequence.where,
        )
    )
    return Reading(name, facts, "devicemesh", derive=_sequences)


def _sequences(sizes: Sizes) -> Sizes:
    """Returns the sizes with the mesh that ms-swift makes for parts of sequences.

    Source: ms-swift swift/sequence_parallel/sequence_parallel.py, _init_device_mesh.
    """
    options = dict(sizes.options)
    size = int(options.pop("sequence_parallel_size", 1))
    return laid_over(
        replace(sizes, options=options), [{"data": sizes.world_size // size, "sequence": size}]
    )


# ----------------------------------------------------------------------- writing


def write(job: LaunchJob) -> str:
    """Returns a script that trains with Hugging Face's Trainer, under DeepSpeed or FSDP."""
    arguments = ["--per_device_train_batch_size 1"]
    if job.framework == "fsdp":
        arguments.append(f'--fsdp "{strategy_of(job)}"')
    if job.framework != "deepspeed":
        return torchrun(job, "train.py", arguments)
    script = torchrun(job, "train.py", [*arguments, "--deepspeed ds_config.json"])
    config = f'{{"zero_optimization": {{"stage": {job.sizes.zero or 0}}}}}'
    shebang, _, rest = script.partition("\n")
    return f"{shebang}\ncat > ds_config.json <<'EOF'\n{config}\nEOF\n{rest}"


def strategy_of(job: LaunchJob) -> str:
    """Returns the word of ``--fsdp`` for the shards and copies of a job under FSDP."""
    if job.layout.sizes.get("dp_shard", 1) == 1:
        return "no_shard"
    if job.layout.sizes.get("dp_replicate", 1) > 1:
        return "hybrid_shard_zero2" if job.sizes.zero == 2 else "hybrid_shard"
    return "shard_grad_op" if job.sizes.zero == 2 else "full_shard"
