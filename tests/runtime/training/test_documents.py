"""Documents come out of tables and lines as they stand there; what is broken is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from serried.errors import InputError
from serried.runtime.training.documents import documents


def read(file: Path, key: str = "text") -> list[str]:
    return [text for text, _ in documents(file, key)]


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_row_s_cell_is_a_document_with_its_line_breaks(tmp_path: Path) -> None:
    file = written(tmp_path / "a.csv", 'id,text\n1,"two\nlines, one cell"\n2,next\n')
    assert list(documents(file, "text")) == [("two\nlines, one cell", True), ("next", True)]


def test_a_tsv_is_parted_by_tabs(tmp_path: Path) -> None:
    file = written(tmp_path / "a.tsv", "id\tbody\n1\ta, b\n")
    assert read(file, "body") == ["a, b"]


def test_a_line_s_key_is_a_document_and_empty_lines_are_none(tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", '{"text": "one", "id": 1}\n\n{"text": "zwei \u00e9"}\n')
    assert read(file) == ["one", "zwei \u00e9"]


def test_a_long_text_is_one_document_in_pieces_that_end_with_lines(tmp_path: Path) -> None:
    line = "x" * 999 + "\n"
    file = written(tmp_path / "a.txt", line * 3000)
    pieces = list(documents(file, "text"))
    assert "".join(text for text, _ in pieces) == line * 3000
    assert len(pieces) == 4 and all(text.endswith("\n") for text, _ in pieces[:-1])
    assert [is_end for _, is_end in pieces] == [False, False, False, True]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "id,body\n1,x\n", "has no column 'text'; its columns: id, body; name one with"),
        ("a.csv", "text,id\na,1\n\n", None),
        ("a.csv", "id,text\n1,x\n2\n", "line 3 of {path} has 1 columns, and 'text' is number 2"),
        ("a.jsonl", '{"body": "x"}\n', "has no text under 'text'; its keys: body; name one with"),
        ("a.jsonl", '{"text": 3}\n', "line 1 of {path} has no text under 'text'"),
        ("a.jsonl", '{"text": "x"}\n{"te', "line 2 of {path} is no JSON object"),
        ("a.jsonl", "[" * 100_000, "line 1 of {path} is no JSON object"),
        ("a.txt", b"caf\xe9", "{path} is not text in UTF-8: unexpected end of data; save it as"),
    ],
)
def test_what_is_broken_is_told_with_its_place(
    tmp_path: Path, name: str, content: str | bytes, said: str | None
) -> None:
    file = written(tmp_path / name, content)
    if said is None:
        assert read(file) == ["a"]
        return
    with pytest.raises(InputError) as refused:
        read(file)
    assert said.format(path=file) in str(refused.value)
