"""Clocks of two hosts that are wrong: whose they are is not blamed, and what was found is noted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from serried.diagnose.diagnosis import Diagnosis
from serried.diagnose.gathered import Evidence
from serried.diagnose.reason import diagnosed
from serried.diagnose.steps.clocks import clock_notes
from serried.diagnose.steps.recording import Recording
from serried.trace.formats.reading import read_trace
from serried.trace.model.trace import AlignedClock
from tests.diagnose.stragglers.layout_runs import Sized, layout_run
from tests.diagnose.stragglers.test_of_profile import profiled
from tests.diagnose.stragglers.written_runs import Off, written

MS, HOUR = 10**6, 3600 * 10**9
CLOCKS = [Off(3 * MS), Off(HOUR), Off(-5 * HOUR, drift=1e-4), Off(drift=1e-4)]


def diagnosed_of(*recordings: Recording) -> Diagnosis:
    return diagnosed(Evidence(recordings=recordings))


@pytest.mark.parametrize("off", CLOCKS, ids=str)
@pytest.mark.parametrize("sized", [Sized(pp=2, dp=2), Sized(tp=2, dp=2)], ids=str)
@pytest.mark.parametrize("slow", [None, 3])
def test_a_host_is_not_blamed_for_its_clock(
    off: Off, sized: Sized, slow: int | None, tmp_path: Path
) -> None:
    run = layout_run(sized, 3, slower=lambda _, rank: 1.3 if rank == slow else 1.0)
    found = diagnosed_of(read_trace([written(run, tmp_path / "run", off)]))
    named = {rank for cause in found.causes for rank in cause.ranks or ()}
    assert named == ({slow} if slow is not None else set())
    (note,) = map(str, found.notes)
    tied = "2 hosts were up to" if sized.pp > 1 else "nothing that was recorded ties the clocks"
    assert tied in note


def test_how_far_apart_clocks_were_is_told(tmp_path: Path) -> None:
    run = layout_run(Sized(pp=4), 1)
    found = diagnosed_of(read_trace([written(run, tmp_path / "run", Off(HOUR))]))
    assert str(found.notes[0]).startswith("the clocks of 2 hosts were up to 3600 s apart and were")


def test_clocks_either_side_of_the_first_are_apart_by_both() -> None:
    offsets = {"a": 0.0, "b": 5.0 * MS, "c": -7.0 * MS}
    clocks = tuple(AlignedClock(host, "pings", at, 0.0, 1e3) for host, at in offsets.items())
    trace = replace(layout_run(Sized(pp=2), 1), clocks=clocks)
    (note,) = map(str, clock_notes([trace]))
    assert note.startswith("the clocks of 3 hosts were up to 12.0 ms apart")


def test_profiles_of_two_hosts_are_put_onto_one_clock_by_their_collectives() -> None:
    trace = profiled({0: 0, 1: 0, 2: 300, 3: 0})
    hosts = ("a", "a", "b", "b")
    there = tuple(replace(r, host=h) for r, h in zip(trace.ranks, hosts, strict=True))
    (note,) = map(str, diagnosed_of(replace(trace, ranks=there)).notes)
    assert note.startswith("the clocks of 2 hosts were up to")
    alone = tuple(replace(r, host=f"host {r.rank}") for r in trace.ranks[:1])
    assert diagnosed_of(replace(trace, ranks=alone)).notes == ()


def test_one_host_has_one_clock(tmp_path: Path) -> None:
    found = diagnosed_of(read_trace([written(layout_run(Sized(pp=2), 1), tmp_path / "run")]))
    assert found.notes == ()
