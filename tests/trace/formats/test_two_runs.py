"""Two runs in one file are said to be two; a job in pieces is one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from serried.action import Spans
from serried.trace.formats.reading import read_trace
from serried.trace.formats.two_runs import two_runs
from tests.trace.mutants import megatronapp
from tests.trace.recorded_run import table
from tests.trace.traced_run import compute

TRACES = Path(__file__).parents[2] / "goldens" / "traces"
STEP = [compute(0, action, 10 * at, 10 * at + 10) for at, action in enumerate(("0F0", "0F1"))]


def doubled(spans: Spans, later_ns: int) -> Spans:
    return Spans.joined([spans, spans.shifted(later_ns)])


@pytest.mark.parametrize("later_ns", [3, 15, 1_000_000])
def test_a_step_that_is_done_twice_is_two_runs(later_ns: int) -> None:
    found = two_runs(doubled(table(STEP), later_ns))
    assert found is not None
    assert "rank 0 does 0F" in str(found)
    assert " twice in step 0" in str(found)


def test_steps_and_ranks_of_their_own_are_one_run() -> None:
    spans = table(STEP)
    assert two_runs(spans) is None
    other = Spans(**{**spans.columns(), "step": spans.step + 1})
    assert two_runs(Spans.joined([spans, other])) is None


def test_a_job_in_pieces_is_done_once() -> None:
    pieces = ("0F0", "0F0", "0F1", "0F1", "0F2", "0F2")
    spans = [compute(0, action, 10 * at, 10 * at + 10) for at, action in enumerate(pieces)]
    assert two_runs(table(spans)) is None


@pytest.mark.parametrize(
    "sample",
    ["paddle/chunk", "paddle/vpp", "paddle/multi", "kineto", "megatronapp", "straggler_analysis"],
)
def test_no_sample_is_taken_for_two_runs(sample: str) -> None:
    if sample == "straggler_analysis":
        pytest.importorskip("pyarrow")
    assert two_runs(read_trace([TRACES / sample]).spans) is None


def test_a_file_of_two_runs_is_read_with_a_word(tmp_path: Path) -> None:
    events = json.loads(megatronapp())
    later = [{**each, "ts": each["ts"] + 5_000_000} for each in events]
    (tmp_path / "both.json").write_text(json.dumps([*events, *later]))
    found = read_trace([tmp_path / "both.json"]).warnings
    assert [each.kind for each in found].count("two runs") == 1
