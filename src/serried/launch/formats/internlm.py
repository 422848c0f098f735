"""Reads and writes configs of InternLM and InternEvo: Python files with a ``parallel`` mapping.

Entries and defaults: InternLM internlm/initialize/launch.py; InternEvo the same file and
internlm/core/parallel. Every entry may be a bare number or a mapping with ``size``.
"""

from __future__ import annotations

from collections.abc import Mapping

from serried.finding import said
from serried.frameworks.framework import at_least
from serried.launch.facts.config import Reading
from serried.launch.facts.emit import LaunchJob
from serried.launch.facts.flags import Meaning
from serried.launch.facts.found import Facts
from serried.launch.facts.keys import Keys, take
from serried.launch.facts.remarks import Remarks

PARALLEL = {
    "tensor": Meaning("tp"),
    "tensor.size": Meaning("tp"),
    "pipeline": Meaning("pp"),
    "pipeline.size": Meaning("pp"),
    "zero1": Meaning("zero1"),
    "zero1.size": Meaning("zero1"),
    "zero1.fsdp": Meaning("zero1.fsdp", "yes"),
}
MODEL = {
    "num_experts": Meaning("num_experts"),
    "num_layers": Meaning("layers"),
    "num_chunks": Meaning("chunks"),
}
INTERNEVO = {
    "tensor.mode": Meaning("tensor.mode", "text"),
    "weight": Meaning("weight.size"),
    "weight.size": Meaning("weight.size"),
    "expert": Meaning("expert.size"),
    "expert.size": Meaning("expert.size"),
    "expert.no_tp": Meaning("expert.no_tp", "yes"),
    "expert_weight": Meaning("expert_weight.size"),
    "expert_weight.size": Meaning("expert_weight.size"),
    "expert_zero1": Meaning("expert_zero1.size"),
    "expert_zero1.size": Meaning("expert_zero1.size"),
    "gqa": Meaning("gqa", "yes"),
    "pipeline.interleaved_overlap": Meaning("pipeline.interleaved_overlap", "yes"),
    "sequence_2D.enable": Meaning("sequence_2D.enable", "yes"),
    "sequence_2D.head_size": Meaning("sequence_2D.head_size"),
    "sequence_2D.context_size": Meaning("sequence_2D.context_size"),
    "sequence_2D.window_size": Meaning("sequence_2D.window_size"),
    "sequence_2D.device_placement_strategy.head_first": Meaning("sequence_2D.head_first", "yes"),
    "sequence_2D.device_placement_strategy.interleaved": Meaning("sequence_2D.interleaved", "yes"),
}
MODES = ("mtp", "msp", "fsp", "isp")
DEVELOP = ("expert", "expert_weight", "expert_zero1", "sequence_2D")
"""Entries that only the develop branch of InternEvo reads."""

CLASSIC = (
    "parallel.zero1",
    "parallel.tensor",
    "parallel.sequence_parallel",
    "model.sequence_parallel",
    "parallel.tensor.sp",
    "parallel.tensor.intern_overlap",
)
"""Entries, the first two as bare numbers, that only classic InternLM reads."""

CKPT_TYPE = "ckpt.load_ckpt_info.ckpt_type"
"""``internlm`` in classic configs; renamed ``internevo`` with the framework."""


def is_one(keys: Keys) -> bool:
    """Tells whether a Python config is one of these."""
    return keys.has("parallel") or keys.has("data", "lr_scheduler")


def read(keys: Keys, notes: Remarks) -> Reading:
    """Returns what the config says, and which of the two frameworks it is written for."""
    facts = Facts(keys.file)
    facts.notes.add(*notes)
    take(facts, keys, PARALLEL, section="parallel", name_of=str)
    take(facts, keys, MODEL, section="model", name_of=str)
    if not keys.has("parallel"):
        _lack_parallel(facts, notes)
    elif "parallel" in keys and (why := keys.entries["parallel"][0].why) is not None:
        for name in ("tp", "pp", "zero1"):
            facts.lack(name, said("{key}: {why}", key="parallel", why=why))
    framework = _framework(facts, keys)
    version = None
    if framework == "internevo":
        take(facts, keys, INTERNEVO, section="parallel", name_of=str)
        # Only then do groups hang on the number of key-value heads.
        if facts.text("gqa") == "true":
            heads = {"num_kv_attention_heads": Meaning("num_kv_attention_heads")}
            take(facts, keys, heads, section="model", name_of=str)
        chunks = facts.settled().get("chunks")
        if chunks and chunks.value != 1:
            facts.claim("num_chunks", chunks)
        version = _version(keys)
    return Reading("InternLM or InternEvo config", facts, framework, version)


def _lack_parallel(facts: Facts, notes: Remarks) -> None:
    reason = next(iter(notes), said("the config sets no parallel mapping"))
    for name in ("tp", "pp", "zero1"):
        facts.lack(name, said("parallel is not set in {file}: {why}", file=facts.file, why=reason))


def _framework(facts: Facts, keys: Keys) -> str | None:
    """Tells InternEvo from classic InternLM by the entries only one of them has."""
    mode = keys.value("parallel.tensor.mode")
    evo = [name for name in ("weight", "gqa", *DEVELOP) if keys.has(f"parallel.{name}")]
    if mode in MODES:
        evo.append("tensor.mode")
    if keys.value(CKPT_TYPE) == "internevo":
        evo.append("ckpt_type")
    # A config moved from classic InternLM may keep old entries, so marks of InternEvo go first.
    if evo:
        return "internevo"
    classic = [_written(key, keys) for key in CLASSIC if key in keys]
    if mode in ("origin_tp", "fstp"):
        classic.append(f"parallel.tensor.mode = {mode}")
    if keys.value(CKPT_TYPE) == "internlm":
        classic.append(f"{CKPT_TYPE} = internlm")
    if classic:
        facts.note(
            said(
                "{file} is read as classic InternLM, by {mark}; for InternEvo give "
                "--framework internevo",
                file=keys.file,
                mark=classic[0],
            )
        )
        return "internlm"
    facts.lack(
        "framework",
        said(
            "{file} has no entry that tells InternLM from InternEvo, and they lay ranks out "
            "differently",
            file=keys.file,
        ),
        example="--framework internevo",
    )
    return None


def _written(key: str, keys: Keys) -> str:
    """Returns an entry as the file has it, or the key alone where its value is not known."""
    value = keys.value(key)
    return key if value is None else f"{key} = {value}"


def _version(keys: Keys) -> str | None:
    """Returns the branch whose entries the config uses; releases read none of them."""
    if keys.has("parallel.expert_zero1"):
        return "develop-2024-12"
    used = [name for name in DEVELOP if keys.has(f"parallel.{name}")]
    return "develop-2025-01" if used else None


# ----------------------------------------------------------------------- writing


def write(job: LaunchJob) -> str:
    """Returns a config with the ``parallel`` mapping of a job, of either framework."""
    # InternEvo before 0.3.10 lays ranks out as classic InternLM does, from the same entries.
    is_classic = job.framework == "internlm" or not at_least(job.version, "0.3.10")
    parallel = _classic(job) if is_classic else _parallel(job)
    model: dict[str, object] = {
        name: int(job.sizes.options[name])
        for name in ("num_chunks", "num_experts", "num_kv_attention_heads")
        if name in job.sizes.options
    }
    lines = [job.mark, "# Layout only: add the model, its data and the other mappings."]
    if model:
        lines += ["model = dict(", *(f"    {key}={value}," for key, value in model.items()), ")"]
    lines += ["parallel = dict(", *(f"    {line}," for line in _entries(parallel)), ")", ""]
    return "\n".join(lines)


def _zero1(job: LaunchJob) -> dict[str, object]:
    entry: dict[str, object] = {"size": -1 if job.sizes.zero1 is None else job.sizes.zero1}
    fsdp = job.is_on("zero1.fsdp")
    return entry if fsdp is None else {**entry, "fsdp": fsdp}


def _classic(job: LaunchJob) -> dict[str, object]:
    return {
        "zero1": _zero1(job),
        "tensor": job.sizes.tp,
        "pipeline": {"size": job.sizes.pp},
        "sequence_parallel": False,
    }


def _parallel(job: LaunchJob) -> dict[str, object]:
    """Returns the entries of InternEvo; ``weight`` stands in all its configs."""
    parallel: dict[str, object] = {
        "zero1": _zero1(job),
        "tensor": {"size": job.sizes.tp, "mode": job.sizes.options.get("tensor.mode", "mtp")},
        "pipeline": {"size": job.sizes.pp},
        "weight": {"size": job.size("weight.size") or 1},
    }
    for name, meaning in INTERNEVO.items():
        # 'pipeline.interleaved_overlap' goes into dict(pipeline=dict(…)). Of the two ways to give a
        # size, 'expert' and 'expert.size', the second is written; 'gqa' has one way only.
        section, _, rest = name.partition(".")
        value = job.sizes.options.get(meaning.name)
        if value is None or section in ("tensor", "weight") or (not rest and section != "gqa"):
            continue
        shown: object = value.lower() == "true" if meaning.kind == "yes" else int(value)
        if not rest:
            parallel[section] = shown
            continue
        entry = parallel.setdefault(section, {})
        for part in rest.split(".")[:-1]:
            entry = entry.setdefault(part, {}) if isinstance(entry, dict) else {}
        if isinstance(entry, dict):
            entry[rest.split(".")[-1]] = shown
    return parallel


def _entries(entries: Mapping[str, object]) -> list[str]:
    return [f"{key}={_shown(value)}" for key, value in entries.items()]


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return f"dict({', '.join(_entries(value))})"
    return repr(value).replace("'", '"')
