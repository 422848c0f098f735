"""A job that stood still before somebody stopped it, and one that was stopped at work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from serried.diagnose.diagnosis import Diagnosis
from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed

NINE = 1_795_856_400  # 2026-11-28 09:00:00 UTC
STOP = (
    "W1128 {hour:02d}:{minute:02d}:{second:02d}.100000 15676 "
    "torch/distributed/elastic/agent/server/api.py:753] "
    "Received 2 death signal, shutting down workers"
)
PIPELINE = """Thread 4 (idle): "MainThread"
    _wait_batch_p2p (torch/distributed/pipelining/schedules.py:683)
    main (train.py:33)
"""


def stopped(folder: Path, after: int, hour: int = 9, pause: float = 0.1) -> Diagnosis:
    """What is said of two ranks in messages, of a job that was stopped so long after its last."""
    for rank in (0, 1):
        entries = [
            {
                "record_id": seq,
                "process_group": ["0", "default_pg"],
                "profiling_name": "gloo:all_reduce",
                "collective_seq_id": seq,
                "op_id": seq,
                "retired": True,
                "input_sizes": [[8]],
                "input_dtypes": ["Float"],
                "time_created_ns": int((NINE - pause * (9 - seq)) * 1e9),
            }
            for seq in range(1, 10)
        ]
        (folder / f"fr_trace_{rank}.json").write_text(json.dumps({"entries": entries}), "utf-8")
        (folder / f"stack_rank_{rank}.txt").write_text(PIPELINE, "utf-8")
    minute, second = divmod(after, 60)
    stop = STOP.format(hour=hour, minute=minute, second=second)
    (folder / "console.log").write_text(stop + "\n", "utf-8")
    return diagnosed(gather([folder]))


@pytest.mark.parametrize("hour", [9, 17, 4])
def test_a_job_that_stood_still_hung_though_it_was_stopped(hour: int, tmp_path: Path) -> None:
    found = stopped(tmp_path, after=40, hour=hour)
    first, second = found.causes[:2]
    assert (first.cause_class.value, first.kind, first.ranks) == ("hang", "stood_still", None)
    assert second.cause_class.value == "external_stop"
    assert found.missing


@pytest.mark.parametrize(
    ("after", "pause"),
    [
        (1, 0.1),
        (40, 6.0),  # its ranks are often apart for as long
    ],
)
def test_a_job_that_was_stopped_at_work_did_not_hang(
    after: int, pause: float, tmp_path: Path
) -> None:
    found = stopped(tmp_path, after=after, pause=pause)
    assert found.cause_class.value == "external_stop"


@pytest.mark.parametrize(
    ("states", "is_told"), [(("idle",) * 3, True), (("active", "idle", "idle"), False)]
)
def test_without_times_ranks_that_were_all_idle_in_waits_tell_a_hang(
    states: tuple[str, ...], is_told: bool, tmp_path: Path
) -> None:
    for rank, state in enumerate(states):
        text = PIPELINE.replace("idle", state)
        (tmp_path / f"stack_rank_{rank}.txt").write_text(text, "utf-8")
    (tmp_path / "console.log").write_text(STOP.format(hour=9, minute=0, second=1) + "\n", "utf-8")
    found = diagnosed(gather([tmp_path]))
    assert (found.causes[0].kind == "stood_still") == is_told
    assert found.causes[0].ranks in (None, ())
