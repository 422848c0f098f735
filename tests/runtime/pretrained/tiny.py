"""Models of transformers that are small enough for a test, as a config.json each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SIZES = {
    "num_hidden_layers": 3,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "intermediate_size": 48,
    "vocab_size": 300,
    "max_position_embeddings": 64,
    "sliding_window": 8,
    "num_local_experts": 4,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "attention_dropout": 0.1,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": None,
}
GPT2 = {"n_layer": 3, "n_embd": 32, "n_head": 4, "n_positions": 64, "vocab_size": 300}


def config(kind: str, **changes: Any) -> dict[str, Any]:
    """Returns a small config of ``kind``, with the keys that kind has."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    known = CONFIG_MAPPING[kind]().to_dict()
    sizes = GPT2 if kind == "gpt2" else {key: each for key, each in SIZES.items() if key in known}
    return {"model_type": kind, **sizes, **changes}


def written(folder: Path, kind: str = "llama", **changes: Any) -> Path:
    """Writes such a config into ``folder``, and returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "config.json"
    file.write_text(json.dumps(config(kind, **changes)))
    return file
