"""What each ``model_type`` of Hugging Face says of a model without writing it, and in its own keys.

    traits    norms, gates and biases that all its models have
    own       a function of the config: experts, latent attention, biases that a key turns on

Source: transformers 5.23.0, the configuration and modeling of each type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from serried.errors import InputError
from serried.plan.model.shape import ExpertShape, LatentAttention

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Architecture:
    """Holds what a ``model_type`` says without writing it, and what it writes in its own way."""

    traits: Mapping[str, Any] = field(default_factory=dict)
    """Fields of ModelShape that all its models have."""
    own: Callable[[Config], Mapping[str, Any]] | None = None
    """Fields that follow from keys of its own."""
    is_tied: bool = False
    """Whether the output is tied where the config does not say."""


def _biased(config: Config) -> dict[str, Any]:
    """Returns the biases of Llama and those like it."""
    everywhere = bool(config.get("attention_bias") and config.get("mlp_bias"))
    some = bool(config.get("attention_bias") or config.get("bias"))
    return {"has_bias": everywhere, "has_qkv_bias": some, "has_o_bias": some}


def _qkv_biased(config: Config) -> dict[str, Any]:
    return {"has_qkv_bias": bool(config.get("attention_bias"))}


def _experts(
    config: Config,
    *,
    count: str = "num_experts",
    top_k: str = "num_experts_per_tok",
    ffn: str = "moe_intermediate_size",
    **rest: Any,
) -> dict[str, Any]:
    """Returns the experts that a config has under these keys; none where it counts none."""
    if count == "num_experts" and not config.get(count):
        count = "num_local_experts"  # as transformers writes it since version 5
    if not config.get(count):
        return {}
    width = config.get(ffn) or config.get("intermediate_size") or 0
    return {"experts": ExpertShape(int(config[count]), int(config[top_k]), int(width), **rest)}


def _mixtral(config: Config) -> dict[str, Any]:
    return _experts(config, count="num_local_experts", ffn="intermediate_size")


def _qwen_moe(config: Config) -> dict[str, Any]:
    shared = int(config.get("shared_expert_intermediate_size") or 0)
    if config.get("mlp_only_layers"):
        raise InputError(
            "the config lists layers without experts (mlp_only_layers); only the first layers of a "
            "model may be such"
        )
    return _biased(config) | _experts(
        config,
        shared_ffn=shared,
        has_shared_gate=shared > 0,
        every=int(config.get("decoder_sparse_step") or 1),
    )


def _qwen2_moe(config: Config) -> dict[str, Any]:
    return _qwen_moe(config) | {"has_qkv_bias": True, "has_o_bias": False}


def _deepseek(config: Config) -> dict[str, Any]:
    width = int(config.get("moe_intermediate_size") or 0)
    found = _experts(
        config,
        count="n_routed_experts",
        shared_ffn=width * int(config.get("n_shared_experts") or 0),
        dense_layers=int(config.get("first_k_dense_replace") or 0),
    )
    if config.get("kv_lora_rank"):
        nope, rope = int(config["qk_nope_head_dim"]), int(config["qk_rope_head_dim"])
        found["latent"] = LatentAttention(
            int(config["kv_lora_rank"]),
            nope,
            rope,
            int(config["v_head_dim"]),
            int(config.get("q_lora_rank") or 0),
        )
        found |= {"head_dim": nope + rope, "kv_heads": config["num_attention_heads"]}
    return found | {"mtp_layers": int(config.get("num_nextn_predict_layers") or 0)}


def _glm_moe(config: Config) -> dict[str, Any]:
    norm: Literal["", "head"] = "head" if config.get("use_qk_norm") else ""
    return _deepseek(config) | _qkv_biased(config) | {"qk_norm": norm}


def _llama4(config: Config) -> dict[str, Any]:
    found = _experts(
        config,
        count="num_local_experts",
        ffn="intermediate_size",
        shared_ffn=int(config.get("intermediate_size") or 0),
        every=int(config.get("interleave_moe_layer_step") or 1),
    )
    return found | {"ffn": int(config["intermediate_size_mlp"])}


def _dbrx(config: Config) -> dict[str, Any]:
    attention, experts = config.get("attn_config") or {}, config.get("ffn_config") or {}
    width = int(experts.get("ffn_hidden_size") or 4 * config["d_model"])
    return {
        "kv_heads": int(attention.get("kv_n_heads") or config["n_heads"]),
        "ffn": width,
        "experts": ExpertShape(
            int(experts.get("moe_num_experts") or 4), int(experts.get("moe_top_k") or 1), width
        ),
    }


def _gpt(config: Config) -> dict[str, Any]:
    return {"learned_positions": int(config.get("n_positions") or 1024)}


def _bigcode(config: Config) -> dict[str, Any]:
    return _gpt(config) | ({"kv_heads": 1} if config.get("multi_query", True) else {})


def _opt(config: Config) -> dict[str, Any]:
    return {"learned_positions": int(config.get("max_position_embeddings") or 2048) + 2}


def _mpt(config: Config) -> dict[str, Any]:
    attention = config.get("attn_config") or {}
    is_bare = config.get("no_bias", True)
    return {
        "kv_heads": int(attention.get("kv_n_heads") or config["n_heads"]),
        "ffn": int(config.get("expansion_ratio") or 4) * int(config["d_model"]),
        "has_bias": not is_bare,
        "has_norm_bias": not is_bare,
    }


def _falcon(config: Config) -> dict[str, Any]:
    has_new = bool(config.get("new_decoder_architecture"))
    heads = config.get("num_attention_heads")
    if has_new:
        kv_heads = config.get("num_kv_heads") or heads
    else:
        kv_heads = 1 if config.get("multi_query", True) else heads
    num_norms = int(config.get("num_ln_in_parallel_attn") or (2 if has_new else 1))
    is_parallel = config.get("parallel_attn", True) or has_new
    return {
        "kv_heads": kv_heads,
        "has_bias": bool(config.get("bias")),
        "norms_per_layer": num_norms if is_parallel else 2,
    }


def _cohere(config: Config) -> dict[str, Any]:
    norm: Literal["", "whole"] = "whole" if config.get("use_qk_norm") else ""
    return _biased(config) | {"qk_norm": norm}


def _stablelm(config: Config) -> dict[str, Any]:
    num_norms = 1 if config.get("use_parallel_residual") else 2
    return {"has_qkv_bias": bool(config.get("use_qkv_bias")), "norms_per_layer": num_norms}


def _seed(config: Config) -> dict[str, Any]:
    return _qkv_biased(config) | {"has_o_bias": bool(config.get("attention_out_bias"))}


def _chatglm(config: Config) -> dict[str, Any]:
    return {"has_qkv_bias": bool(config.get("add_qkv_bias"))}


GPT = {"norm": "layer", "is_gated": False, "has_bias": True}
SQUARED = {"norm": "layer", "is_gated": False}

ARCHITECTURES: Mapping[str, Architecture] = {
    **dict.fromkeys(
        ("llama", "granite", "smollm3", "internlm", "internlm2", "internlm3", "yi", "mistral"),
        Architecture(own=_biased),
    ),
    **dict.fromkeys(("mistral3", "ministral", "ministral3", "phi3", "exaone"), Architecture()),
    "arcee": Architecture({"is_gated": False}, _biased),
    "mixtral": Architecture(own=_mixtral),
    "phimoe": Architecture({"norm": "layer"}, lambda config: _mixtral(config) | _biased(config)),
    "granitemoe": Architecture(own=_mixtral, is_tied=True),
    "qwen2": Architecture({"has_qkv_bias": True}),
    "qwen2_vl_text": Architecture({"has_qkv_bias": True}),
    "qwen2_5_vl_text": Architecture({"has_qkv_bias": True}),
    "qwen2_moe": Architecture({}, _qwen2_moe),
    "qwen3": Architecture({"qk_norm": "head"}, _biased),
    "qwen3_vl_text": Architecture({"qk_norm": "head"}, _biased),
    "qwen3_moe": Architecture({"qk_norm": "head"}, _qwen_moe),
    "qwen3_vl_moe_text": Architecture({"qk_norm": "head"}, _qwen_moe),
    "gemma": Architecture({}, _biased, is_tied=True),
    "gemma2": Architecture({"norms_per_layer": 4}, _biased, is_tied=True),
    **dict.fromkeys(
        ("gemma3", "gemma3_text"),
        Architecture({"norms_per_layer": 4, "qk_norm": "head"}, _biased, is_tied=True),
    ),
    **dict.fromkeys(("olmo2", "olmo3"), Architecture({"qk_norm": "whole"}, _biased)),
    "olmoe": Architecture(
        {"qk_norm": "whole"},
        lambda config: _biased(config) | _experts(config, ffn="intermediate_size"),
    ),
    **dict.fromkeys(
        ("deepseek", "deepseek_v2", "deepseek_v3", "kimi_k2"), Architecture(own=_deepseek)
    ),
    "glm": Architecture(own=_qkv_biased),
    "glm4": Architecture({"norms_per_layer": 4}, _qkv_biased),
    "glm4_moe": Architecture(own=_glm_moe),
    "chatglm": Architecture(own=_chatglm),
    "gpt_oss": Architecture({"has_bias": True, "has_sinks": True}, _mixtral),
    **dict.fromkeys(("llama4", "llama4_text"), Architecture(own=_llama4)),
    "minimax_m2": Architecture({"qk_norm": "whole"}, _mixtral),
    "ernie4_5": Architecture({}, lambda config: {"has_bias": bool(config.get("use_bias"))}, True),
    "seed_oss": Architecture(own=_seed),
    **dict.fromkeys(
        ("cohere", "cohere2"),
        Architecture(
            {"norm": "layer", "has_norm_bias": False, "norms_per_layer": 1}, _cohere, is_tied=True
        ),
    ),
    "stablelm": Architecture({"norm": "layer"}, _stablelm),
    "starcoder2": Architecture(
        SQUARED, lambda config: {"has_bias": bool(config.get("use_bias", True))}, is_tied=True
    ),
    "nemotron": Architecture(SQUARED, _biased),
    "dbrx": Architecture({"norm": "layer", "has_norm_bias": False}, _dbrx),
    "gpt2": Architecture(GPT, _gpt, is_tied=True),
    "gpt_bigcode": Architecture(GPT, _bigcode, is_tied=True),
    "gpt_neox": Architecture(GPT),
    "opt": Architecture(GPT, _opt, is_tied=True),
    "bloom": Architecture(GPT | {"has_embedding_norm": True}, is_tied=True),
    "mpt": Architecture(SQUARED, _mpt, is_tied=True),
    "falcon": Architecture(SQUARED, _falcon, is_tied=True),
}
"""Every ``model_type`` that is read."""
