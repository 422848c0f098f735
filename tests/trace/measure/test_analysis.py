"""What is measured of a run takes a time that its size bounds, however many ranks it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from serried.trace.measure import analysis
from serried.trace.measure.analysis import analyse
from serried.trace.merge.in_memory import merge
from tests.trace.recorded_run import Run

RUN = Run(pp=2, dp=4, num_microbatches=2, num_steps=6)


@pytest.mark.parametrize(("limit", "steps"), [(10**9, 6), (1, 1), (0.5, 3)])
def test_spans_are_replayed_once_for_each_rank_and_no_more_than_so_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: float, steps: int
) -> None:
    trace = merge([RUN.write(tmp_path)])
    whole = len(trace.spans) * len(trace.ranks)
    monkeypatch.setattr(analysis, "_MOST_CURED", int(limit * whole) if limit < 1 else limit)
    replayed = analyse(trace).replayed
    assert replayed is not None
    assert replayed.num_steps == steps
    assert len(replayed.ranks) == RUN.world_size
