"""The verdict on a run names the rank that the others wait for, its host and what it costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from serried.trace.formats.reading import read_trace
from serried.trace.measure.analysis import Analysis, analyse
from serried.trace.measure.slowest import COMPUTING
from serried.trace.model.trace import Trace
from serried.views.trace.verdict import run_verdict_lines
from tests.trace.recorded_run import Run
from tests.views.explain.reader import has_chinese


@pytest.fixture
def run(tmp_path: Path) -> Trace:
    return read_trace([Run(pp=2, dp=2, num_microbatches=4, num_steps=3).write(tmp_path)])


def with_slow(analysis: Analysis, **changes: object) -> Analysis:
    first, *others = analysis.paces
    slow = replace(first, is_slow=True, waited_for_ns=5e6, slower=0.25, **changes)  # type: ignore[arg-type]
    return replace(analysis, paces=(slow, *others))


def test_a_run_without_a_slow_rank_says_what_it_is_idle_for_and_what_to_ask(run: Trace) -> None:
    idle, following = run_verdict_lines(run, analyse(run))
    assert idle.startswith("a step takes") and "most of it" in idle
    assert following.startswith("next: serried trace compare")


def test_a_rank_that_the_others_wait_for_comes_first_with_its_host(run: Trace) -> None:
    analysis = with_slow(analyse(run), evidence="waits")
    first, *others = run_verdict_lines(run, analysis)
    assert first.startswith(f"the others wait for rank {analysis.paces[0].rank} on a: 5.00 ms")
    assert len(others) == 2


def test_where_only_computing_is_known_nobody_is_said_to_wait(run: Trace) -> None:
    first, *_ = run_verdict_lines(run, with_slow(analyse(run), evidence=COMPUTING))
    assert "computes 25.0% longer" in first


def test_it_is_said_in_chinese(run: Trace) -> None:
    assert all(map(has_chinese, run_verdict_lines(run, analyse(run), lang="zh")))


def test_nothing_is_claimed_where_no_step_was_finished(run: Trace) -> None:
    analysis = analyse(run)
    unfinished = replace(analysis, statistics=replace(analysis.statistics, bubble=None))
    assert run_verdict_lines(run, unfinished) == []
