"""A config.json says what the model is; what cannot be trained is refused with what could."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from serried.errors import EnvironmentProblem, InputError
from serried.runtime.job.config_model import ConfigModel, read_model
from serried.runtime.job.settings import TrainSettings
from tests.runtime.pretrained.tiny import written


def test_sizes_are_those_of_the_config(tmp_path: Path) -> None:
    model = read_model(written(tmp_path, "qwen3", tie_word_embeddings=True), seq_len=48)
    assert model.architecture == "Qwen3ForCausalLM"
    assert (model.layers, model.hidden, model.heads, model.num_kv_heads) == (3, 32, 4, 2)
    assert (model.head_size, model.ffn, model.vocabulary, model.tie) == (8, 48, 300, True)
    assert (model.seq_len, model.weights) == (48, None)


def test_gpt2_s_own_names_are_understood(tmp_path: Path) -> None:
    model = read_model(written(tmp_path, "gpt2"))
    assert (model.layers, model.hidden, model.heads, model.ffn) == (3, 32, 4, 128)
    assert model.architecture == "GPT2LMHeadModel"


def test_dropout_is_what_the_run_asks_for_and_not_the_config_s(tmp_path: Path) -> None:
    config = json.loads(read_model(written(tmp_path, "gpt2"), dropout=0.25).config)
    assert {config[f"{place}_pdrop"] for place in ("attn", "embd", "resid")} == {0.25}
    assert json.loads(read_model(written(tmp_path)).config)["attention_dropout"] == 0.0


def test_code_that_comes_with_a_model_is_left_where_it_is(tmp_path: Path) -> None:
    model = read_model(written(tmp_path, auto_map={"AutoConfig": "evil.Config"}))
    assert "auto_map" not in json.loads(model.config)


@pytest.mark.parametrize(
    ("kind", "changes", "said"),
    [
        (
            "llama",
            {"architectures": ["LlamaForSequenceClassification"]},
            "is of LlamaForSeq.*Llama",
        ),
        ("bert", {"architectures": ["BertForMaskedLM"]}, "is of BertForMaskedLM, which is no cau"),
        ("vit", {}, "is of vit, which is no causal language model; give one such as LlamaFor"),
        ("llama", {"model_type": "mine"}, "has model_type 'mine', which the installed transf"),
        ("llama", {"model_type": None}, "has model_type None, which"),
        ("llama", {"quantization_config": {"quant_method": "gptq"}}, "is of quantized weights"),
        ("llama", {"hidden_size": "wide"}, "transformers cannot take .* as a model: "),
        ("llama", {"num_attention_heads": 0}, "transformers cannot take .* as a model: "),
        ("llama", {"vocab_size": 0}, "gives 0 for vocabulary, where a number of at least 1"),
        ("llama", {"num_key_value_heads": 3}, "4 heads cannot share 3 KV heads evenly"),
        ("llama", {"max_position_embeddings": 32}, "a sequence of 64 is longer than the 32 places"),
    ],
)
def test_a_config_that_cannot_be_trained_is_refused(
    tmp_path: Path, kind: str, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        read_model(written(tmp_path, kind, **changes))


@pytest.mark.parametrize("content", ["", "[]", "{", "[" * 100_000])
def test_a_file_that_is_no_config_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(InputError, match=r"config\.json is no JSON object, as a config\.json is"):
        read_model(tmp_path)


def test_a_folder_without_a_config_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is no model; give a config\.json of Hugging Face"):
        read_model(tmp_path)


def test_pickled_weights_are_refused_with_the_way_out(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(InputError) as refused:
        read_model(tmp_path)
    assert str(refused.value) == (
        f"{tmp_path} holds weights as pickles (pytorch_model.bin), which may run any code and are "
        "not read; save them as safetensors (AutoModelForCausalLM.from_pretrained, then "
        f"save_pretrained), or give {tmp_path / 'config.json'} for weights drawn anew"
    )
    assert read_model(tmp_path / "config.json").weights is None


def test_safetensors_beside_a_config_are_its_weights(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    assert read_model(tmp_path).weights == tmp_path


def test_ranks_are_told_the_weights_by_an_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "llama")
    (tmp_path / "llama" / "model.safetensors").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    model = TrainSettings(1, model=read_model(Path("llama"))).resolved().model
    assert isinstance(model, ConfigModel)
    assert (model.source, model.weights) == (Path("llama"), tmp_path / "llama")


def test_a_missing_package_is_named_with_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EnvironmentProblem) as missing:
        read_model(written(tmp_path))
    assert str(missing.value) == (
        "models and tokenizers of Hugging Face need the transformers package, which is not "
        "installed; install it with: pip install 'serried[models]'"
    )


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"world_size": 3, "tp": 3}, r"tp=3 does not divide the 4 heads of .*; tp can be 1, 2$"),
        ({"world_size": 4, "tp": 4}, "tp=4 does not divide 2 KV heads"),
        ({"world_size": 4, "pp": 4}, "layers=3 cannot fill pp=4 stages; take at least 4 layers"),
        ({"world_size": 2, "cp": 2}, "LlamaForCausalLM brings its own attention, .* which cp wou"),
        ({"world_size": 2, "ep": 2}, "which ep would have to change"),
        ({"world_size": 2, "tp": 2, "sequence_parallel": True}, "which sequence_parallel would"),
        ({"world_size": 1, "recompute": "selective"}, "which recompute selective would"),
        ({"world_size": 1, "dp_style": "buffer"}, "which dp_style buffer would"),
    ],
)
def test_a_run_that_the_model_does_not_fit_is_refused(
    tmp_path: Path, asked: dict[str, Any], said: str
) -> None:
    model = read_model(written(tmp_path))
    with pytest.raises(InputError, match=said):
        TrainSettings(**asked, model=model)
