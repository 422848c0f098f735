"""ndtimeline's files: two runs in one are said to be two where the file shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from serried.finding import Finding
from serried.trace.formats.reading import read_trace

LENGTHS = {"forward-compute": 10.0, "backward-compute": 20.0}


def run(*steps: int, begin_us: float = 1_000_000.0, each_us: float = 500.0) -> list[dict[str, Any]]:
    """Returns two ranks' events of some steps, each with three microbatches after one another."""
    events = []
    for at, step in enumerate(steps):
        for rank in range(2):
            now = begin_us + at * each_us + rank * 12.5
            for name in [*LENGTHS] * 3:
                event = {"name": name, "ph": "X", "ts": now, "dur": LENGTHS[name]}
                args = {"rank": rank, "step": step, "pp": rank}
                events.append({**event, "pid": "dp rank[0]", "tid": 30, "args": args})
                now += LENGTHS[name]
    return events


def warnings(folder: Path, events: list[dict[str, Any]]) -> list[Finding]:
    path = folder / "timeline.json"
    path.write_text(json.dumps(events))
    return [each for each in read_trace([path]).warnings if each.kind == "two runs"]


def test_a_step_that_a_rank_comes_back_to_is_of_another_run(tmp_path: Path) -> None:
    (found,) = warnings(tmp_path, run(3, 4, 5) + run(3, 4, 5, begin_us=9_000_000))
    assert "timeline.json seems to hold two runs, or one that was started again: rank 0 " in str(
        found
    )
    assert 'rank 0 is in step 3 after step 5, from "ts": 9000000 on' in str(found)


@pytest.mark.parametrize("later_us", [0.0, 4.0, 7.5])
def test_two_computations_at_a_time_are_of_two_runs(tmp_path: Path, later_us: float) -> None:
    second = run(3, 4, begin_us=1_000_000 + later_us)
    (found,) = warnings(tmp_path, run(3, 4) + second)
    assert "rank 0 runs two of " in str(found)
    assert " at a time in step 3, " in str(found)


@pytest.mark.parametrize(
    "events",
    [
        run(3, 4, 5),
        run(3, 4) + run(5, 6, begin_us=9_000_000),  # resumed
        run(3, 4, 5, each_us=0.0),  # each step begins anew
        run(3, 4, 5, each_us=3.0),
        run(3, 4, 5)[::-1],
    ],
)
def test_one_run_is_not_taken_for_two(tmp_path: Path, events: list[dict[str, Any]]) -> None:
    assert not warnings(tmp_path, events)
