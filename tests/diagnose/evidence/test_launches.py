"""Of a folder with the logs of several launches the last one is read, and that is said."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from serried.diagnose.diagnosis import CauseClass
from serried.diagnose.evidence.launches import LastLaunch, last_launch
from serried.diagnose.gather import files_of, gather
from serried.diagnose.reason import diagnosed
from serried.finding import Sentence

DAY_S = 86_400.0
OUT_OF_MEMORY = "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
WAITED = (
    "[rank{rank}]: RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting "
    "6000ms for recv operation to complete\n"
)


def _launch(logs: Path, run: str, said: Sequence[str], begin: float, end: float) -> None:
    """Writes what torchrun keeps of one node: a folder for each rank, made at ``begin``."""
    for rank, text in enumerate(said):
        file = logs / run / "attempt_0" / str(rank) / "stderr.log"
        file.parent.mkdir(parents=True)
        file.write_text(text)
        os.utime(file, (end, end))
    os.utime(logs / run, (begin, begin))


def _read(logs: Path) -> LastLaunch:
    return last_launch(logs, files_of(logs))


def _runs(found: LastLaunch, logs: Path) -> set[str]:
    return {file.relative_to(logs).parts[0] for file in found.files}


def _words(notes: Sequence[Sentence]) -> str:
    return " ".join(str(note) for note in notes)


def test_the_cause_of_an_earlier_launch_is_not_that_of_the_last(tmp_path: Path) -> None:
    waited = [WAITED.format(rank=0), "", WAITED.format(rank=2)]
    _launch(tmp_path, "monday_aaaaaaaa", ["", "", OUT_OF_MEMORY], 0, 100)
    _launch(tmp_path, "today_bbbbbbbb", waited, DAY_S, DAY_S + 60)
    answer = diagnosed(gather([tmp_path]))
    assert answer.cause_class is not CauseClass.GPU_OOM
    assert "today_bbbbbbbb, written last" in _words(answer.notes)
    assert "monday_aaaaaaaa" in _words(answer.notes)


def test_folders_of_one_id_are_nodes_of_one_launch(tmp_path: Path) -> None:
    _launch(tmp_path, "none_aaaaaaaa", [WAITED.format(rank=0)], 0, 100)
    _launch(tmp_path, "none_bbbbbbbb", [WAITED.format(rank=1)], 4, 130)
    assert _read(tmp_path).notes == ()
    assert _runs(_read(tmp_path), tmp_path) == {"none_aaaaaaaa", "none_bbbbbbbb"}


def test_a_rank_that_speaks_in_two_folders_of_one_id_parts_them(tmp_path: Path) -> None:
    _launch(tmp_path, "none_aaaaaaaa", ["", OUT_OF_MEMORY], 0, 100)
    _launch(tmp_path, "none_bbbbbbbb", ["", OUT_OF_MEMORY], 103, 130)
    assert _runs(_read(tmp_path), tmp_path) == {"none_bbbbbbbb"}


def test_a_quiet_folder_made_after_another_was_written_is_a_launch(tmp_path: Path) -> None:
    _launch(tmp_path, "none_bbbbbbbb", ["", OUT_OF_MEMORY], 0, 100)
    _launch(tmp_path, "none_aaaaaaaa", ["", "waiting for data\n"], 200, 230)
    assert _runs(_read(tmp_path), tmp_path) == {"none_aaaaaaaa"}


def test_a_quiet_node_goes_with_the_launch_that_ended_with_it(tmp_path: Path) -> None:
    _launch(tmp_path, "none_aaaaaaaa", ["", OUT_OF_MEMORY], 0, 100)
    _launch(tmp_path, "none_bbbbbbbb", ["quiet\n"], 2, 101)
    _launch(tmp_path, "none_cccccccc", ["", OUT_OF_MEMORY], 101, 300)
    _launch(tmp_path, "none_dddddddd", ["quiet\n"], 101, 299)
    assert _runs(_read(tmp_path), tmp_path) == {"none_cccccccc", "none_dddddddd"}


def test_copied_files_tell_no_order_and_all_are_read(tmp_path: Path) -> None:
    _launch(tmp_path, "monday_aaaaaaaa", ["", OUT_OF_MEMORY], 0, 0.5)
    _launch(tmp_path, "today_bbbbbbbb", [WAITED.format(rank=0)], 0.5, 1)
    found = _read(tmp_path)
    assert len(found.files) == 3
    assert "none is the last" in _words(found.notes)


def test_of_launches_that_ran_at_once_none_is_the_last(tmp_path: Path) -> None:
    _launch(tmp_path, "one_aaaaaaaa", ["", OUT_OF_MEMORY], 0, 100)
    _launch(tmp_path, "other_bbbbbbbb", [WAITED.format(rank=0)], 50, 300)
    found = _read(tmp_path)
    assert len(found.files) == 3
    assert "none is the last" in _words(found.notes)


def test_of_jobs_of_slurm_the_one_written_last_is_read(tmp_path: Path) -> None:
    for time, name in enumerate(("slurm-4711.out", "slurm-4712.err", "slurm-4712.out", "job.log")):
        (tmp_path / name).write_text("x\n")
        os.utime(tmp_path / name, (time * DAY_S, time * DAY_S))
    found = _read(tmp_path)
    assert [file.name for file in found.files] == ["job.log", "slurm-4712.err", "slurm-4712.out"]
    assert "slurm-4712, written last" in _words(found.notes)


def test_a_launch_that_is_named_itself_is_read(tmp_path: Path) -> None:
    _launch(tmp_path, "monday_aaaaaaaa", ["", "", OUT_OF_MEMORY], 0, 100)
    _launch(tmp_path, "today_bbbbbbbb", ["", "", ""], DAY_S, DAY_S + 60)
    answer = diagnosed(gather([tmp_path / "monday_aaaaaaaa"]))
    assert (answer.cause_class, answer.notes) == (CauseClass.GPU_OOM, ())
