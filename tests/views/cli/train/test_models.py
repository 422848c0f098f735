"""``serried train --model``: from a config and a table of documents to a model that others load."""

from __future__ import annotations

import csv
import importlib.util
import json
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from serried.runtime.training.tokens import Tokens
from tests.conftest import Call
from tests.runtime.pretrained.tiny import written

SIZES = ("--seq-len", "24", "--global-batch-size", "4", "--microbatches", "2", "--device", "cpu")


@pytest.fixture(autouse=True)
def outside_torchrun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "notes.csv"
    with file.open("w", newline="") as opened:
        rows = csv.writer(opened)
        rows.writerow(["id", "body"])
        rows.writerows([number, f"rank {number} of a group\nof ranks"] for number in range(60))
    return file


def test_a_run_from_documents_to_a_model_that_transformers_reads(
    serried: Call, tmp_path: Path, data: Path
) -> None:
    model, log, out = written(tmp_path, "qwen3"), tmp_path / "log.jsonl", tmp_path / "out"
    done = serried(
        *("train", "--model", str(model), "--data", str(data), "--text-key", "body", *SIZES),
        *("--pp", "2", "--nproc", "2", "--steps", "2", "--log-file", str(log)),
        *("--validate-every", "2", "--validate-sequences", "3", "--trace-dir", str(tmp_path / "t")),
        *("--save-dir", str(tmp_path / "runs"), "--export", str(out / "model.safetensors")),
        "--explain",
    )
    assert (done.code, "model.embed_tokens model.layers.0" in done.out) == (0, True), done.err
    assert "rank  stage  parameters  gradients  optimizer\n" in done.out
    assert "memory is not planned here: what layers of transformers keep for back" in done.out
    assert "held out tokens" in done.err
    told = [json.loads(line) for line in log.read_text().splitlines()]
    validated = next(line for line in told if line.get("event") == "validated")
    assert validated["tokens"] == 3 * 24
    assert validated["loss"] == pytest.approx(held_out_loss(out, data, tmp_path), abs=1e-5)
    assert serried("trace", "stats", str(tmp_path / "t")).code == 0


def held_out_loss(folder: Path, data: Path, home: Path) -> float:
    """Returns the loss of the exported model on the text's end, by transformers alone."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder)
    text = Tokens.of(data, key="body", cache=home / "cache" / "serried" / "tokens")
    places = range(text.num_tokens - 1 - 3 * 24, text.num_tokens - 1, 24)
    rows = torch.from_numpy(text.batch(places, 25)).long()
    with torch.no_grad():
        scores = model(rows[:, :-1]).logits
    return functional.cross_entropy(scores.flatten(0, 1), rows[:, 1:].flatten()).item()


def test_sizes_beside_a_config_are_refused(serried: Call, tmp_path: Path) -> None:
    model = str(written(tmp_path))
    done = serried("train", "--model", model, "--layers", "4")
    assert (done.code, done.err) == (
        2,
        f"serried: --layers is a size of serried's own model, and {model} says what its model is; "
        "leave out --layers, or write a config.json with another\n",
    )


def test_data_without_the_key_names_the_columns(serried: Call, tmp_path: Path, data: Path) -> None:
    done = serried("train", "--model", str(written(tmp_path)), "--data", str(data), *SIZES)
    assert (done.code, done.err) == (
        2,
        f"serried: {data} has no column 'text'; its columns: id, body; name one with --text-key\n",
    )


def test_a_missing_extra_is_an_environment_problem(
    serried: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = str(written(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    done = serried("train", "--model", model)
    assert (done.code, "install it with: pip install 'serried[models]'" in done.err) == (3, True)


def test_a_job_for_a_cluster_is_checked_and_printed(serried: Call, tmp_path: Path) -> None:
    model = str(written(tmp_path))
    emit = ("--emit", "torchrun", "--nodes", "2", "--gpus-per-node", "4")
    done = serried("train", "--model", model, "--seq-len", "32", "--tp", "2", *emit)
    assert (done.code, f"--model {model}" in done.out) == (0, True), done.err
    refused = serried("train", "--model", model, "--seq-len", "32", "--tp", "8", *emit)
    assert (refused.code, "does not divide the 4 heads" in refused.err) == (2, True)
