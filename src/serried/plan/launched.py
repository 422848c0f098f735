"""What a launch file says of its model and training, as the words and the shape of a plan.

    train.sh ─> launch.facts.training ─┬─> model: named, a config.json, or sizes of its own
                                       └─> sequence, batches, recomputation, formats ─> words

Sizes that a file leaves out are those that its framework takes by default. Source: Megatron-LM
training/arguments.py (GELU, LayerNorm, biases, tied embeddings, learned positions, 4 h);
transformers, LlamaConfig; InternLM configs/7B_sft.py; llm-foundry, MPTConfig.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from serried.errors import InputError, listed
from serried.launch.facts.config import LaunchConfig
from serried.launch.facts.found import Found
from serried.plan.catalog import model_asked, model_by_loose_name
from serried.plan.model.shape import ExpertShape, LatentAttention, ModelShape

NEEDED = ("layers", "hidden", "heads")
MPT_LAYERS = "n-layers"
"""How llm-foundry's MPT calls its layers."""
FLAVORS: Mapping[tuple[str, str], str] = {
    ("llama3", "8b"): "llama3-8b",
    ("llama3", "70b"): "llama3-70b",
    ("llama3", "405b"): "llama3.1-405b",
    ("llama4", "17bx16e"): "llama4-scout",
    ("llama4", "17bx128e"): "llama4-maverick",
    ("deepseek_v3", "16b"): "deepseek-v2-lite",
    ("deepseek_v3", "671b"): "deepseek-v3",
    ("qwen3", "0.6b"): "qwen3-0.6b",
    ("qwen3", "1.7b"): "qwen3-1.7b",
    ("qwen3", "4b"): "qwen3-4b",
    ("qwen3", "8b"): "qwen3-8b",
    ("qwen3", "14b"): "qwen3-14b",
    ("qwen3", "32b"): "qwen3-32b",
    ("qwen3", "30b-a3b"): "qwen3-30b-a3b",
    ("qwen3", "235b-a22b"): "qwen3-235b-a22b",
}
"""torchtitan's models and flavors as the catalogue names them; torchtitan 0.2, models/."""
SCHEDULES: Mapping[str, str] = {
    "1f1b": "1f1b",
    "gpipe": "gpipe",
    "afab": "gpipe",
    "interleaved1f1b": "interleaved-1f1b",
    "interleavedzerobubble": "interleaved-zb",
    "zbvzerobubble": "zbv",
    "dualpipev": "dualpipev",
    "loopedbfs": "looped-bfs",
}
"""Schedules as torch.distributed.pipelining and nanotron name them, in small letters."""
FP8: Mapping[str, str] = {
    "delayed": "fp8-ds",
    "tensorwise": "fp8-cs",
    "blockwise": "fp8-cs",
    "mxfp8": "mxfp8",
}
"""Recipes of Transformer Engine, as Megatron-LM names them."""


def words_of(config: LaunchConfig, dp: int, pp: int) -> dict[str, str]:
    """Returns the words of a plan that a file says, but for the model."""
    told = _Training(config)
    words = {
        "sequence": told.number("sequence"),
        "micro_batch": _micro_batch(told, config, pp),
        "global_batch": _global_batch(told, config, dp),
        "recompute": _recompute(told),
        "compute": _compute(told),
        "states": _states(told),
        "offload": _offload(told),
        "sequence_parallel": told.text("sequence_parallel"),
        "lora": told.number("lora"),
        "schedule": SCHEDULES.get(told.text("schedule") or "") if pp > 1 else None,
    }
    for name in ("layers_first", "layers_last", "layers_picture", "chunks"):
        found = config.fields.get(name)
        words[name] = None if found is None else str(found.value)
    return {name: str(each) for name, each in words.items() if each is not None}


def options_of(config: LaunchConfig) -> dict[str, str]:
    """Returns what a file says of how its framework computes, as the options of a request.

    Only what Megatron's options say, and what they name: other frameworks have none of them.
    """
    told = _Training(config)
    switches = {
        "tp_comm_overlap": told.text("tp_overlap"),
        "a2a_overlap": told.text("ep_overlap"),
        "fp8_param_gather": told.text("fp8_gather"),
        "moe_grouped_gemm": told.text("grouped_gemm"),
        "activation_func_fp8_input_store": told.text("swiglu_narrow"),
        "cross_entropy_loss_fusion": told.text("loss_fused"),
        "gradient_accumulation_fusion": (
            "false" if told.is_on("gradients_apart") else told.text("gradients_fused")
        ),
    }
    words = {
        "moe_token_dispatcher_type": told.text("dispatcher"),
        "transformer_impl": told.text("layers_by"),
        "cpu_offloading_num_layers": _whole(told.text("layers_on_host")),
        "cross_entropy_fusion_impl": told.text("loss_fused_by") if told.is_on("loss_fused") else "",
        "hidden_dropout": _share(told.text("hidden_dropout")),
        "attention_dropout": _share(told.text("attention_dropout")),
    }
    found = {name: each for name, each in switches.items() if each in ("true", "false")}
    if told.key("layers") == MPT_LAYERS:
        words["implementation"] = "llm-foundry"
    return found | {name: each for name, each in words.items() if each}


def _whole(text: str | None) -> str:
    """Returns a whole number above 0, empty for what is none."""
    return text if text and re.fullmatch(r"[1-9]\d{0,5}", text) else ""


def _share(text: str | None) -> str:
    """Returns a number from 0 to 1, empty for what is none."""
    return text if text and re.fullmatch(r"0(\.\d{1,9})?|1(\.0{1,9})?|\.\d{1,9}", text) else ""


def model_of(config: LaunchConfig, *, reads_folders: bool = True) -> ModelShape | None:
    """Returns the model of a file: as it is named, else by its sizes, else None.

    ``reads_folders`` lets a folder of this machine that the file names tell its shape.
    """
    told = _Training(config)
    for name in _names(told):
        if reads_folders and (Path(name) / "config.json").is_file():
            return model_asked(name)
        if (known := model_by_loose_name(name)) is not None:
            return known
    if any(told.number(name) is None for name in NEEDED):
        return None
    return _shape(told, config)


def lacking(config: LaunchConfig) -> InputError:
    """Returns the error for a file that does not say which model it trains, and what would do."""
    told = _Training(config)
    named = _names(told)
    if named:
        return InputError(
            "{file} trains {model}, which is not among the models that are known, nor a folder "
            "with a config.json; give the model, such as --model ./config.json",
            file=config.file,
            model=named[0][:80],
        )
    missing = [name for name in NEEDED if told.number(name) is None]
    return InputError(
        "{file} does not say the model's {sizes}; give the model, such as --model llama3-8b",
        file=config.file,
        sizes=listed(missing, last="and"),
    )


class _Training:
    """Reads what a file says of training, each value as what it should be."""

    def __init__(self, config: LaunchConfig) -> None:
        self.found: Mapping[str, Found] = config.training

    def number(self, name: str) -> int | None:
        found = self.found.get(name)
        is_number = found is not None and isinstance(found.value, int) and found.value > 0
        return found.value if is_number and found and isinstance(found.value, int) else None

    def text(self, name: str) -> str | None:
        found = self.found.get(name)
        return None if found is None else str(found.value).strip().lower()

    def is_on(self, name: str) -> bool:
        return self.text(name) in ("true", "1", "yes")

    def key(self, name: str) -> str:
        """Returns the last part of the key that said a name, with dashes."""
        found = self.found.get(name)
        return found.key.split(".")[-1].replace("_", "-").lstrip("-") if found else ""


def _names(told: _Training) -> list[str]:
    kind, flavor = told.text("kind"), told.text("flavor")
    found = [str(told.found["model"].value)] if "model" in told.found else []
    if kind and flavor:
        return [FLAVORS.get((kind, flavor), f"{kind}-{flavor}"), *found]
    return found


# ----------------------------------------------------------------------- the training


def _micro_batch(told: _Training, config: LaunchConfig, pp: int) -> int | None:
    # torchtitan's local batch is that of a replica's whole step, cut into microbatches of 1 (its
    # pipeline_parallel_microbatch_size) where there is a pipeline.
    if config.framework == "torchtitan" and pp > 1:
        return 1
    return told.number("micro_batch")


def _global_batch(told: _Training, config: LaunchConfig, dp: int) -> int | None:
    if number := told.number("global_batch"):
        return number
    micro = told.number("micro_batch")
    if micro is None:
        return None
    return micro * (told.number("accumulation") or 1) * dp


def _recompute(told: _Training) -> str | None:
    kind = told.text("granularity") or told.text("checkpoint_mode")
    if kind == "full":
        layers = told.number("recompute_layers")
        is_block = told.text("recompute_method") == "block"
        return f"full:{layers}" if layers and is_block else "full"
    if kind == "selective":
        modules = (told.text("recompute_modules") or "").replace(" ", ",")
        return f"selective:{modules}" if modules else "selective"
    if told.is_on("recompute_activations"):
        return "selective"
    return "full" if told.is_on("checkpointing") else None


def _states(told: _Training) -> str | None:
    """Returns the recipe of the optimizer that a file names; None for the framework's own."""
    optimizer = told.text("optimizer") or ""
    if "8bit" in optimizer:
        return "adam-8bit"
    if optimizer in ("muon", "dist_muon"):
        return "muon"
    if optimizer == "sgd":
        return "sgd-momentum"
    if told.text("moment_dtype") in ("bf16", "bfloat16"):
        return "bf16-moments"
    return "fp16-adam" if told.is_on("fp16") and not told.is_on("bf16") else None


def _offload(told: _Training) -> str | None:
    """Returns what a file keeps in the host's memory; states before parameters, which a plan
    takes one of."""
    if told.is_on("optimizer_on_host") or told.text("optimizer_device") in ("cpu", "nvme"):
        return "optimizer"
    if told.is_on("activations_on_host"):
        return "activations"
    return "parameters" if told.text("parameter_device") in ("cpu", "nvme") else None


def _compute(told: _Training) -> str | None:
    if told.text("fp8") not in (None, "false", "none", "null"):
        return FP8.get(told.text("fp8_recipe") or "delayed", "fp8-ds")
    precision = told.text("precision") or ""
    is_half = told.is_on("fp16") or precision in ("16", "fp16", "16-mixed", "amp_fp16")
    if is_half and not told.is_on("bf16"):
        return "fp16"
    return "fp32" if precision in ("32", "fp32", "32-true") else None


# ----------------------------------------------------------------------- the model


def _shape(told: _Training, config: LaunchConfig) -> ModelShape:
    """Returns the shape that sizes make, with what the framework takes where none is told."""
    number = told.number
    layers, hidden, heads = (number(name) or 0 for name in NEEDED)
    found: dict[str, Any] = {
        "layers": layers,
        "hidden": hidden,
        "heads": heads,
        "kv_heads": number("kv_heads") or heads,
        "head_dim": number("head_dim") or max(1, hidden // heads),
        "vocab": number("vocab") or VOCAB,
        "mtp_layers": number("mtp_layers") or 0,
    }
    traits = {
        "num-hidden-layers": _like_llama,
        "base-num-decoder-layers": _like_llama,
        MPT_LAYERS: _like_mpt,
    }.get(told.key("layers"), _like_megatron)
    if config.framework in ("internlm", "internevo"):
        traits = _like_internlm
    found |= traits(told, hidden)
    found["latent"] = _latent(told)
    if found["latent"]:
        found["kv_heads"] = heads
    found["experts"] = _experts(told, found["ffn"])
    return ModelShape(name=Path(config.file).stem, source=config.file, **found)


VOCAB = 50304
"""Words of GPT-2 as Megatron pads them for tp 1, where a file names a tokenizer alone."""


def _like_megatron(told: _Training, hidden: int) -> dict[str, Any]:
    is_gated = told.is_on("swiglu") or "swiglu" in (told.text("activation") or "")
    # Megatron-LM's own default with SwiGLU: two thirds of 4 h, in multiples of 64.
    width = int(4 * hidden * 2 / 3 / 64) * 64 if is_gated else 4 * hidden
    is_rms = "rms" in (told.text("norm") or "")
    has_bias = not told.is_on("no_bias") and told.text("bias") != "false"
    learned = (told.text("positions") or "learned_absolute") == "learned_absolute"
    tied = told.text("tied")
    return {
        "ffn": told.number("ffn") or width,
        "is_gated": is_gated,
        "norm": "rms" if is_rms else "layer",
        "has_bias": has_bias,
        "has_qkv_bias": told.is_on("qkv_bias"),
        "qk_norm": "head" if told.is_on("qk_norm") else "",
        "is_tied": tied in ("true", "1") if tied else not told.is_on("untied"),
        "learned_positions": (told.number("num_positions") or 0) if learned else 0,
    }


def _like_llama(told: _Training, hidden: int) -> dict[str, Any]:
    return {"ffn": told.number("ffn") or 4 * hidden, "is_tied": told.is_on("tied")}


def _like_mpt(told: _Training, hidden: int) -> dict[str, Any]:
    bare = {"norm": "layer", "has_norm_bias": False, "is_gated": False, "is_tied": True}
    return bare | {"ffn": told.number("ffn") or 4 * hidden}


def _like_internlm(told: _Training, hidden: int) -> dict[str, Any]:
    text = told.text("mlp_ratio") or "2.6666667"
    ratio = float(text) if re.fullmatch(r"\d{1,3}(\.\d{1,20})?", text) else 8 / 3
    width = -(-int(hidden * ratio) // 256) * 256
    biased = told.number("kv_heads") is None  # InternLM 2 has GQA and no biases
    return {"ffn": width, "has_qkv_bias": biased, "has_o_bias": biased}


def _latent(told: _Training) -> LatentAttention | None:
    kv_rank = told.number("kv_rank")
    if kv_rank is None:
        return None
    return LatentAttention(
        kv_rank,
        told.number("nope_dim") or 128,
        told.number("rope_dim") or 64,
        told.number("v_dim") or 128,
        told.number("q_rank") or 0,
    )


def _experts(told: _Training, ffn: int) -> ExpertShape | None:
    count = told.number("experts")
    if count is None or count < 2:
        return None
    return ExpertShape(
        count,
        told.number("top_k") or 2,
        told.number("expert_ffn") or ffn,
        told.number("shared_ffn") or 0,
        told.number("dense_layers") or _leading(told.text("moe_freq") or ""),
    )


def _leading(text: str) -> int:
    """Returns the dense layers at the beginning of --moe-layer-freq ([0]*3+[1]*58)."""
    found = re.match(r"\W*\(?\[0\]\*(\d{1,4})", text)
    return int(found[1]) if found else 0
