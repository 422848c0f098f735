"""Which bytes a sample is: a pure function of seed, step and number, over real files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from serried.errors import InputError
from serried.runtime.data import Corpus


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
    whole = corpus.sample(seed=0, step=0, index=0, length=10)
    assert bytes(whole) == b"abcdefghij"


def test_samples_are_found_anywhere_in_the_text_and_only_there(folder: Path) -> None:
    corpus = Corpus.of(folder)
    found = {bytes(corpus.sample(seed=0, step=0, index=i, length=4)) for i in range(200)}
    assert found == {b"abcdefghij"[i : i + 4] for i in range(7)}


def test_a_batch_is_the_same_however_ranks_cut_it(folder: Path) -> None:
    corpus = Corpus.of(folder)

    def batch(samples: range) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        return corpus.batch(seed=3, step=7, samples=samples, length=5)

    parts = [batch(range(0, 3)), batch(range(3, 4)), batch(range(4, 8))]
    np.testing.assert_array_equal(np.concatenate(parts), batch(range(8)))


def test_seed_step_and_number_each_pick_other_samples() -> None:
    corpus = Corpus.of(None)

    def place(seed: int, step: int, index: int) -> bytes:
        return bytes(corpus.sample(seed=seed, step=step, index=index, length=64))

    keys = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    assert len({place(*key) for key in keys}) == len(keys)
    assert [place(*key) for key in keys] == [place(*key) for key in keys]


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
        corpus.sample(seed=0, step=0, index=0, length=10)
    assert str(refused.value) == (
        f"{folder}/sub/c.txt cannot be read any more: No such file or directory"
    )


def test_a_file_that_is_cut_during_a_run_is_named(folder: Path) -> None:
    corpus = Corpus.of(folder)
    (folder / "sub" / "c.txt").write_bytes(b"de")
    with pytest.raises(InputError) as refused:
        corpus.sample(seed=0, step=0, index=0, length=10)
    assert str(refused.value) == f"{folder}/sub/c.txt became shorter during the run"
