"""Recordings are found among a user's files, and what cannot be read is said and no obstacle."""

from __future__ import annotations

from pathlib import Path

from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed
from serried.diagnose.steps.recording import recordings_in
from serried.trace.model.trace import Trace
from tests.trace.recorded_run import Run


def test_records_below_a_folder_are_one_recording_beside_its_logs(tmp_path: Path) -> None:
    Run(num_steps=4).write(tmp_path / "run" / "trace")
    (tmp_path / "run" / "console.log").write_text("hello\n")

    evidence = gather([tmp_path])

    (recording,) = evidence.recordings
    assert isinstance(recording, Trace)
    assert recording.ranks == (0, 1, 2, 3)
    assert evidence.num_lines == 1
    assert not diagnosed(evidence).found


def test_records_named_one_by_one_are_their_folder(tmp_path: Path) -> None:
    folder = Run(num_steps=1).write(tmp_path / "run")
    found = recordings_in(sorted(folder.glob("*.spans")))
    assert [each.run for each in found.recordings if isinstance(each, Trace)] == ["run-a"]
    assert {each.name for each in found.files} >= {f"rank-0000{rank}.spans" for rank in range(4)}


def test_a_damaged_recording_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "rank-00000.spans").write_bytes(b"serried\x01 and then nothing")
    (tmp_path / "a.log").write_text("[rank1]: hello\n")

    evidence = gather([tmp_path])

    assert evidence.recordings == ()
    assert "was not read" in str(evidence.notes[0])
    assert evidence.num_lines > 0


def test_json_that_holds_no_events_is_no_recording(tmp_path: Path) -> None:
    (tmp_path / "fr_trace_0.json").write_text('{"entries": [], "version": "2.10"}')
    assert recordings_in([tmp_path]).recordings == ()


def test_of_ranks_that_never_closed_their_records_it_is_said(tmp_path: Path) -> None:
    whole = Run(num_steps=4).write(tmp_path / "whole")
    killed = Run(num_steps=4).write(tmp_path / "killed")
    file = killed / "rank-00002.spans"
    file.write_bytes(file.read_bytes()[:-40])  # within its last span

    assert gather([whole]).notes == ()
    (note,) = gather([killed]).notes
    assert str(note).startswith("rank 2 never closed the recording")
    (killed / "console.log").write_text("Out of memory: Killed process 7 (python)\n")
    assert gather([killed]).notes == ()
