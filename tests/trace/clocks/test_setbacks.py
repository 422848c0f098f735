"""A clock that goes back within a rank's file is said, and everything else is read as ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from serried.trace.formats.reading import read_trace
from serried.trace.measure.statistics import measure
from serried.trace.merge.in_memory import merge
from serried.trace.merge.store import merge_store
from serried.trace.model.record_writer import RecordWriter
from tests.trace.recorded_run import Clock, Run, record

RUN = Run(pp=2, num_microbatches=4, num_steps=5)


def recorded(folder: Path, *, back_ns: int, from_step: int) -> Path:
    """Records a run of one host, whose clock is set back before a step; both ranks share it."""
    folder.mkdir(parents=True)
    for rank in range(RUN.world_size):
        recorder = RecordWriter(folder, Clock("a").header(RUN.name, rank, RUN.job))
        for span in RUN.spans():
            if span.rank == rank:
                record(recorder, span, -back_ns if span.step >= from_step else 0)
        recorder.close()
    return folder


def test_steps_that_begin_before_earlier_ones_show_a_clock_that_went_back(tmp_path: Path) -> None:
    trace = read_trace([recorded(tmp_path / "run", back_ns=10_000_000_000, from_step=3)])
    (warning,) = trace.warnings
    assert (warning.kind, warning.ranks) == ("clock", (0, 1))
    begun = [int(trace.spans.start_ns[trace.spans.step == step].min()) for step in (2, 3)]
    assert str(warning.evidence[0]).startswith("the clock of rank 0, 1 went back by 9.98 s")
    assert str(warning.evidence[0]).endswith(
        " or more before step 3; its later spans stand too early"
    )
    assert begun[1] < begun[0]
    assert len(measure(trace).steps) == RUN.num_steps


@pytest.mark.parametrize("back_ns", [10_000_000_000, 0])
def test_a_run_that_is_merged_piece_by_piece_says_the_same(tmp_path: Path, back_ns: int) -> None:
    pytest.importorskip("pyarrow")
    folder = recorded(tmp_path / "run", back_ns=back_ns, from_step=3)
    merged = merge_store([folder], tmp_path / "run.store").trace
    assert merged.warnings == read_trace([folder]).warnings
    assert len(merged.warnings) == (back_ns > 0)
    stored = read_trace([tmp_path / "run.store"]).warnings
    assert list(map(str, stored)) == list(map(str, merged.warnings))


def test_a_clock_that_never_goes_back_is_not_spoken_of(tmp_path: Path) -> None:
    assert read_trace([recorded(tmp_path / "run", back_ns=0, from_step=3)]).warnings == ()
    assert len(merge([tmp_path / "run"]).spans) == len(RUN.spans())
