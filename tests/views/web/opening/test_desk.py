"""Things are opened one after another behind the page: offered once read, told, cancelled."""

from __future__ import annotations

import threading
from pathlib import Path, PurePosixPath

import pytest

from serried.errors import InputError
from serried.finding import Sentence
from serried.limits import UPLOAD_BYTES
from serried.plan.catalog import model_asked
from serried.trace.formats.reading import read_trace
from serried.trace.merge.files import RUN_MARK
from serried.trace.model.progress import unheard
from serried.views.web.opening import apart, reading
from serried.views.web.opening import desk as opening_desk
from serried.views.web.opening.apart import ReaderProcess
from serried.views.web.opening.desk import OpeningDesk
from serried.views.web.opening.folder import recognised_as
from serried.views.web.opening.kinds import TABS, Kind
from serried.views.web.plan.models import resolved
from serried.views.web.trace.findings import findings_answer
from serried.views.web.wire.coming import Coming
from tests.trace.alike import differences
from tests.trace.recorded_run import Run
from tests.views.web.opening.samples import FILES

RUN = Run(pp=2, num_microbatches=2, num_steps=1)
WAIT_S = 60.0
ALONE = sorted(FILES.keys() - {"recording"})
"""Files that are all that there is to read of their kind."""


@pytest.mark.parametrize("which", ALONE)
def test_a_file_of_every_kind_is_opened_under_a_name_of_no_meaning(
    which: str, tmp_path: Path
) -> None:
    kind, _, make = FILES[which]
    (tmp_path / "download").write_bytes(make(tmp_path))
    desk = OpeningDesk()
    opening = desk.open(tmp_path / "download")
    assert desk.settle(WAIT_S)
    told = opening.document()
    assert (told["state"], told["error"], told["kind"]) == ("done", None, kind)
    if TABS[kind] == "run":
        assert told["trace"] == 0 and len(desk.traces) == 1
    elif TABS[kind] == "diagnose":
        assert told["case"] == "download" and len(desk.cases) == 1
    elif kind is Kind.CHECK:
        assert told["check"] == 0
    else:
        assert told["question"] or told["files"] == ["download"]
    if kind is Kind.MODEL:
        assert model_asked(resolved(told["question"])["model"]).layers == 4
    desk.close()


@pytest.mark.parametrize("which", ["paddle log", "kineto", "chrome"])
def test_a_trace_that_was_dropped_is_called_by_its_own_name(which: str, tmp_path: Path) -> None:
    _, name, make = FILES[which]
    desk = OpeningDesk()
    copy = desk.folder() / name
    copy.write_bytes(make(tmp_path))
    opening = desk.open(copy, name)
    assert desk.settle(WAIT_S)
    assert opening.problem is None
    (trace,) = desk.traces
    assert trace.trace.run == opening.found_at["run"]
    assert copy.parent.name not in trace.trace.run, "a link to it is to nothing the next time"
    told = findings_answer(trace)
    assert str(copy.parent.parent) not in str(told), "a command names a copy that goes"
    desk.close()


@pytest.mark.parametrize("which", ["parquet", "nsight", "check", "plan", "diagnosis"])
def test_a_file_that_breaks_off_fails_with_one_sentence_in_both_languages(
    which: str, tmp_path: Path
) -> None:
    data = FILES[which][2](tmp_path)
    (tmp_path / "cut").write_bytes(data[: len(data) // 2])
    desk = OpeningDesk()
    told = desk.open(tmp_path / "cut")
    assert desk.settle(WAIT_S)
    document = told.document()
    assert document["state"] == "failed", document
    assert "cut" in document["error"]["en"] and document["error"]["zh"] != document["error"]["en"]
    assert not (desk.traces or desk.checks or desk.cases)
    desk.close()


def test_a_damaged_recording_is_called_by_the_name_that_was_dropped(tmp_path: Path) -> None:
    desk = OpeningDesk()
    copy = desk.folder() / "mine.spans"
    data = next(RUN.write(tmp_path / "run").glob("*.spans")).read_bytes()
    copy.write_bytes(data[:40] + b"?" * 20 + data[60:])
    told = desk.open(copy, "mine.spans")
    assert desk.settle(WAIT_S)
    assert str(told.problem) == "the header of mine.spans cannot be read"
    desk.close()


def test_the_reading_of_a_large_file_is_told_by_the_name_that_was_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serried.trace.formats.reading.LARGE_BYTES", 1)
    heard: list[object] = []
    desk = OpeningDesk(tell=heard.append)
    copy = desk.folder() / "mine.spans"
    copy.write_bytes(next(RUN.write(tmp_path / "run").glob("*.spans")).read_bytes())
    desk.open(copy, "mine.spans")
    assert desk.settle(WAIT_S)
    assert str(heard[0]).startswith("reading mine.spans, ")
    desk.close()


def test_the_terminal_hears_what_the_page_is_told(tmp_path: Path) -> None:
    heard: list[object] = []
    (tmp_path / "note").write_text("hello\n")
    desk = OpeningDesk(tell=heard.append)
    opening = desk.open(tmp_path / "note")
    assert desk.settle(WAIT_S)
    assert heard == [opening.problem]


def test_what_is_large_is_read_in_a_process_of_its_own_and_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "APART_BYTES", 1)
    folder = RUN.write(tmp_path / "run")
    desk = OpeningDesk()
    desk.open(folder)
    assert desk.settle(WAIT_S)
    assert differences(desk.traces[0].trace, read_trace([folder])) == []
    with pytest.raises(InputError) as expected:
        read_trace([tmp_path])
    with pytest.raises(InputError) as found:
        ReaderProcess(Kind.RECORDING, [tmp_path], "x").read(unheard)
    assert str(found.value) == str(expected.value)


def test_a_process_that_is_cancelled_ends_and_the_next_thing_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "APART_BYTES", 1)
    begun = threading.Event()
    read = ReaderProcess.read

    def stopped_first(self: ReaderProcess, listener: object) -> object:
        begun.set()
        assert may_go_on.wait(WAIT_S)
        return read(self, unheard)

    may_go_on = threading.Event()
    monkeypatch.setattr(ReaderProcess, "read", stopped_first)
    desk = OpeningDesk()
    first, second = (desk.open(RUN.write(tmp_path / name)) for name in ("a", "b"))
    assert begun.wait(WAIT_S)
    desk.cancel(first.number)
    may_go_on.set()
    assert desk.settle(WAIT_S)
    assert (first.state, second.state, len(desk.traces)) == ("cancelled", "done", 1)


def test_a_page_hears_of_each_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_go_on = threading.Event()
    monkeypatch.setattr(reading, "read_recording", lambda *_, **__: may_go_on.wait(WAIT_S))
    desk = OpeningDesk()
    version = desk.version
    desk.open(RUN.write(tmp_path / "a"))
    assert desk.wait(version, WAIT_S) != version
    assert [each.name for each in desk.reading] == ["a"]
    may_go_on.set()
    assert desk.settle(WAIT_S)
    with pytest.raises(InputError, match="nothing was opened under number 7; 1 were"):
        desk.cancel(7)


def test_a_trace_that_vanishes_before_it_is_read_is_one_sentence(tmp_path: Path) -> None:
    desk = OpeningDesk()
    opening = desk.open(tmp_path / "gone")
    assert desk.settle(WAIT_S)
    assert str(opening.problem) == f"{tmp_path / 'gone'} is not there"


def test_copies_go_with_the_desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    desk = OpeningDesk()
    (desk.folder() / "x").write_bytes(b"123")
    desk.close()
    assert list(tmp_path.iterdir()) == []


def test_drops_that_come_at_once_share_the_room_for_copies() -> None:
    desk, half = OpeningDesk(), UPLOAD_BYTES.most // 2 + 1
    of_half = Coming("big", ((PurePosixPath("big"), half),))
    first, second = desk.folder(), desk.folder()
    desk.make_room(first, of_half)
    with pytest.raises(InputError, match="drops take at most 4096 MB"):
        desk.make_room(second, of_half)
    desk.drop(first)
    desk.make_room(second, of_half)
    assert (desk.copied_bytes, first.exists()) == (half, False)
    desk.close()


def test_two_diagnoses_of_one_name_are_told_apart(tmp_path: Path) -> None:
    desk = OpeningDesk()
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "run.log").write_bytes(FILES["log"][2](tmp_path))
        desk.open(tmp_path / folder / "run.log")
    assert desk.settle(WAIT_S)
    assert [case.name for case in desk.cases] == ["run.log", "run.log (2)"]


def test_what_is_said_is_a_sentence(tmp_path: Path) -> None:
    desk = OpeningDesk()
    opening = desk.open(tmp_path)
    opening.sentence = Sentence("reading {paths}, {size}", {"paths": "x", "size": "1 GB"})
    told = opening.document()["said"]
    assert told["en"] == "reading x, 1 GB" and told["zh"] != told["en"]


def test_a_run_whose_ranks_have_recorded_nothing_yet_is_opened_once_they_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening_desk, "AGAIN_S", 0.01)
    (tmp_path / RUN_MARK).touch()
    heard: list[object] = []
    desk = OpeningDesk(tell=heard.append, waits=True)
    opening = desk.open(tmp_path, found=recognised_as(tmp_path, None))
    other = desk.open(Path(__file__).with_name("absent"))
    assert not desk.settle(0.2)
    assert (other.state, opening.state, opening.tab) == ("failed", "reading", "run")
    assert "no rank of" in opening.document()["said"]["en"]
    RUN.write(tmp_path)
    assert desk.settle(WAIT_S)
    assert (opening.state, len(desk.traces)) == ("done", 1)
    assert len([each for each in heard if "no rank of" in str(each)]) == 1, "said once"


def test_a_run_that_is_waited_for_can_be_cancelled(tmp_path: Path) -> None:
    (tmp_path / RUN_MARK).touch()
    desk = OpeningDesk(waits=True)
    desk.open(tmp_path, found=recognised_as(tmp_path, None))
    desk.close()
    assert desk.settle(WAIT_S)
