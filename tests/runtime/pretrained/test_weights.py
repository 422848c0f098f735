"""Safetensors of a model's folder are what its stages begin with; what does not fit is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from serried.errors import InputError
from serried.runtime.job.config_model import read_model
from serried.runtime.pretrained.build import draw, meta_model
from serried.runtime.pretrained.check import require_trainable
from serried.runtime.pretrained.stage import PretrainedStage
from tests.runtime.pretrained.tiny import written


def saved(folder: Path, kind: str = "llama", *, shard: str = "1GB", **changes: Any) -> Any:
    """Writes a model as transformers does, and returns it."""
    sizes = read_model(written(folder, kind, **changes), seq_len=16)
    model = meta_model(sizes).to_empty(device="cpu")
    draw(model, model, seed=7)
    model.tie_weights()
    model.save_pretrained(folder, max_shard_size=shard)
    return model


def tensors_of(folder: Path) -> tuple[Path, dict[str, torch.Tensor]]:
    file = folder / "model.safetensors"
    return file, load_file(file)


def loaded(folder: Path, num_stages: int = 2) -> dict[str, torch.Tensor]:
    """Returns what all stages together have read, by name."""
    sizes = read_model(folder, seq_len=16)
    require_trainable(sizes, tp=1)
    found: dict[str, torch.Tensor] = {}
    for number in range(num_stages):
        stage = PretrainedStage(sizes, stage=number, num_stages=num_stages)
        stage.draw_weights(0)
        found |= {name: weight.detach() for name, weight in stage.weights()}
    return found


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("llama", {}),
        ("llama", {"shard": "20KB"}),
        ("qwen3", {"tie_word_embeddings": True}),
        ("gpt2", {}),
        ("mixtral", {}),
    ],
)
def test_stages_begin_with_what_transformers_saved(
    tmp_path: Path, kind: str, changes: dict[str, Any]
) -> None:
    model = saved(tmp_path, kind, **changes)
    assert (len(list(tmp_path.glob("*.safetensors"))) > 1) is ("shard" in changes)
    found = loaded(tmp_path)
    for name, parameter in model.named_parameters():
        assert torch.equal(found[name], parameter), name


def test_names_without_the_model_s_prefix_are_found(tmp_path: Path) -> None:
    model = saved(tmp_path, "gpt2")
    file, tensors = tensors_of(tmp_path)
    bare = {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
    save_file(bare | {"h.0.attn.bias": torch.ones(2)}, file)
    found = loaded(tmp_path)
    assert torch.equal(found["transformer.wte.weight"], model.transformer.wte.weight)


def refused(folder: Path) -> str:
    with pytest.raises(InputError) as error:
        loaded(folder)
    return str(error.value)


def test_a_file_cut_short_is_refused_before_any_rank_starts(tmp_path: Path) -> None:
    saved(tmp_path)
    file = tmp_path / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    assert refused(tmp_path).startswith(f"{file} is damaged or cut short: ")


@pytest.mark.parametrize("content", [b"", b"\0" * 64, b"not safetensors at all"])
def test_a_file_of_other_bytes_is_refused(tmp_path: Path, content: bytes) -> None:
    written(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(content)
    assert "is damaged or cut short: " in refused(tmp_path)


def test_missing_and_unexpected_names_are_told(tmp_path: Path) -> None:
    saved(tmp_path)
    file, tensors = tensors_of(tmp_path)
    tensors["model.norm.scale"] = tensors.pop("model.norm.weight")
    save_file(tensors, file)
    assert refused(tmp_path) == (
        f"the weights in {tmp_path} are of another model than its config: 1 missing "
        "(model.norm.weight), 1 unexpected (model.norm.scale); give weights and config of one model"
    )


def test_experts_that_are_missing_are_told_too(tmp_path: Path) -> None:
    saved(tmp_path, "mixtral")
    file, tensors = tensors_of(tmp_path)
    del tensors[next(name for name in tensors if "layers.1" in name and "gate" in name)]
    save_file(tensors, file)
    assert "are of another model than its config: 1 missing (model.layers.1." in refused(tmp_path)


def test_a_weight_of_another_shape_is_refused(tmp_path: Path) -> None:
    saved(tmp_path)
    written(tmp_path, vocab_size=301)
    assert refused(tmp_path) == (
        f"{tmp_path} has model.embed_tokens.weight of shape 300, 32, and the config's model of "
        "301, 32; give weights and config of one model"
    )


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ("{", "is no index of safetensors: it names no files of its folder in weight_map"),
        ('{"weight_map": {"a": "../b.safetensors"}}', "is no index of safetensors"),
        ('{"weight_map": {"a": "b.safetensors"}}', "names files that are not there: b.safetensors"),
    ],
)
def test_a_wrong_index_is_refused(tmp_path: Path, index: str, said: str) -> None:
    saved(tmp_path, shard="20KB")
    (tmp_path / "model.safetensors.index.json").write_text(index)
    assert said in refused(tmp_path)


def test_an_index_that_lacks_a_file_of_the_folder_is_told_by_what_is_missing(
    tmp_path: Path,
) -> None:
    saved(tmp_path, shard="20KB")
    index = tmp_path / "model.safetensors.index.json"
    read = json.loads(index.read_text())
    first = next(iter(read["weight_map"].values()))
    kept = {name: file for name, file in read["weight_map"].items() if file == first}
    index.write_text(json.dumps({"weight_map": kept}))
    assert "are of another model than its config: " in refused(tmp_path)
