"""Documents become tokens once, end to end, and are read back at any place."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serried.errors import InputError
from serried.runtime.job.config_model import ConfigModel
from serried.runtime.job.settings import TrainSettings
from serried.runtime.training import tokens
from serried.runtime.training.tokens import Tokens, require_text

WORDS = ("<eos>", "red", "green", "blue", "<unk>")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tokenizer of five words, one a text ends with, none that pads; and two documents."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: number for number, word in enumerate(WORDS)}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    (tmp_path / "words").mkdir()
    made.save(str(tmp_path / "words" / "tokenizer.json"))
    config = tmp_path / "words" / "tokenizer_config.json"
    config.write_text('{"eos_token": {"content": "<eos>"}}')
    lines = ['{"text": "red green"}', '{"text": "blue blue red"}']
    (tmp_path / "data.jsonl").write_text("\n".join(lines))
    return tmp_path


def made(folder: Path, **asked: Any) -> Tokens:
    asked = {"tokenizer": folder / "words", "cache": folder / "cache"} | asked
    return Tokens.of(folder / "data.jsonl", **asked)


def test_documents_are_packed_and_each_ends_with_the_tokenizer_s_end(folder: Path) -> None:
    found = made(folder)
    assert found.num_tokens == 7
    assert found.batch([0, 2], 5).tolist() == [[1, 2, 0, 3, 3], [0, 3, 3, 1, 0]]


def test_a_tokenizer_may_be_its_file_and_have_no_end(folder: Path) -> None:
    (folder / "words" / "tokenizer_config.json").unlink()
    found = made(folder, tokenizer=folder / "words" / "tokenizer.json")
    assert found.batch([0], 5).tolist() == [[1, 2, 3, 3, 1]]


def test_without_a_tokenizer_a_document_is_its_bytes_and_a_line_break(folder: Path) -> None:
    found = made(folder, tokenizer=None)
    assert bytes(found.batch([0], 24)[0].astype("u1")) == b"red green\nblue blue red\n"
    assert (found.dtype, found.size) == ("u1", 256)


def test_tokens_are_made_once_and_again_when_what_they_are_of_changes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = made(folder)
    with monkeypatch.context() as patched:
        patched.setattr(tokens, "_make", lambda *_: pytest.fail("they were there"))
        assert made(folder) == first
    (folder / "data.jsonl").write_text('{"text": "green"}')
    os.utime(folder / "data.jsonl", ns=(1, 1))
    assert made(folder).num_tokens == 2
    (folder / "words" / "tokenizer_config.json").unlink()
    assert made(folder).num_tokens == 1


def test_nothing_is_left_of_tokens_that_could_not_be_made(folder: Path) -> None:
    (folder / "data.jsonl").write_text('{"text": "red"}\nnothing')
    with pytest.raises(InputError, match="line 2 of"):
        made(folder)
    assert list((folder / "cache").iterdir()) == []


def test_many_pieces_are_the_same_as_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together = made(folder)
    monkeypatch.setattr(tokens, "AT_ONCE", 1)
    apart = made(folder, cache=folder / "other")
    assert np.array_equal(apart.batch([0], 7), together.batch([0], 7))


SETTINGS = TrainSettings(
    1, global_batch_size=1, microbatches=1, model=ConfigModel(vocabulary=5, seq_len=4)
)


def asked(folder: Path, **changes: Any) -> TrainSettings:
    data, tokenizer = folder / "data.jsonl", folder / "words"
    cache = folder / "cache"
    return replace(SETTINGS, data=data, tokenizer=tokenizer, token_cache=cache, **changes)


def test_data_of_one_batch_is_enough(folder: Path) -> None:
    require_text(asked(folder))


def test_data_shorter_than_a_batch_is_refused_with_what_a_batch_takes(folder: Path) -> None:
    with pytest.raises(InputError) as refused:
        require_text(asked(folder, global_batch_size=2))
    assert str(refused.value) == (
        f"{folder / 'data.jsonl'} holds 7 tokens, which are 1 sequences of 4; a global batch of 2 "
        "and 0 held out take 9 tokens; give more text, or a smaller --global-batch-size or "
        "--seq-len"
    )


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_file_holds_no_tokens(folder: Path, content: str) -> None:
    (folder / "data.jsonl").write_text(content)
    with pytest.raises(InputError, match=r"data\.jsonl holds 0 tokens, which are 0 sequences"):
        require_text(asked(folder))


@pytest.mark.parametrize("name", ["data.jsonl", "data.csv"])
def test_a_binary_file_is_refused_by_its_first_bytes(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b'{"text"\0')
    with pytest.raises(InputError, match="is not text: its byte 7 is zero"):
        require_text(replace(asked(folder), data=folder / name))


def test_a_tokenizer_larger_than_the_model_is_refused(folder: Path) -> None:
    small = ConfigModel(vocabulary=4, seq_len=4)
    with pytest.raises(InputError) as refused:
        require_text(asked(folder, model=small))
    assert str(refused.value) == (
        f"{folder / 'words'} has 5 tokens, and the model's embedding 4 rows, so that some would "
        "find none; give the tokenizer that belongs to the model"
    )


def test_bytes_need_a_model_that_knows_all_of_them(folder: Path) -> None:
    with pytest.raises(InputError, match=r"text is 256 kinds of bytes.* 5 rows; give --tokenizer"):
        require_text(replace(asked(folder), tokenizer=None))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("tokenizer.json", "{", "is no tokenizer: .*EOF while parsing"),
        ("tokenizer.json", '{"model": {"type": "other"}}', "is no tokenizer: "),
        ("tokenizer_config.json", "{", "tokenizer_config.json is no JSON: "),
    ],
)
def test_a_damaged_tokenizer_is_refused(folder: Path, name: str, content: str, said: str) -> None:
    (folder / "words" / name).write_text(content)
    with pytest.raises(InputError, match=said):
        made(folder)


def test_what_is_no_tokenizer_is_told_what_would_be(folder: Path) -> None:
    with pytest.raises(InputError, match=r"is no tokenizer; give a tokenizer\.json, or a folder"):
        made(folder, tokenizer=folder)
    (folder / "words" / "tokenizer.json").rename(folder / "words" / "tokenizer.model")
    with pytest.raises(InputError, match=r"has a tokenizer\.model, which is SentencePiece's"):
        made(folder)


def test_serried_s_own_model_takes_no_tokenizer(folder: Path) -> None:
    with pytest.raises(InputError, match=r"reads bytes, so that .*words would do nothing; add --"):
        TrainSettings(1, tokenizer=folder / "words")


def test_the_text_of_a_line_is_json(folder: Path) -> None:
    text = "red \u00e9 \U0001f600"
    (folder / "data.jsonl").write_text(json.dumps({"text": text}))
    found = made(folder, tokenizer=None)
    assert bytes(found.batch([0], found.num_tokens)[0].astype("u1")).decode() == text + "\n"
