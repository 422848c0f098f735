"""A diagnosis follows its evidence: read again where it changed, and no oftener than is cheap."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from serried.diagnose.diagnosis import Diagnosis
from serried.views.web.diagnose.cases import read_case
from serried.views.web.diagnose.evidence_mark import EvidenceMark
from serried.views.web.opening import followed
from serried.views.web.opening.followed import FollowedCase, FollowedCases
from tests.views.web.diagnose.test_cases import KILLED

HOUR_S = 3600.0


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "job" / "console.log"
    path.parent.mkdir()
    path.write_text("step 1 | loss 2.0\n")
    return path


def case_of(log: Path, clock: Clock) -> FollowedCase:
    case = FollowedCase(read_case(log.parent), clock)
    assert case.look()["revision"] == 0
    return case


def after(case: FollowedCase, clock: Clock, seconds: float) -> tuple[int, float | None]:
    clock.now += seconds
    told = case.look()
    return told["revision"], told["read_at"]


def test_new_evidence_is_diagnosed_and_said_to_be_of_its_moment(log: Path) -> None:
    clock = Clock()
    case = case_of(log, clock)
    before = case.case.read_at
    with log.open("a") as file:
        file.write(KILLED)
    revision, read_at = after(case, clock, HOUR_S)
    assert (revision, before is not None and read_at is not None and read_at > before) == (1, True)
    assert case.case.diagnosis.causes[0].ranks == (5,)


def test_evidence_that_stays_as_it_is_is_not_read_again(log: Path) -> None:
    clock = Clock()
    case = case_of(log, clock)
    before = case.case
    assert after(case, clock, HOUR_S) == (0, before.read_at)
    assert case.case is before


def test_other_evidence_of_the_same_is_no_new_answer(log: Path) -> None:
    clock = Clock()
    case = case_of(log, clock)
    before = case.case.read_at
    with log.open("a") as file:
        file.write("step 2 | loss 1.9\n")
    revision, read_at = after(case, clock, HOUR_S)
    assert (revision, read_at != before) == (0, True)


def test_it_rests_some_times_as_long_as_reading_took(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    case = case_of(log, clock)

    def slowly(place: Path, name: str) -> object:
        clock.now += 10
        return read_case(place, name)

    monkeypatch.setattr(followed, "read_case", slowly)
    log.write_text(KILLED)
    assert after(case, clock, HOUR_S)[0] == 1
    log.write_text("step 1 | loss 2.0\n")
    assert after(case, clock, 10 * 10 - 1)[0] == 1
    assert after(case, clock, 3)[0] == 2


def test_ranks_that_live_and_write_nothing_are_diagnosed_after_a_while_and_then_ever_more_rarely(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    case = case_of(log, clock)
    monkeypatch.setattr(EvidenceMark, "is_live", property(lambda _: True))
    times = {after(case, clock, 1.0)[1] for _ in range(60)}
    assert len(times) == 1 + 4, "the first, and after 5, 10, 20 and 40 s"


@dataclass
class Seen:
    """Stands for a look at the records of ranks."""

    counts: dict[Path, int]
    is_live: bool = False


@pytest.mark.parametrize(
    ("seen", "is_kept"), [((5, False), True), ((6, False), False), ((5, True), False)]
)
def test_why_ranks_stood_still_stays_once_their_processes_were_ended(
    seen: tuple[int, bool], is_kept: bool, log: Path
) -> None:
    log.write_text(KILLED)
    case = FollowedCase(read_case(log.parent), _told_at={log: 5})
    healthy = replace(case.case, diagnosis=Diagnosis(()))
    count, is_live = seen
    case._mark = Seen({log: count}, is_live)  # type: ignore[assignment]
    assert case._stood(healthy) is (case.case if is_kept else healthy)
    note = case._told()["note"]
    assert ("this is why they stood still" in note["en"]) if is_kept else note is None


def test_evidence_that_is_gone_leaves_its_diagnosis_and_a_sentence(log: Path) -> None:
    cases = [read_case(log.parent)]
    live = FollowedCases(cases)
    live.look(0)
    shutil.rmtree(log.parent)
    live._followed[0].clock = Clock(1e12)
    told = live.look(0)
    assert told["revision"] == 0
    assert told["note"]["en"].startswith(f"{log.parent} is not there any more; what was found")
    assert "不在了" in told["note"]["zh"]


def test_a_copy_stands_still(log: Path) -> None:
    assert FollowedCase(replace(read_case(log.parent), place=None)).look()["state"] == "still"
