"""What several files are together, and under which names their readers find them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from serried.action import ActionKind
from serried.errors import InputError
from serried.trace.formats.reading import read_trace
from serried.trace.merge.files import RUN_MARK
from serried.trace.model.record import RecordHeader
from serried.trace.model.record_writer import RecordWriter
from serried.trace.model.trace import Trace
from serried.trace.store.folder import write_store
from serried.views.web.opening.folder import awaits_ranks, recognised, recognised_as
from serried.views.web.opening.kinds import Kind
from serried.views.web.opening.prepared import prepared
from serried.views.web.opening.staged import staged
from tests.package import ROOT
from tests.trace.alike import differences
from tests.trace.recorded_run import Run
from tests.views.web.opening.samples import FILES, LOG, SCRIPT, TRACES

RUN = Run(pp=2, num_microbatches=2, num_steps=1)


def read_as_found(place: Path, made: Path) -> list[Trace]:
    def folder() -> Path:
        made.mkdir()
        return made

    return [read_trace([each]) for each in staged(place, recognised(place), folder)]


def test_a_script_beside_a_recording_is_left_aside(tmp_path: Path) -> None:
    RUN.write(tmp_path / "run")
    (tmp_path / "run" / "train.sh").write_bytes(SCRIPT)
    found = recognised(tmp_path / "run")
    assert (found.kind, found.tab, found.left) == (Kind.RECORDING, "run", ("train.sh",))


def test_runs_in_folders_of_one_place_are_several(tmp_path: Path) -> None:
    for name in ("a", "b"):
        RUN.write(tmp_path / "runs" / name)
    assert len(read_as_found(tmp_path / "runs", tmp_path / "made")) == 2


def test_recordings_under_other_names_are_read_as_the_ranks_that_they_say(tmp_path: Path) -> None:
    run = RUN.write(tmp_path / "run")
    expected = read_trace([run])
    for number, path in enumerate(sorted(run.glob("rank-*"), reverse=True)):
        path.rename(run / f"{number % 2}-copy{path.suffix}")
    (found,) = read_as_found(run, tmp_path / "made")
    assert differences(found, expected) == []


@pytest.mark.parametrize("name", ["rank-00001.spans", "copy of a rank"])
def test_one_file_of_a_run_is_read_alone_with_its_names(name: str, tmp_path: Path) -> None:
    run = RUN.write(tmp_path / "run")
    own = run / name
    (run / "rank-00001.spans").rename(own)
    own.with_suffix(".names").write_text('"mine"\n')
    (found,) = read_as_found(own, tmp_path / "made")
    assert {*found.ranks} == {1}
    assert "mine" in found.names


def test_a_store_is_known_by_what_it_says_of_itself(tmp_path: Path) -> None:
    write_store(read_trace([RUN.write(tmp_path / "run")]), tmp_path / "store")
    (tmp_path / "store").rename(tmp_path / "Downloads")
    found = recognised(tmp_path / "Downloads")
    assert (found.kind, found.tab) == (Kind.STORE, "run")
    assert len(read_as_found(tmp_path / "Downloads", tmp_path / "made")) == 1


@pytest.mark.parametrize("which", ["kineto", "kineto packed", "chrome", "perfetto", "parquet"])
def test_a_renamed_trace_is_read_all_the_same(which: str, tmp_path: Path) -> None:
    _, name, make = FILES[which]
    data = make(tmp_path)
    (tmp_path / name).write_bytes(data)
    (tmp_path / "copy of it").write_bytes(data)
    (found,) = read_as_found(tmp_path / "copy of it", tmp_path / "staged")
    assert len(found.spans) == len(read_trace([tmp_path / name]).spans)


def test_worker_logs_of_paddle_are_numbered_by_their_names(tmp_path: Path) -> None:
    for number in (0, 1):
        log = TRACES / "paddle" / "single" / f"workerlog.{number}"
        (tmp_path / f"worker {number}.txt").write_bytes(log.read_bytes())
    (found,) = read_as_found(tmp_path, tmp_path.parent / f"{tmp_path.name}-made")
    assert found.job.world_size == 2


def test_dumps_logs_and_stacks_are_one_job_for_a_diagnosis(tmp_path: Path) -> None:
    for which in ("dump", "stacks", "log", "groups"):
        _, name, make = FILES[which]
        (tmp_path / name).write_bytes(make(tmp_path))
    found = recognised(tmp_path)
    assert (found.tab, len(found.names)) == ("diagnose", 4)


def test_of_very_many_files_some_are_looked_at(tmp_path: Path) -> None:
    for number in range(450):
        (tmp_path / f"rank_{number}.log").write_bytes(LOG)
    found = recognised(tmp_path)
    assert (found.kind, len(found.names)) == (Kind.LOG, 450)


def test_what_cannot_be_opened_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "note").write_text("hello\n")
    (tmp_path / "hole").touch()
    with pytest.raises(InputError, match="holds no file that serried opens among its 2"):
        recognised(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty holds no files"):
        recognised(tmp_path / "empty")
    with pytest.raises(InputError, match="none is not there"):
        recognised_as(tmp_path / "none", Kind.LOG)


def test_a_pipe_and_a_link_to_itself_stop_nothing(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_bytes(LOG * 4)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert recognised(tmp_path).names == ("run.log",)


def test_what_only_lies_beside_a_recording_asks_for_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "planned-step.json"
    path.write_text('{"schema": "serried.planned-step/1"}')
    with pytest.raises(InputError, match="json tells nothing by itself; open the folder that it"):
        recognised(path)


def test_the_programs_of_a_package_are_no_trace_that_they_read_and_no_log() -> None:
    package = ROOT / "trace" / "formats"
    with pytest.raises(InputError, match="holds no file that serried opens among its"):
        recognised(package)


def test_a_place_of_mostly_programs_is_diagnosed_where_the_evidence_lies(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"part{number}.py").write_text("import os\n\n\ndef f():\n    pass\n")
    (tmp_path / "out" / "logs").mkdir(parents=True)
    for rank in range(2):
        (tmp_path / "out" / "logs" / f"{rank}.log").write_bytes(LOG * 20)
    ready = prepared(tmp_path, recognised(tmp_path), lambda: tmp_path)
    assert ready.places == (tmp_path / "out" / "logs",)


def test_a_folder_is_a_runs_by_the_mark_of_its_start_or_by_records_without_a_span(
    tmp_path: Path,
) -> None:
    assert not awaits_ranks(tmp_path), "an empty folder may be anybody's"
    (tmp_path / RUN_MARK).touch()
    assert awaits_ranks(tmp_path)
    record = tmp_path / "rank-00000.spans"
    writer = RecordWriter(tmp_path, RecordHeader(run="x", rank=0, job=RUN.job))
    assert awaits_ranks(tmp_path)
    writer.add(ActionKind.F, 10, 20, step=0, stage=0, microbatch=0)
    assert not awaits_ranks(tmp_path)
    writer.close()
    record.write_bytes(b"")
    assert awaits_ranks(tmp_path)
    record.write_bytes(b"something else")
    assert not awaits_ranks(tmp_path), "its reader says what is wrong with it"
