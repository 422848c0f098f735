"""Models of transformers on the meta device: the parameters of a config, and configs to count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from serried.plan.model.architectures import ARCHITECTURES

GOLDEN = Path(__file__).parents[1] / "goldens" / "models" / "parameters.json"
CHANGED: dict[str, dict[str, Any]] = {
    "deepseek_v2": {"num_experts_per_tok": 6, "first_k_dense_replace": 1},
    "nemotron": {"num_key_value_heads": 8},
    "qwen3_moe": {"decoder_sparse_step": 2},
    "falcon": {"new_decoder_architecture": True, "num_kv_heads": 71},
    "llama4_text": {"interleave_moe_layer_step": 2, "moe_layers": None},
    "llama": {"attention_bias": True, "mlp_bias": True, "num_key_value_heads": 8},
}
"""What makes a default config one that models have, or a harder one."""
DROPPED = ("token_id", "dropout", "return_dict", "output_", "id2label", "label2id", "problem_type")


def golden() -> dict[str, Any]:
    """Returns the parameters of every architecture's default config, as transformers makes it."""
    import transformers

    models = {}
    for kind in sorted(ARCHITECTURES):
        if kind in transformers.CONFIG_MAPPING and (made := _counted(kind)):
            models[kind] = made
    return {"oracle": f"transformers {transformers.__version__}", "models": models}


def _counted(kind: str) -> dict[str, Any] | None:
    import torch
    from transformers import CONFIG_MAPPING, AutoModelForCausalLM

    made = CONFIG_MAPPING[kind](**CHANGED.get(kind, {}))
    config = made.get_text_config()
    try:
        with torch.device("meta"):
            auto: Any = AutoModelForCausalLM
            model = auto.from_config(config)
    except (AttributeError, TypeError, ValueError):
        return None  # a part of a larger model, or a default that its own model does not take
    tree = json.loads(config.to_json_string(use_diff=False))
    kept = {key: value for key, value in tree.items() if _is_kept(key, value)}
    return {"parameters": sum(each.numel() for each in model.parameters()), "config": kept}


def _is_kept(key: str, value: object) -> bool:
    # Experts of Llama 4 are listed layer by layer, for which a step stands.
    is_long = key in ("moe_layers", "no_rope_layers", "rope_parameters", "rope_scaling")
    return value is not None and not is_long and not any(part in key for part in DROPPED)


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(golden(), indent=1) + "\n", encoding="utf-8")
