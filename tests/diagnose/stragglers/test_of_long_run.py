"""A recording that is too long to be read whole is judged as one that is read whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from serried.action import ActionKind
from serried.diagnose.causes.hang import causes
from serried.diagnose.gather import gather
from serried.diagnose.gathered import Evidence
from serried.diagnose.job_state.recorded import recorded_state
from serried.diagnose.reason import diagnosed
from serried.diagnose.steps import long_run
from serried.diagnose.steps.long_run import LongRun
from serried.diagnose.steps.of_trace import steps_of_trace
from serried.trace.merge.in_memory import merge
from serried.trace.model.record import RecordHeader, TracedJob
from serried.trace.model.record_writer import RecordWriter
from serried.trace.model.traffic import CollectiveMove
from tests.diagnose.stragglers.meeting_runs import Meets, meeting_run
from tests.diagnose.stragglers.straggler_runs import nothing, pipelines
from tests.diagnose.stragglers.written_runs import written

STEPS, SINCE, SLOW = 300, 200, 2


def slower(step: int, rank: int) -> float:
    return 1.5 if rank == SLOW and step >= SINCE else 1.0


@pytest.fixture
def in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every recording a long one, of which some 40 steps are read at a time."""
    monkeypatch.setattr(long_run, "LONG_BYTES", 1)
    monkeypatch.setattr(long_run, "BLOCK_SPANS", 40 * 4 * 5)


def test_blocks_give_the_table_of_the_whole(tmp_path: Path, in_blocks: None) -> None:
    folder = written(meeting_run(Meets.DP, slower, 1, steps=STEPS), tmp_path)
    long = LongRun.of([folder])
    assert 30 < long.steps_of_block < 60
    job = long.table()
    whole = merge([folder])
    steps = np.unique(whole.spans.step)
    expected = steps_of_trace(whole, steps)
    assert job is not None and expected is not None
    assert job.steps.tolist() == expected.steps.tolist()
    assert job.began_ns.tolist() == expected.began_ns.tolist()
    assert job.alike == expected.alike
    for name in ("period", "waits", "computing"):
        assert np.allclose(getattr(job.spent, name), getattr(expected.spent, name))
    for name, table in expected.spent.parts.items():
        assert np.allclose(job.spent.parts[name], table)


def test_rows_of_several_steps_are_their_means(
    tmp_path: Path, in_blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = LongRun.of([written(meeting_run(Meets.DP, slower, 1, steps=STEPS), tmp_path)])
    every = long.table()
    monkeypatch.setattr(long_run, "MOST_ROWS", 100)
    folded = long.table()
    assert every is not None and folded is not None
    assert (folded.width, len(folded) <= 100) == (4, True)
    at = every.steps.tolist().index(40)
    row = folded.steps.tolist().index(40)
    assert np.allclose(folded.spent.period[row], every.spent.period[at : at + 4].mean(axis=0))


@pytest.mark.parametrize("most_rows", [2048, 100])
def test_the_slow_rank_is_named_with_since_when_and_its_cost(
    tmp_path: Path, in_blocks: None, monkeypatch: pytest.MonkeyPatch, most_rows: int
) -> None:
    monkeypatch.setattr(long_run, "MOST_ROWS", most_rows)
    written(meeting_run(Meets.DP, slower, 1, steps=STEPS), tmp_path)
    found = diagnosed(gather([tmp_path]))
    assert [cause.ranks for cause in found.causes] == [(SLOW,)]
    assert f"since step {SINCE}" in str(found.causes[0].verdict)
    assert found.causes[0].cost == pytest.approx(15 / 50, abs=0.03)


def test_nobody_is_named_in_a_long_healthy_run(tmp_path: Path, in_blocks: None) -> None:
    written(pipelines(nothing, 3, steps=60), tmp_path)
    evidence = gather([tmp_path])
    assert isinstance(evidence.recordings[0], LongRun)
    assert diagnosed(evidence).causes == ()


def test_an_uneven_stage_is_told_by_the_last_block(tmp_path: Path, in_blocks: None) -> None:
    written(pipelines(lambda p, t, s, m: 2.0 if s == 3 else 1.0, 1, steps=30), tmp_path)
    assert [cause.kind for cause in diagnosed(gather([tmp_path])).causes] == ["uneven_stage"]


def test_records_of_usual_length_are_read_whole(tmp_path: Path) -> None:
    written(meeting_run(Meets.DP, slower, 1, steps=5), tmp_path)
    assert not isinstance(gather([tmp_path]).recordings[0], LongRun)


def stuck_in_a_forward(folder: Path, steps: int = 300) -> Path:
    """Writes two ranks that reduce after each forward; rank 1 is in its last one for ever."""
    job = TracedJob("megatron", 2, {"dp": 2}, "", "", 1)
    for rank in range(2):
        writer = RecordWriter(folder, RecordHeader("run", rank, job, monotonic_ns=0, wall_ns=0))
        for step in range(steps):
            is_last = step == steps - 1
            if not (is_last and rank == 1):
                writer.add(ActionKind.F, 100 * step, 100 * step + 50, 0, 0, step=step)
            if not is_last:
                writer.add(ActionKind.ALL_REDUCE, 100 * step + 50, 100 * step + 90, step=step)
                writer.add_moves([CollectiveMove(ActionKind.ALL_REDUCE, (0, 1), 4)])
        writer.close()
    return folder


def test_who_hangs_is_told_of_the_end_as_of_the_whole(tmp_path: Path, in_blocks: None) -> None:
    folder = stuck_in_a_forward(tmp_path)
    trace, ended = LongRun.of([folder]).ending()
    whole = merge([folder])
    assert len(trace.spans) < len(whole.spans)
    state = recorded_state(trace, {}, ended)
    assert state is not None
    (cause,) = causes(Evidence(state=state))
    assert cause.ranks == (1,)
    assert "0F0 of step 299" in str(cause.verdict)
    expected = recorded_state(whole, {})
    assert expected is not None
    assert state.ranks == expected.ranks
    assert "all_reduce 300" in str(cause.waiting[0].what)
