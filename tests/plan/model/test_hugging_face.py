from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from serried.errors import InputError
from serried.plan.catalog import model_named
from serried.plan.model.architectures import ARCHITECTURES
from serried.plan.model.flops import forward_flops
from serried.plan.model.hugging_face import shape_of, shape_of_file
from serried.plan.model.parameters import model_parameters

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "goldens/models/parameters.json").read_text(encoding="utf-8")
)
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
}


@pytest.mark.parametrize("kind", sorted(GOLDEN["models"]))
def test_a_config_has_the_parameters_of_the_model_that_transformers_makes(kind: str) -> None:
    told = GOLDEN["models"][kind]
    assert model_parameters(shape_of(told["config"], kind)).total == told["parameters"]


def test_most_architectures_are_counted_against_transformers() -> None:
    assert len(GOLDEN["models"]) >= 38
    unlike = set(ARCHITECTURES) - set(GOLDEN["models"])
    assert len(unlike) < 20


def test_a_published_config_is_the_model_of_the_catalogue() -> None:
    read, known = shape_of(LLAMA, "llama"), model_named("llama3-8b")
    assert model_parameters(read) == model_parameters(known)
    assert forward_flops(read, 8192) == forward_flops(known, 8192)


DEEPSEEK = {
    "model_type": "deepseek_v3",
    "architectures": ["DeepseekV3ForCausalLM"],
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "num_hidden_layers": 61,
    "num_nextn_predict_layers": 1,
    "vocab_size": 129280,
}


def test_latent_attention_experts_and_mtp_are_read() -> None:
    read, known = shape_of(DEEPSEEK, "DeepSeek-V3"), model_named("deepseek-v3")
    assert (read.latent, read.experts, read.mtp_layers) == (known.latent, known.experts, 1)
    assert forward_flops(read, 4096) == forward_flops(known, 4096)


@pytest.mark.parametrize(
    ("told", "layers"),
    [
        ({"sliding_window": 4096, "model_type": "mistral"}, 32),
        ({"sliding_window": 4096, "model_type": "qwen2", "use_sliding_window": False}, 0),
        ({"sliding_window": None, "model_type": "mistral"}, 0),
        ({"sliding_window": 4096, "model_type": "gemma2"}, 16),
        ({"sliding_window": 512, "model_type": "gemma3_text"}, 27),
        (
            {
                "sliding_window": 128,
                "layer_types": ["sliding_attention", "full_attention"] * 16,
                "model_type": "mistral",
            },
            16,
        ),
    ],
)
def test_windows_are_of_the_layers_that_have_them(told: dict[str, Any], layers: int) -> None:
    assert shape_of(LLAMA | told, "x").windowed_layers == layers


def test_of_a_model_that_sees_what_reads_is_taken() -> None:
    sees = {
        "model_type": "mistral3",
        "text_config": LLAMA | {"model_type": "mistral"},
        "vision_config": {"hidden_size": 1024},
    }
    assert shape_of(sees, "sees").layers == 32


@pytest.mark.parametrize(
    ("tree", "sentence"),
    [
        ({"model_type": "bert", "hidden_size": 768}, r"\(bert\) is an encoder, which predicts"),
        ({"model_type": "t5", "d_model": 512}, "is an encoder and a decoder"),
        ({"model_type": "new", "is_encoder_decoder": True}, "is an encoder and a decoder"),
        ({"model_type": "mamba2"}, "is a recurrent model without attention"),
        ({"model_type": "nemotron_h"}, "is a hybrid whose layers are not all attention"),
        (LLAMA | {"layer_types": ["linear_attention"] * 32}, "is a hybrid"),
        ({"_class_name": "UNet2DConditionModel"}, r"\(UNet2DCond.*\) is a model of pictures"),
        ({"model_type": "deci", "block_configs": [{}]}, "layers differ from one another"),
        ({"model_type": "brandnew"}, "architecture 'brandnew', which is not read; those that are"),
        ({}, "it does not say its model_type"),
        (LLAMA | {"num_attention_heads": 30, "num_key_value_heads": 30}, "30 heads do not divide"),
        ({name: LLAMA[name] for name in LLAMA if name != "intermediate_size"}, "say intermediate"),
        (
            LLAMA | {"sliding_window": 8, "max_window_layers": "x", "model_type": "qwen3"},
            "no config of",
        ),
        ([1, 2], "is no config of a model: it holds no keys"),
        ({"model_type": "llama", "hidden_size": 8}, "does not say num_hidden_layers, n_layer"),
        (LLAMA | {"hidden_size": -1}, "hidden_size is -1; it is a whole number from 1"),
        (LLAMA | {"vocab_size": "many"}, 'vocab_size is "many"; it is a whole number'),
        (LLAMA | {"num_hidden_layers": True}, "num_hidden_layers is true; it is a whole"),
        (LLAMA | {"num_key_value_heads": 5}, "5 heads of keys and values do not divide"),
        (DEEPSEEK | {"num_experts_per_tok": None}, "is no config of its type: TypeError"),
        (DEEPSEEK | {"num_experts_per_tok": 999}, "a token goes through 999 of 256 experts"),
    ],
)
def test_what_is_no_decoder_is_refused_by_what_it_is(tree: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        shape_of(tree, "it")


def test_a_type_of_its_own_that_has_llamas_keys_is_read_as_llama_and_says_so() -> None:
    read = shape_of(LLAMA | {"model_type": "mine"}, "mine")
    assert read.source == "config.json, of type mine, read as Llama's"
    with pytest.raises(InputError, match="architecture 'mine'"):
        shape_of(LLAMA | {"model_type": "mine", "num_experts": 8}, "mine")


def test_a_file_or_its_folder_is_read_and_names_the_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    assert shape_of_file(tmp_path) == shape_of_file(tmp_path / "config.json")
    assert shape_of_file(tmp_path).name == tmp_path.name


@pytest.mark.parametrize("text", ["{", "", "[" * 100_000, '{"hidden_size": 1' + "0" * 5000 + "}"])
def test_a_broken_file_is_refused_in_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"config\.json is no JSON"):
        shape_of_file(tmp_path / "config.json")
