"""The bytes of real files, read where they are asked for; what is no text is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from serried.errors import InputError
from serried.runtime.training.data import Corpus


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of three files, one empty, that together read abcdefghij."""
    (tmp_path / "a.txt").write_bytes(b"abc")
    (tmp_path / "b.txt").write_bytes(b"")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c.txt").write_bytes(b"defghij")
    return tmp_path


def test_a_folder_reads_as_its_files_end_to_end_in_sorted_order(folder: Path) -> None:
    corpus = Corpus.of(folder)
    assert corpus.num_bytes == 10
    assert bytes(corpus.read(0, 10)) == b"abcdefghij"


def test_any_bytes_are_read_over_the_ends_of_files(folder: Path) -> None:
    corpus = Corpus.of(folder)
    batch = corpus.batch(range(7), 4)
    assert [bytes(row) for row in batch] == [b"abcdefghij"[i : i + 4] for i in range(7)]


def test_what_is_held_out_is_no_sample(folder: Path) -> None:
    corpus = Corpus.of(folder)
    order = corpus.order(seq_len=2, seed=0, held_out=3)
    assert {order.place(number) for number in range(100)} == {0, 1}
    assert corpus.order(seq_len=2, seed=0).num_sequences == 4


def test_the_default_text_is_the_standard_library_s_own_source() -> None:
    corpus = Corpus.of(None)
    names = [file.name for file in corpus.files]
    assert {"ast.py", "zipfile.py"} & set(names) and names == sorted(names)
    assert corpus.num_bytes > 1_000_000


def test_missing_data_is_named() -> None:
    with pytest.raises(InputError) as refused:
        Corpus.of(Path("/nowhere/text"))
    assert str(refused.value) == (
        "/nowhere/text does not exist; data is a file or a folder of text"
    )


@pytest.mark.parametrize("size", [100, 1 << 40])
def test_a_binary_file_is_refused_by_its_first_bytes(tmp_path: Path, size: int) -> None:
    path = tmp_path / "weights.bin"
    with path.open("wb") as file:
        file.write(b"PK\x03\x04\x00")
        file.truncate(size)  # a hole: nothing is written, and nothing of it may be read
    with pytest.raises(InputError) as refused:
        Corpus.of(path)
    assert str(refused.value) == (
        f"{path} is not text: its byte 4 is zero; data is a file of text, or a folder whose "
        "binary files are passed over"
    )


def test_binary_files_of_a_folder_are_passed_over(folder: Path) -> None:
    (folder / "b.png").write_bytes(b"\x89PNG\x00")
    assert [file.name for file in Corpus.of(folder).files] == ["a.txt", "b.txt", "c.txt"]


def test_what_is_no_file_is_refused() -> None:
    with pytest.raises(InputError) as refused:
        Corpus.of(Path("/dev/zero"))
    assert str(refused.value) == (
        "/dev/zero is neither a file nor a folder; data is a file or a folder of text"
    )


def test_a_file_that_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "text"
    path.write_text("to be")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")  # which root, who may run this, never gets

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError) as refused:
        Corpus.of(path)
    assert str(refused.value) == f"{path} cannot be read: Permission denied"


def test_too_much_held_out_is_refused_with_what_fits(folder: Path) -> None:
    corpus = Corpus.of(folder)
    corpus.require(2, folder, held_out=3)
    with pytest.raises(InputError) as refused:
        corpus.require(2, folder, held_out=4)
    assert str(refused.value) == (
        f"{folder} holds 10 bytes of text; 4 sequences of 2 for validation, and one to train on, "
        "take 11; hold out at most 3"
    )


def test_text_shorter_than_a_sequence_is_refused_with_what_it_takes(folder: Path) -> None:
    corpus = Corpus.of(folder)
    corpus.require(9, folder)
    with pytest.raises(InputError) as refused:
        corpus.require(10, folder)
    assert str(refused.value) == (f"{folder} holds 10 bytes of text; a sequence of 10 takes 11")


def test_an_empty_folder_holds_no_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds 0 bytes of text; a sequence of 64 takes 65"):
        Corpus.of(tmp_path).require(64, tmp_path)


def test_a_file_that_goes_away_during_a_run_is_named(folder: Path) -> None:
    corpus = Corpus.of(folder)
    (folder / "sub" / "c.txt").unlink()
    with pytest.raises(InputError) as refused:
        corpus.read(0, 10)
    assert str(refused.value) == (
        f"{folder}/sub/c.txt cannot be read any more: No such file or directory"
    )


def test_a_file_that_is_cut_during_a_run_is_named(folder: Path) -> None:
    corpus = Corpus.of(folder)
    (folder / "sub" / "c.txt").write_bytes(b"de")
    with pytest.raises(InputError) as refused:
        corpus.read(0, 10)
    assert str(refused.value) == f"{folder}/sub/c.txt became shorter during the run"
