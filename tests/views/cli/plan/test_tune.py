from __future__ import annotations

import pytest

from tests.conftest import Call


@pytest.mark.parametrize("words", [("--emit", "slurm"), ("--explain",), ("--save-dir", "kept")])
def test_options_of_one_training_are_refused(serried: Call, words: tuple[str, ...]) -> None:
    done = serried("tune", "--nproc", "2", *words)
    assert done.code == 2
    assert f"{words[0]} belongs to one training, and tuning runs several" in done.err
