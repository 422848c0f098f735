"""What a run keeps and is measured on: options that would do nothing are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from serried.errors import InputError
from serried.runtime.job.settings import CheckpointSettings, Emulated, TrainSettings, Validation


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("save_every", {"every": 5}),
        ("keep", {"last": 2}),
        ("resume", {"resume": True}),
        ("export", {"export": Path("model.safetensors")}),
    ],
)
def test_what_needs_a_folder_says_so(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refused:
        CheckpointSettings(**options)
    assert str(refused.value) == (
        f"{name} needs a folder of checkpoints; name one with save_dir, such as --save-dir runs/a"
    )


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: CheckpointSettings(Path("a"), every=-1), "save_every=-1; it is zero or more"),
        (lambda: CheckpointSettings(Path("a"), last=0), "keep=0; it is at least 1"),
        (lambda: Validation(every=-1), "validate_every=-1; it is zero or more"),
        (lambda: Validation(sequences=0), "validate_sequences=0; it is at least 1"),
    ],
)
def test_counts_that_cannot_be_are_refused(make: Any, sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        make()
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("validate_every", {"validation": Validation(every=1)}),
        ("save_dir", {"checkpoints": CheckpointSettings(Path("a"))}),
        ("load", {"checkpoints": CheckpointSettings(begin_from=Path("a"))}),
    ],
)
def test_emulated_compute_has_nothing_to_keep(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"so {name} would show nothing"):
        TrainSettings(world_size=1, emulated=Emulated(), **options)


def test_paths_are_absolute_for_ranks_that_start_elsewhere() -> None:
    checkpoints = CheckpointSettings(Path("a"), begin_from=Path("b"), export=Path("c"))
    found = TrainSettings(world_size=1, checkpoints=checkpoints).resolved().checkpoints
    here = Path.cwd()
    assert (found.folder, found.begin_from, found.export) == (here / "a", here / "b", here / "c")
