"""Two looks at evidence give the same mark where nothing changed, else another."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from serried.errors import InputError
from serried.views.web.diagnose.evidence_mark import EvidenceMark
from tests.views.web.trace.test_live import Job


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    job = Job(tmp_path / "live")
    job.step(0)
    yield job
    job.close()


def test_a_span_more_and_the_end_of_a_record_change_the_mark(job: Job) -> None:
    mark = EvidenceMark(job.folder)
    mark.look()
    still = mark.look()
    assert mark.look() == still
    job.step(1, 0)
    assert mark.look() != still
    mark.look()
    still = mark.look()
    job.close()
    assert mark.look() != still


def test_a_rank_that_this_process_holds_runs_and_silence_tells_of_it(job: Job) -> None:
    mark = EvidenceMark(job.folder)
    mark.look()
    assert not mark.is_live, "it is looked for once nothing comes"
    mark.look()
    assert mark.is_live
    job.close()
    mark.look()
    assert not mark.is_live


def test_a_file_that_came_or_grew_changes_the_mark(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("x")
    mark = EvidenceMark(tmp_path)
    first = mark.look()
    assert mark.look() == first
    (tmp_path / "a.log").write_text("xy")
    second = mark.look()
    (tmp_path / "b.log").write_text("")
    assert first != second != mark.look()


def test_a_header_that_is_being_written_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "rank-00000.spans").write_bytes(b"")
    assert EvidenceMark(tmp_path).look() == {tmp_path / "rank-00000.spans": None}


def test_a_place_that_is_gone_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "gone"
    place.mkdir()
    mark = EvidenceMark(place)
    mark.look()
    shutil.rmtree(place)
    with pytest.raises(InputError, match="is not there"):
        mark.look()
