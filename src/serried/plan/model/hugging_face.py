"""A model's shape as Hugging Face's ``config.json`` says it: read as data, by its ``model_type``.

    config.json ─> model_type ─> what the architecture is ─> ModelShape
                                 traits: norms, biases, gates; keys that differ

An architecture that is no decoder-only transformer is refused by what it is. Of a model that also
sees or hears, what reads text (``text_config``) is taken. Source: transformers 5.23.0, the
configuration and modeling of each type; a golden holds the parameters that its models have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from serried import user_file
from serried.errors import InputError, listed
from serried.finding import Sentence, said
from serried.limits import MODEL_CONFIG_BYTES, MODEL_SIZE
from serried.plan.model.architectures import ARCHITECTURES, Architecture, Config
from serried.plan.model.shape import ModelShape

KEYS: Mapping[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head", "n_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "multi_query_group_num"),
    "head_dim": ("head_dim", "attention_head_dim", "kv_channels"),
    "ffn": ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"),
    "vocab": ("vocab_size", "padded_vocab_size"),
}
"""What a size is called, in one architecture or another."""
SENSES = (
    *("vision_config", "vit_config", "vision_tower_config", "video_config"),
    *("audio_config", "speech_config", "audio_encoder_config", "talker_config"),
)
"""Keys under which a config holds what is not the decoder of text."""
EVEN = ("llama", "gpt2", "gpt_neox", "bloom", "falcon", "mpt", "opt", "internlm", "internlm2")
"""Types that transformers refuses to build where heads do not divide the hidden size."""


# ----------------------------------------------------------------------- the way in


def shape_of_file(path: Path) -> ModelShape:
    """Returns the shape that a config.json says, or the one in a folder of a model.

    Raises InputError for a file that cannot be read, is no JSON or no decoder-only transformer.
    """
    place = path / "config.json" if path.is_dir() else path
    text = user_file.read_text(place, MODEL_CONFIG_BYTES.most, said("a model's config.json"))
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("{file} is no JSON: {reason}", file=place.name, reason=error) from error
    folder = place.resolve().parent.name if place.name == "config.json" else place.stem
    return shape_of(tree, folder)


def shape_of(tree: object, name: str) -> ModelShape:
    """Returns the shape that the tree of a config.json says.

    >>> sizes = {"num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32}
    >>> rest = {"num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256}
    >>> shape_of({"model_type": "llama"} | sizes | rest, "llama").head_dim
    128
    """
    if not isinstance(tree, Mapping):
        raise InputError("{name} is no config of a model: it holds no keys", name=name)
    config = tree
    if isinstance(tree.get("text_config"), Mapping):
        config = {**tree, **tree["text_config"]}
    told = str(tree.get("_name_or_path") or "").rstrip("/").split("/")[-1] or name
    kind = str(config.get("model_type", ""))
    _refuse_others(config, kind, told)
    if not kind:
        raise InputError(
            "{name} does not say its model_type, as the config of a model does", name=told
        )
    known = ARCHITECTURES.get(kind)
    if known is None and not _is_like_llama(config):
        raise InputError(
            "{name} is of the architecture '{kind}', which is not read; those that are: {known}",
            name=told,
            kind=kind[:40],
            known=listed(sorted(ARCHITECTURES), limit=len(ARCHITECTURES)),
        )
    source = "config.json"
    if known is None:
        known, source = Architecture(), f"config.json, of type {kind[:40]}, read as Llama's"
    return replace(_shape(config, known, told, source), left_out=_senses(tree))


def _senses(tree: Config) -> tuple[str, ...]:
    """Returns the parts of a config that see, hear or speak, which no shape holds."""
    return tuple(each for each in SENSES if isinstance(tree.get(each), Mapping))


def _shape(config: Config, known: Architecture, name: str, source: str) -> ModelShape:
    found: dict[str, Any] = dict(known.traits)
    for each in KEYS:
        if (value := _size(config, each, name)) is not None:
            found[each] = value
    found["is_tied"] = bool(config.get("tie_word_embeddings", known.is_tied))
    try:
        found |= _windows(config, found.get("layers", 0))
        found |= known.own(config) if known.own else {}
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise InputError(
            "{name} is no config of its type: {reason}", name=name, reason=repr(error)[:80]
        ) from error
    needed = ["layers", "hidden", "heads", "vocab"]
    if found.get("is_gated", True):  # the width of others is 4 h where nobody says
        needed.append("ffn")
    missing = [each for each in needed if each not in found]
    if missing:
        raise InputError(
            "{name} does not say {key}, as the config of a model does",
            name=name,
            key=listed(KEYS[missing[0]], last="or"),
        )
    if found.get("kv_heads") is None:
        found["kv_heads"] = found["heads"]
    is_even = found["hidden"] % found["heads"] == 0
    if "head_dim" not in found and not is_even and config.get("model_type") in EVEN:
        raise InputError(
            "{name}: {heads} heads do not divide a hidden size of {hidden}, and no head_dim is "
            "told",
            name=name,
            heads=found["heads"],
            hidden=found["hidden"],
        )
    found.setdefault("head_dim", found["hidden"] // found["heads"])
    found.setdefault("ffn", 4 * found["hidden"])
    return ModelShape(name=name, source=source, **found)


def _size(config: Config, each: str, name: str) -> int | None:
    for key in KEYS[each]:
        value = config.get(key)
        if value is None:
            continue
        if (
            isinstance(value, bool)
            or not isinstance(value, int)
            or not 0 < value <= MODEL_SIZE.most
        ):
            raise InputError(
                "{name}: {key} is {value}; it is a whole number from 1 to {most}",
                name=name,
                key=key,
                value=json.dumps(value)[:40],
                most=MODEL_SIZE.most,
            )
        return value
    return None


def _is_like_llama(config: Config) -> bool:
    """Tells whether an architecture that is not known has all of Llama's keys, and says no other.

    Models that people publish with code of their own mostly have.
    """
    keys = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size")
    names = [str(each) for each in config.get("architectures") or ()]
    is_decoder = any(name.endswith(("ForCausalLM", "LMHeadModel")) for name in names)
    return is_decoder and all(key in config for key in keys) and not _counts_experts(config)


def _counts_experts(config: Config) -> bool:
    return any("expert" in key and config[key] for key in config)


# ----------------------------------------------------------------------- what is no decoder


ENCODERS = said("an encoder, which predicts no next token")
BOTH = said("an encoder and a decoder")
STATES = said("a recurrent model without attention")
HYBRIDS = said("a hybrid whose layers are not all attention")
PICTURES = said("a model of pictures or sound")
UNLIKE = said("a model whose layers differ from one another")

OTHERS: Mapping[str, Sentence] = {
    **dict.fromkeys(
        (
            *("bert", "roberta", "xlm-roberta", "distilbert", "electra", "albert", "deberta"),
            *("deberta-v2", "mpnet", "modernbert", "nomic_bert", "camembert", "esm", "longformer"),
        ),
        ENCODERS,
    ),
    **dict.fromkeys(
        ("t5", "mt5", "umt5", "bart", "mbart", "pegasus", "marian", "led", "m2m_100", "t5gemma"),
        BOTH,
    ),
    **dict.fromkeys(("mamba", "mamba2", "rwkv", "falcon_mamba", "xlstm", "hgrn"), STATES),
    **dict.fromkeys(
        (
            *("jamba", "zamba", "zamba2", "bamba", "nemotron_h", "falcon_h1", "recurrent_gemma"),
            *("qwen3_next", "qwen3_5", "granitemoehybrid", "lfm2", "lfm2_moe", "minimax"),
            *("kimi_linear", "plamo2"),
        ),
        HYBRIDS,
    ),
    **dict.fromkeys(
        (
            *("vit", "clip", "clip_vision_model", "siglip", "dinov2", "swin", "resnet", "convnext"),
            *(
                "whisper",
                "wav2vec2",
                "hubert",
                "detr",
                "sam",
                "timm_wrapper",
                "encodec",
                "musicgen",
            ),
        ),
        PICTURES,
    ),
    **dict.fromkeys(("deci", "nemotron-nas", "openelm", "gemma3n", "gemma3n_text"), UNLIKE),
}
"""Types that are no decoder-only transformers of like layers, and what they are."""


def _refuse_others(config: Config, kind: str, name: str) -> None:
    found = OTHERS.get(kind)
    if "_class_name" in config or "_diffusers_version" in config:
        found = PICTURES
    elif config.get("is_encoder_decoder"):
        found = BOTH
    elif any("mamba" in key or "ssm" in key for key in config):
        found = HYBRIDS
    elif config.get("block_configs"):
        found = UNLIKE
    layers = config.get("layer_types")
    if isinstance(layers, Sequence) and set(map(str, layers)) - ATTENTION:
        found = HYBRIDS
    if found is not None:
        raise InputError(
            "{name} ({kind}) is {what}; a plan is made for decoder-only transformers",
            name=name,
            kind=(kind or str(config.get("_class_name", "")))[:40],
            what=found,
        )


# ----------------------------------------------------------------------- windows


ATTENTION = {"full_attention", "sliding_attention", "chunked_attention"}


def _windows(config: Config, layers: int) -> dict[str, Any]:
    """Returns the window of attention, and how many layers have it."""
    window = config.get("sliding_window") or config.get("attention_chunk_size")
    is_off = config.get("use_sliding_window") is False
    if not isinstance(window, int) or isinstance(window, bool) or window < 1 or is_off:
        return {}
    listing = config.get("layer_types")
    kind = config.get("model_type")
    if isinstance(listing, Sequence) and not isinstance(listing, str):
        count = sum(str(each) != "full_attention" for each in listing)
    elif kind in ("gemma2", "gpt_oss"):  # one of two, the first of them
        count = (layers + 1) // 2
    elif kind in ("gemma3_text", "gemma3", "llama4_text", "llama4", "cohere2"):
        # One of six, or of four, sees all.
        every = config.get("sliding_window_pattern") or (6 if "gemma" in str(kind) else 4)
        count = layers - layers // every
    elif kind in ("qwen2", "qwen3", "qwen2_moe", "qwen3_moe"):
        count = max(0, layers - int(config.get("max_window_layers") or 0))
    else:
        count = layers
    return {"window": window, "windowed_layers": count} if count else {}
