"""Writes a checkpoint's model as one safetensors file that transformers' Llama class loads.

    runs/a/step-000040, whatever layout wrote it  ──>  model.safetensors + config.json

Our names become Llama's; the arithmetic is the same: RMSNorm at 1e-5, SwiGLU, rotary halves at a
base of 10,000. A model with experts becomes Mixtral's, whose router also lets the best k share
a weight of 1. The vocabulary is the 256 bytes, so no tokenizer goes with it.

A model of transformers is written by transformers itself (pretrained/export).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch import Tensor

from serried.errors import InputError
from serried.runtime.checkpoint.checkpoint import describe, find, require_safetensors
from serried.runtime.checkpoint.files import whole_tensors
from serried.runtime.job.settings import VOCABULARY, ModelSizes
from serried.runtime.model.experts import Experts
from serried.runtime.model.model import FeedForward, Parts, Stage
from serried.runtime.pretrained.export import export_pretrained
from serried.whole_file import whole_file, whole_path

WHOLE = {"embed": "model.embed_tokens", "norm": "model.norm", "output": "lm_head"}
IN_LAYER = {
    "attention.wq": "self_attn.q_proj",
    "attention.wk": "self_attn.k_proj",
    "attention.wv": "self_attn.v_proj",
    "attention.wo": "self_attn.o_proj",
    "attention_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "feed_forward.w1": "mlp.gate_proj",
    "feed_forward.w2": "mlp.down_proj",
    "feed_forward.w3": "mlp.up_proj",
    "feed_forward.router": "block_sparse_moe.gate",
}
EXPERT = re.compile(r"feed_forward\.experts\.(\d+)\.(w[123])")


def export(checkpoint: Path, file: Path) -> Path:
    """Writes the model of ``checkpoint``, or of the newest in it, and its config.json beside it.

    Returns the checkpoint that was read. Raises InputError where it is none or cannot be
    read, or the file cannot be written, and EnvironmentProblem without safetensors.
    """
    require_safetensors()
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    folder = find(checkpoint)
    description = describe(folder)
    _make(file.absolute().parent)
    whole = whole_tensors(folder, "model.")
    if "config" in description.model:
        export_pretrained(description.model["config"], whole, file)
        return folder
    sizes = _sizes(description.model, description.text)
    tensors = {llama_name(name): tensor.contiguous() for name, tensor in whole.items()}
    config = json.dumps(config_of(sizes, tensors.values()), indent=2) + "\n"
    with whole_path(file) as part, whole_file(file.parent / "config.json") as beside:
        beside.write(config.encode())
        try:
            save_file(tensors, part, metadata={"format": "pt"})
        except SafetensorError as error:  # its own word for what the system refuses
            raise InputError(
                "{path} cannot be written: {reason}", path=file, reason=error
            ) from error
    return folder


def _make(folder: Path) -> None:
    """Makes the folder of an export; raises InputError where that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            "folder {path} cannot be made: {reason}", path=folder, reason=error.strerror
        ) from error


def load(file: Path) -> Stage:
    """Returns the whole model of an exported file, in this process."""
    require_safetensors()
    from safetensors.torch import load_file

    config = json.loads((file.parent / "config.json").read_text(encoding="utf-8"))
    model = whole_model(_sizes_of_config(config))
    tensors = load_file(file)
    model.to(next(iter(tensors.values())).dtype)
    named = {name: tensors[llama_name(name)] for name, _ in model.named_parameters()}
    # named_parameters gives a tied weight once, so its second name is missing here.
    model.load_state_dict(named, strict=not model.sizes.tie)
    return model


def whole_model(sizes: ModelSizes) -> Stage:
    """Returns a model in one piece."""

    def feed_forward(sizes: ModelSizes) -> Any:
        if not sizes.experts:
            return FeedForward(sizes)
        return Experts(sizes.hidden, sizes.ffn, sizes.experts, sizes.top_k)

    return Stage(sizes, Parts(feed_forward=feed_forward), stage=0, num_stages=1)


def llama_name(name: str) -> str:
    """Returns what transformers calls a weight.

    >>> llama_name("layers.3.attention.wq.weight")
    'model.layers.3.self_attn.q_proj.weight'
    >>> llama_name("layers.0.feed_forward.experts.5.w2.weight")
    'model.layers.0.block_sparse_moe.experts.5.w2.weight'
    """
    path = name.removesuffix(".weight")
    if path in WHOLE:
        return f"{WHOLE[path]}.weight"
    _, number, inner = path.split(".", 2)
    expert = EXPERT.fullmatch(inner)
    inner = f"block_sparse_moe.experts.{expert[1]}.{expert[2]}" if expert else IN_LAYER[inner]
    return f"model.layers.{number}.{inner}.weight"


def config_of(sizes: ModelSizes, tensors: Iterable[Tensor]) -> dict[str, Any]:
    """Returns the config.json that goes with the file."""
    dtype = str(next(iter(tensors)).dtype).removeprefix("torch.")
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": VOCABULARY,
        "hidden_size": sizes.hidden,
        "intermediate_size": sizes.ffn,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.num_kv_heads,
        "head_dim": sizes.head_size,
        "max_position_embeddings": sizes.seq_len,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10_000.0,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": sizes.tie,
        "bos_token_id": None,
        "eos_token_id": None,
        "torch_dtype": dtype,
    }
    if sizes.experts:
        config |= {
            "architectures": ["MixtralForCausalLM"],
            "model_type": "mixtral",
            "num_local_experts": sizes.experts,
            "num_experts_per_tok": sizes.top_k,
            "sliding_window": None,
        }
    return config


def _sizes_of_config(config: dict[str, Any]) -> ModelSizes:
    return ModelSizes(
        layers=config["num_hidden_layers"],
        hidden=config["hidden_size"],
        heads=config["num_attention_heads"],
        kv_heads=config["num_key_value_heads"],
        seq_len=config["max_position_embeddings"],
        experts=config.get("num_local_experts", 0),
        top_k=config.get("num_experts_per_tok", 2),
        tie=config["tie_word_embeddings"],
    )


def _sizes(model: dict[str, Any], text: dict[str, int]) -> ModelSizes:
    return ModelSizes(**model, seq_len=text["seq_len"])
