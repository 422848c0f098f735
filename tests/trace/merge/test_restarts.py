"""Folders of later attempts are merged with the first where they are of its run and its ranks."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from serried.trace.merge.merge import merge
from serried.trace.merge.restarts import with_restarts
from tests.trace.recorded_run import Run

RUN = Run(pp=2)


def test_a_later_attempt_of_the_run_comes_with_its_first(tmp_path: Path) -> None:
    first = RUN.write(tmp_path / "run")
    again = RUN.write(first / "restart-1")
    assert with_restarts([first]) == [first, again]


def test_one_that_is_given_too_comes_once(tmp_path: Path) -> None:
    first = RUN.write(tmp_path / "run")
    again = RUN.write(first / "restart-1")
    assert with_restarts([again, first]) == [again, first]
    roundabout = first / ".." / "run" / "restart-1"
    assert with_restarts([first, roundabout]) == [first, roundabout]


def test_one_of_another_run_or_without_a_recording_is_not_taken(tmp_path: Path) -> None:
    first = RUN.write(tmp_path / "run")
    dataclasses.replace(RUN, name="run-b").write(first / "restart-1")
    (first / "restart-2").mkdir()
    (first / "restart-3").mkdir()
    (first / "restart-3" / "rank-00000.spans").write_bytes(b"cut")
    assert with_restarts([first]) == [first]


def test_a_restart_with_other_ranks_is_named_and_left_out(tmp_path: Path) -> None:
    first = RUN.write(tmp_path / "run")
    again = Run(pp=1).write(first / "restart-1")
    (told,) = (str(each) for each in merge([first]).warnings)
    assert told.startswith(f"the job of {first} was restarted: {again} hold what came after")
