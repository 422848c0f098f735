"""Paddle's dynamic-graph records of several ranks a stage stay apart, in Paddle's order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from serried.errors import InputError
from serried.limits import RECORD_LINE
from serried.trace.formats.reading import read_trace
from serried.trace.measure.statistics import measure
from serried.trace.model.trace import Trace

M = 3


def records(stage: int, begin_ms: int) -> list[dict[str, object]]:
    """Returns what one rank of ``stage`` of two writes in one step of 1F1B's first microbatches."""
    events: list[dict[str, object]] = []
    at = begin_ms + 10 * stage
    for kind, length in (("F", 10), ("B", 20)):
        for microbatch in range(M):
            named = {"name": f"{kind}{microbatch}", "cat": "pipeline timeline", "pid": 0}
            events.append({**named, "ph": "B", "tid": stage + 1, "ts": at})
            at += length
            events.append({**named, "ph": "E", "tid": stage + 1, "ts": at})
    return events


def stage_of(rank: int, *, tp: int, pp: int) -> int:
    """Returns a rank's stage in Paddle's order: tp neighbours, then stages, then replicas."""
    return rank // tp % pp


def written(folder: Path, *, tp: int, dp: int, joined: bool = False) -> Path:
    """Writes the files of all ranks, or the one that Paddle's script joins them into."""
    world, texts = tp * 2 * dp, {}
    for rank in range(world):
        events = records(stage_of(rank, tp=tp, pp=2), 1_700_000_000_000)
        texts[f"profile_record_tmp_file_for_rank_{rank}"] = events
    if not joined:
        for name, events in texts.items():
            (folder / name).write_text("\n".join(map(json.dumps, events)))
        return folder
    whole = [event for name in sorted(texts) for event in texts[name]]
    (folder / "pipeline_profile.json").write_text(json.dumps(whole))
    return folder / "pipeline_profile.json"


def stages(trace: Trace) -> dict[int, set[int]]:
    return {rank: set(trace.spans.stage[trace.spans.rank == rank].tolist()) for rank in trace.ranks}


@pytest.mark.parametrize("joined", [False, True], ids=["files", "joined"])
@pytest.mark.parametrize(("tp", "dp"), [(1, 2), (2, 1), (2, 3), (1, 6)])
def test_every_rank_keeps_its_own_spans(tmp_path: Path, tp: int, dp: int, joined: bool) -> None:
    trace = read_trace([written(tmp_path, tp=tp, dp=dp, joined=joined)])
    assert trace.job.world_size == tp * 2 * dp
    assert stages(trace) == {rank: {stage_of(rank, tp=tp, pp=2)} for rank in range(tp * 2 * dp)}
    assert set(trace.spans.step.tolist()) == {0}
    stats = measure(trace)
    assert len(stats.steps) == 1
    assert {rank.compute_ns for rank in stats.ranks} == {M * 30 * 1_000_000}


def test_sizes_given_place_the_ranks(tmp_path: Path) -> None:
    trace = read_trace([written(tmp_path, tp=2, dp=1)], {"tp": 2, "pp": 2, "dp": 1})
    assert trace.job.sizes["tp"] == 2
    assert stages(trace)[3] == {1}


def test_sizes_that_did_not_run_are_refused(tmp_path: Path) -> None:
    folder = written(tmp_path, tp=1, dp=2)
    with pytest.raises(InputError, match=r"rank 1 ran stage 1 and not 0, its stage in tp 2, pp 2"):
        read_trace([folder], {"tp": 2, "pp": 2})


def test_a_ranks_missing_file_is_reported_and_moves_nobody(tmp_path: Path) -> None:
    folder = written(tmp_path, tp=1, dp=2)
    (folder / "profile_record_tmp_file_for_rank_1").unlink()
    trace = read_trace([folder])
    assert (trace.ranks, trace.missing) == ((0, 2, 3), (1,))
    assert stages(trace) == {0: {0}, 2: {0}, 3: {1}}


def test_the_joined_file_beside_those_it_was_made_of_stands_for_nothing_new(tmp_path: Path) -> None:
    written(tmp_path, tp=1, dp=1, joined=True)
    trace = read_trace([written(tmp_path, tp=1, dp=1)])
    assert len(trace.spans) == 2 * 2 * M


def test_a_line_without_end_is_no_record_and_hides_none(tmp_path: Path) -> None:
    folder = written(tmp_path, tp=1, dp=1)
    spans = len(read_trace([folder]).spans)
    path = folder / "profile_record_tmp_file_for_rank_0"
    endless = '{"name": "' + "F" * 20 * RECORD_LINE.most
    path.write_text(f"{endless}\n{path.read_text()}")
    assert len(read_trace([folder]).spans) == spans
