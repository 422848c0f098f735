"""Checkpoints on disk: which are committed, which are whole, and which fit the run at hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from serried.errors import InputError
from serried.runtime.checkpoint.checkpoint import (
    DESCRIPTION,
    METADATA,
    Description,
    committed,
    describe,
    description_of,
    find,
    leftovers,
    require_fits,
    source_of,
    step_folder,
)
from serried.runtime.job.settings import CheckpointSettings, ModelSizes, TrainSettings, Validation

RUN = TrainSettings(world_size=2, model=ModelSizes(layers=2), steps=50)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text"
    path.write_bytes(b"to be or not to be " * 100)
    return path


@pytest.fixture
def run(tmp_path: Path, text: Path) -> TrainSettings:
    return replace(RUN, data=text, checkpoints=CheckpointSettings(tmp_path / "runs"))


def keep(settings: TrainSettings, step: int, *, commit: bool = True) -> Path:
    """Writes what a checkpoint looks like from outside."""
    assert settings.checkpoints.folder
    folder = step_folder(settings.checkpoints.folder, step)
    folder.mkdir(parents=True)
    (folder / "__0_0.distcp").write_bytes(b"tensors")
    description = replace(description_of(settings), step=step, files={"__0_0.distcp": 7})
    description.write(folder)
    if commit:
        (folder / METADATA).touch()
    return folder


def resuming(settings: TrainSettings) -> TrainSettings:
    return replace(settings, checkpoints=replace(settings.checkpoints, resume=True))


def test_a_description_reads_as_it_was_written(run: TrainSettings) -> None:
    folder = keep(run, 40)
    found = describe(folder)
    assert found == replace(description_of(run), step=40, files={"__0_0.distcp": 7})
    require_fits(folder, found, description_of(run), run.steps)


def test_a_folder_without_metadata_was_never_committed(run: TrainSettings) -> None:
    assert run.checkpoints.folder
    older, newer = keep(run, 9), keep(run, 10)
    torn = keep(run, 11, commit=False)
    (run.checkpoints.folder / "notes").mkdir()
    assert committed(run.checkpoints.folder) == [older, newer]
    assert source_of(resuming(run).checkpoints) == newer
    with pytest.raises(InputError) as refused:
        find(torn)
    assert str(refused.value) == (
        f"{torn} is no committed checkpoint: it has no .metadata; the newest beside it that is "
        f"one: {newer}"
    )


def test_halves_that_a_newer_commit_made_useless_are_left_over(run: TrainSettings) -> None:
    assert run.checkpoints.folder
    assert leftovers(run.checkpoints.folder) == []
    half = keep(run, 3, commit=False)
    assert leftovers(run.checkpoints.folder) == []
    keep(run, 4)
    keep(run, 5, commit=False)
    assert leftovers(run.checkpoints.folder) == [half]


def test_a_run_resumes_where_there_is_nothing_by_beginning_anew(run: TrainSettings) -> None:
    assert source_of(resuming(run).checkpoints) is None
    keep(run, 3, commit=False)
    assert source_of(resuming(run).checkpoints) is None


def test_checkpoints_of_another_run_are_not_written_over(run: TrainSettings) -> None:
    keep(run, 40)
    with pytest.raises(InputError) as refused:
        source_of(run.checkpoints)
    assert str(refused.value) == (
        f"{run.checkpoints.folder} already holds checkpoints up to step-000040; add --resume to go "
        "on from it, or choose another folder"
    )


def test_a_run_may_begin_from_another_folder_until_it_has_its_own(
    run: TrainSettings, tmp_path: Path
) -> None:
    other = keep(replace(run, checkpoints=CheckpointSettings(tmp_path / "other")), 7)
    checkpoints = CheckpointSettings(tmp_path / "runs", begin_from=tmp_path / "other", resume=True)
    branch = replace(run, checkpoints=checkpoints)
    assert source_of(branch.checkpoints) == other
    own = keep(run, 9)
    assert source_of(branch.checkpoints) == own


@pytest.mark.parametrize("name", ["", "nowhere", "step-000003"])
def test_what_holds_no_checkpoint_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as refused:
        find(tmp_path / name)
    assert str(refused.value) == (
        f"{tmp_path / name} holds no committed checkpoint, which is a folder such as step-000040 "
        "with .metadata in it; give one, or a folder of them"
    )


@pytest.mark.parametrize(
    ("has_older", "cure"),
    [(True, "remove it to begin from step-000030"), (False, "remove it to begin anew")],
)
def test_a_torn_file_is_named_with_what_to_begin_from(
    run: TrainSettings, has_older: bool, cure: str
) -> None:
    if has_older:
        keep(run, 30)
    folder = keep(run, 40)
    (folder / "__0_0.distcp").write_bytes(b"ten")
    with pytest.raises(InputError) as refused:
        describe(folder)
    assert str(refused.value) == (
        f"{folder} is torn: __0_0.distcp has 3 of the 7 bytes that were written; {cure}"
    )


def test_a_missing_file_is_a_torn_checkpoint(run: TrainSettings) -> None:
    folder = keep(run, 40)
    (folder / "__0_0.distcp").unlink()
    with pytest.raises(InputError, match="has 0 of the 7 bytes that were written"):
        describe(folder)


def _remove(file: Path) -> None:
    file.unlink()


def _cut(file: Path) -> None:
    file.write_text(file.read_text()[:-20])


def _as_list(file: Path) -> None:
    file.write_text("[]")


def _of_another_schema(file: Path) -> None:
    file.write_text(file.read_text().replace("checkpoint/1", "checkpoint/9"))


def _without_step(file: Path) -> None:
    file.write_text(file.read_text().replace('"step": 40', '"pace": 40'))


def _with_words_for_numbers(file: Path) -> None:
    file.write_text(file.read_text().replace('"step": 40', '"step": "forty"'))


@pytest.mark.parametrize(
    "spoil",
    [_remove, _cut, _as_list, _of_another_schema, _without_step, _with_words_for_numbers],
)
def test_a_description_that_says_something_else_is_refused(
    run: TrainSettings, spoil: Callable[[Path], None]
) -> None:
    folder = keep(run, 40)
    spoil(folder / DESCRIPTION)
    with pytest.raises(InputError) as refused:
        describe(folder)
    assert str(refused.value) == (
        f"{folder} is not a checkpoint of this serried: its checkpoint.json is missing or says "
        "something else; remove it to begin anew"
    )


def refusal(settings: TrainSettings, folder: Path, found: Description) -> str:
    with pytest.raises(InputError) as refused:
        require_fits(folder, found, description_of(settings), settings.steps)
    return str(refused.value)


def test_another_model_is_refused_with_both_sizes(run: TrainSettings) -> None:
    folder = keep(run, 40)
    other = replace(run, model=ModelSizes(layers=3, hidden=128))
    assert refusal(other, folder, describe(folder)) == (
        f"{folder} is of another model: it has layers=2, hidden=64, and this run layers=3, "
        "hidden=128; give it the checkpoint's sizes, or another folder"
    )


def test_other_text_is_refused(run: TrainSettings) -> None:
    folder = keep(run, 40)
    other = replace(run, seed=3, validation=Validation(every=1, sequences=2))
    assert refusal(other, folder, describe(folder)) == (
        f"{folder} was trained on other text: it has held_out=0, seed=0, and this run held_out=2, "
        "seed=3; the place it stopped at means nothing there, so give it the same"
    )


def test_a_run_that_is_done_is_told_so(run: TrainSettings) -> None:
    folder = keep(run, 40)
    assert refusal(replace(run, steps=40), folder, describe(folder)) == (
        f"{folder} has done 40 steps, and the run is to end after 40; give more steps, such as "
        "--steps 80"
    )
