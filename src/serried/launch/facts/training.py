"""What a launch file says of the model and its training, beside the layout: sizes, batch, formats.

    --hidden-size 4096        hidden        optimizer.name         (no name of ours: left out)
    model.num_layers: 32      layers        --fp16                 fp16

Frameworks call a size by few names, so that the last part of a key tells it wherever it stands;
what hangs on a condition of a script is left out, for a plan asks for what is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from serried.launch.facts.flags import Flag
from serried.launch.facts.found import Found
from serried.launch.facts.keys import Keys

NAMES: Mapping[str, tuple[str, ...]] = {
    "sequence": (
        *("seq-length", "seq-len", "encoder-seq-length", "max-seq-len", "sequence-len"),
        *("sequence-length", "max-target-length", "cutoff-len", "max-seq-length"),
    ),
    "micro_batch": (
        *("micro-batch-size", "micro-bsz", "local-batch-size", "per-device-train-batch-size"),
        *("device-train-microbatch-size", "train-micro-batch-size-per-gpu"),
        *("per-device-batch-size", "train-micro-batch-size-per-device"),
    ),
    "global_batch": ("global-batch-size", "global-train-batch-size", "train-batch-size"),
    "accumulation": (
        *("gradient-accumulation-steps", "micro-num", "batch-accumulation-per-replica"),
    ),
    "layers": (
        *("num-layers", "num-hidden-layers", "n-layers", "num-layer", "base-num-decoder-layers"),
    ),
    "hidden": ("hidden-size", "d-model", "base-emb-dim"),
    "heads": ("num-attention-heads", "n-heads", "base-num-query-heads"),
    "kv_heads": (
        *("num-query-groups", "num-key-value-heads", "num-kv-attention-heads"),
        *("base-num-kv-heads", "kv-n-heads"),
    ),
    "head_dim": ("kv-channels", "head-dim"),
    "ffn": ("ffn-hidden-size", "intermediate-size", "base-mlp-dim"),
    "mlp_ratio": ("mlp-ratio",),
    "vocab": ("vocab-size", "padded-vocab-size"),
    "swiglu": ("swiglu",),
    "activation": ("activation",),
    "norm": ("normalization",),
    "untied": ("untie-embeddings-and-output-weights",),
    "tied": ("share-embeddings-and-output-weights", "tie-word-embeddings"),
    "no_bias": ("disable-bias-linear",),
    "bias": ("add-bias-linear", "model.bias"),
    "qkv_bias": ("add-qkv-bias",),
    "qk_norm": ("qk-layernorm",),
    "positions": ("position-embedding-type",),
    "num_positions": ("max-position-embeddings",),
    "experts": ("num-experts", "n-routed-experts", "num-moe-experts", "num-local-experts"),
    "top_k": ("moe-router-topk", "num-experts-per-tok"),
    "expert_ffn": ("moe-ffn-hidden-size", "moe-intermediate-size"),
    "shared_ffn": ("moe-shared-expert-intermediate-size",),
    "moe_freq": ("moe-layer-freq",),
    "dense_layers": ("first-k-dense-replace",),
    "is_latent": ("multi-latent-attention",),
    "q_rank": ("q-lora-rank",),
    "kv_rank": ("kv-lora-rank",),
    "nope_dim": ("qk-head-dim", "qk-nope-head-dim"),
    "rope_dim": ("qk-pos-emb-head-dim", "qk-rope-head-dim"),
    "v_dim": ("v-head-dim",),
    "mtp_layers": ("mtp-num-layers",),
    "model": (
        *("model-name-or-path", "base-model", "policy.model-name", "actor-rollout-ref.model.path"),
        *("pretrain", "hf-model-path", "hf-path", "model.path", "model.pretrained"),
    ),
    "kind": ("model.name",),
    "flavor": ("model.flavor",),
    "granularity": ("recompute-granularity", "activations-checkpoint-granularity"),
    "recompute_method": ("recompute-method", "activations-checkpoint-method"),
    "recompute_layers": ("recompute-num-layers", "activations-checkpoint-num-layers"),
    "recompute_modules": ("recompute-modules",),
    "recompute_activations": ("recompute-activations",),
    "checkpointing": (
        *("gradient-checkpointing", "enable-gradient-checkpointing", "checkpoint-activations"),
        *("activation-checkpointing", "model.checkpoint", "recompute-layer"),
    ),
    "checkpoint_mode": ("activation-checkpoint.mode",),
    "fp16": ("fp16", "fp16.enabled"),
    "bf16": ("bf16", "bf16.enabled"),
    "precision": ("trainer.precision", "precision"),
    "fp8": ("fp8", "fp8-format"),
    "fp8_recipe": ("fp8-recipe",),
    "sequence_parallel": ("sequence-parallel",),
    "lora": ("lora-rank", "lora-r"),
    "schedule": ("pipeline-parallel-schedule", "pp-engine"),
    "fp8_gather": ("fp8-param-gather",),
    "optimizer": ("optimizer", "optim"),
    "moment_dtype": ("exp-avg-dtype",),
    "optimizer_on_host": ("optimizer-cpu-offload",),
    "optimizer_device": ("offload-optimizer.device",),
    "parameter_device": ("offload-param.device",),
    "activations_on_host": ("cpu-offloading",),
    "layers_on_host": ("cpu-offloading-num-layers",),
    "swiglu_narrow": ("activation-func-fp8-input-store",),
    "gradients_apart": ("no-gradient-accumulation-fusion",),
    "gradients_fused": ("gradient-accumulation-fusion",),
    "tp_overlap": ("tp-comm-overlap",),
    "ep_overlap": ("overlap-moe-expert-parallel-comm",),
    "dispatcher": ("moe-token-dispatcher-type",),
    "grouped_gemm": ("moe-grouped-gemm",),
    "layers_by": ("transformer-impl",),
    "hidden_dropout": ("hidden-dropout",),
    "attention_dropout": ("attention-dropout",),
    "loss_fused": ("cross-entropy-loss-fusion",),
    "loss_fused_by": ("cross-entropy-fusion-impl",),
}
"""Names of ours, and what launch files call them: the last part of a key, or a longer end of it."""

_BY_NAME = {each: name for name, several in NAMES.items() for each in several}
FLAGS = {"model": "model"}
"""What an option alone is called, which as a key stands in too many places."""
LEFT_OUT = ("data.train-batch-size", "optimizer.", "critic.", "reward", "vision", "draft")
"""Ends and parts of keys that mean something else: batches of prompts, other models."""


def of_keys(keys: Keys) -> dict[str, Found]:
    """Returns what the keys of a config say of training, by names of ours.

    >>> from serried.launch.facts.keys import ConfigValue
    >>> keys = Keys("x.yaml")
    >>> keys.add("model.hidden_size", ConfigValue(4096, 3))
    >>> of_keys(keys)["hidden"].value
    4096
    """
    found: dict[str, Found] = {}
    for key, entries in keys.entries.items():
        plain = key.replace("_", "-").lower()
        name = _name_of(plain)
        if name is None or (name != "optimizer_device" and _is_left_out(plain)):
            continue
        entry = keys.resolved(entries[0])
        if entry.why is None and entry.value is not None:
            value = _plain(entry.value)
            place = Found(value, entry.file or keys.file, entry.line, key, entry.via)
            found.setdefault(name, place)
    return found


def of_flags(flags: Sequence[Flag]) -> dict[str, Found]:
    """Returns what the options of a command say of training, by names of ours."""
    found: dict[str, Found] = {}
    for flag in flags:
        plain = flag.name.lower()
        name = FLAGS.get(plain) or _name_of(plain)
        words = [each.text for each in flag.values if not each.maybe]
        if name is None or flag.word.maybe or any(word is None for word in words[:1]):
            continue
        if flag.values and not words:
            continue
        text = " ".join(word for word in words if word is not None) if words else "true"
        found[name] = Found(
            _plain(text), flag.word.line.file, flag.word.line.number, flag.key, flag.word.via
        )
    return found


def _is_left_out(plain: str) -> bool:
    return any(part in plain for part in LEFT_OUT)


def _name_of(plain: str) -> str | None:
    """Returns our name of a key: the longest end of it that is known tells."""
    parts = plain.split(".")
    ends = (".".join(parts[start:]) for start in range(len(parts)))
    return next((_BY_NAME[end] for end in ends if end in _BY_NAME), None)


def _plain(value: object) -> int | str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return value
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    text = str(value).strip()
    return int(text) if text.isdecimal() and len(text) < 12 else text
