"""Files that stand near a launch config and are none: which file to give instead."""

from __future__ import annotations

import re
from collections.abc import Sequence

from serried.errors import InputError
from serried.launch.facts.keys import Keys
from serried.launch.formats import skypilot

ANSWERS = re.compile(
    r"(?m)^[ \t]*(?:-[ \t]+)?(?:serve_id|engine_args|gpu_memory_utilization|served_model_name|"
    r"max_num_seqs|mem_fraction_static|enable_chunked_prefill)[ \t]*:"
)
"""Keys of engines that answer requests: vLLM's and SGLang's."""

NO_TRAINING = ("serve", "inference", "compress", "data", "rl_serve")
"""Tasks of FlagScale that train nothing."""

COMMANDS = {
    "vllm": ("serve", "bench", "chat", "complete"),
    "lmdeploy": ("serve", "chat", "lite"),
    "swift": ("infer", "deploy", "rollout", "eval", "export", "sample", "app", "web-ui"),
    "llamafactory-cli": ("chat", "webchat", "api", "export", "eval"),
    "trtllm-serve": (),
    "text-generation-launcher": (),
    "lm_eval": (),
    "lighteval": (),
    "opencompass": (),
}
"""Commands that train nothing, those with verbs only under one of them."""

MODULES = re.compile(r"(?:vllm|sglang|lmdeploy|lm_eval|lighteval|opencompass|tensorrt_llm)\b.*")
PROGRAMS = re.compile(
    r"(?:.*[./])?(?:\w*[_-])?(?:infer|inference|generat(?:e|ion)|eval|evaluat(?:e|ion)|serve|server|"
    r"convert|converter|preprocess|merge|export|download|hf2megatron|mcore2hf|hf2mcore)"
    r"(?:[_-]\w*)?(?:\.py)?"
)
"""Programs that by their names answer, evaluate, convert or prepare."""

CONVERTS = re.compile(
    r"(?:.*[./])?(?:\w*_)?(?:convert|merge|preprocess|hf2megatron|mcore2hf|hf2mcore)"
    r"(?:_\w*)?(?:\.py)?"
)
"""Those among them that take a trainer's options for the files that they read and write."""

KIND = re.compile(r"(?m)^kind:[ \t]*[\"']?(\w{1,60})")


def refuse_answering(text: str, file: str) -> None:
    """Raises InputError for settings of an engine that answers requests, as YAML or in a list."""
    if ANSWERS.search(text):
        raise InputError(
            "{file} sets up an engine that answers requests, and trains nothing; give the file "
            "of a training",
            file=file,
        )


def trains_nothing(words: Sequence[str], program: str) -> str:
    """Returns what of a command, or which program that it starts, trains nothing by its name.

    "" where none does so.

    >>> trains_nothing(["nice", "vllm", "serve"], ""), trains_nothing(["python"], "eval.py")
    ('vllm serve', 'eval.py')
    >>> trains_nothing(["python"], "train.py"), trains_nothing(["swift", "sft"], "")
    ('', '')
    """
    for i, word in enumerate(words):
        name, verb = word.rpartition("/")[2], (words[i + 1 : i + 2] or [""])[0]
        verbs = COMMANDS.get(name)
        if verbs is not None and (not verbs or verb in verbs):
            return f"{name} {verb}" if verbs else name
    return program if MODULES.fullmatch(program) or PROGRAMS.fullmatch(program) else ""


def refuse_manifest(text: str, file: str) -> None:
    """Raises InputError for a script that hands a manifest to Kubernetes."""
    found = KIND.search(text) if "kubectl" in text and "\napiVersion:" in text else None
    if found:
        raise InputError(
            "{file} hands a {kind} to Kubernetes; give the command or script that its "
            "containers run",
            file=file,
            kind=found[1],
        )


def refuse_template(text: str, file: str) -> None:
    """Raises InputError for a manifest that is a template, which is no YAML before it is filled."""
    found = KIND.search(text)
    if found and "{{" in text and re.search(r"(?m)^apiVersion:", text):
        raise InputError(
            "{file} is a template of a Kubernetes {kind}; give the command or script that its "
            "containers run",
            file=file,
            kind=found[1],
        )


def refuse_python(file: str) -> None:
    """Raises InputError for a Python program, which the command that starts it goes with."""
    raise InputError(
        "{file} is a Python program, which serried does not run; give the command or script "
        "that starts it",
        file=file,
    )


def refuse_yaml(keys: Keys, file: str) -> None:
    """Raises InputError for YAML that wraps a command, or only names another config."""
    if keys.has("distributed_strategy", "model_source"):
        raise InputError(
            "{file} is for AWS Neuron's neuronx-distributed-training, whose groups serried does "
            "not lay out",
            file=file,
        )
    task = keys.value("experiment.task.type")
    if task in NO_TRAINING:
        raise InputError(
            "{file} is a task of FlagScale of the type '{type}', which trains nothing; give one "
            "of the type 'train'",
            file=file,
            type=str(task),
        )
    is_placed = keys.has("compute") or "gpu_num" in keys
    if isinstance(keys.value("command"), str) and keys.has("image") and is_placed:
        raise InputError(
            "{file} is a run of MosaicML's platform; give the command that it holds, or the YAML "
            "that this names",
            file=file,
        )
    if skypilot.is_one(keys):
        raise InputError(
            "{file} is a task of SkyPilot, and none of its commands starts ranks that serried "
            "knows; give the script that they run",
            file=file,
        )
    kind = keys.value("kind")
    if "apiVersion" in keys and isinstance(kind, str):
        raise InputError(
            "{file} is a Kubernetes {kind}; give the command or script that its containers run",
            file=file,
            kind=kind,
        )
    named = keys.value("deepspeed")
    if isinstance(named, str) and named.endswith(".json"):
        raise InputError(
            "{file} holds arguments of a trainer, and names {config} for DeepSpeed; give that "
            "file, with the ranks as an option: --world-size 8",
            file=file,
            config=named,
        )
