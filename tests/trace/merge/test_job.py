"""What recordings say of their job together, where each knew little as it began."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from serried.action import ActionKind
from serried.errors import InputError
from serried.trace.merge.in_memory import merge
from serried.trace.model.record import TracedJob
from serried.trace.model.record_writer import RecordWriter
from serried.trace.model.trace import Trace
from tests.trace.recorded_run import Clock

SEEN = TracedJob("custom", 4, {"dp": 4}, "", "unknown", 1)


def recorded(
    folder: Path, peers: Sequence[Sequence[int]], jobs: Sequence[TracedJob] = (SEEN,) * 4
) -> Trace:
    """Records ranks that each compute and send to their ``peers``."""
    folder.mkdir()
    for rank, job in enumerate(jobs):
        with closing(RecordWriter(folder, Clock("a").header("run-a", rank, job))) as one:
            one.add(ActionKind.F, 0, 1, step=0, stage=0, microbatch=0)
            for peer in peers[rank]:
                one.add(ActionKind.SEND_F, 1, 2, step=0, stage=0, microbatch=0, peer=peer)
    return merge([folder])


@pytest.mark.parametrize(
    ("peers", "sizes", "pipelines"),
    [
        ([[2], [3], [], []], {"pp": 2, "dp": 2}, [[0, 2], [1, 3]]),
        ([[1], [], [3], []], {"pp": 2, "dp": 2}, [[0, 1], [2, 3]]),
        ([[1], [2], [3], [0]], {"pp": 4, "dp": 1}, [[0, 1, 2, 3]]),
    ],
)
def test_messages_tell_the_pipelines_that_no_header_knew_of(
    peers: list[list[int]], sizes: dict[str, int], pipelines: list[list[int]], tmp_path: Path
) -> None:
    trace = recorded(tmp_path / "run", peers)
    assert trace.job.sizes == sizes
    assert trace.layout is not None
    assert trace.layout.groups(trace.layout.kind_of("pp")).lists() == pipelines


@pytest.mark.parametrize("peers", [[[], [], [], []], [[1], [], [], []], [[3], [2], [], []]])
def test_messages_that_make_no_equal_pipelines_in_order_tell_nothing(
    peers: list[list[int]], tmp_path: Path
) -> None:
    assert recorded(tmp_path / "run", peers).job == SEEN


def test_ranks_of_which_some_saw_the_pipeline_before_their_first_span_are_of_one_job(
    tmp_path: Path,
) -> None:
    late = dataclasses.replace(SEEN, framework="fsdp")
    early = dataclasses.replace(SEEN, sizes={"pp": 2, "dp": 2})
    trace = recorded(tmp_path / "run", [[2], [3], [], []], [late, early, late, early])
    assert trace.job == early


def test_sizes_that_somebody_named_stay(tmp_path: Path) -> None:
    named = dataclasses.replace(SEEN, schedule="1f1b")
    assert recorded(tmp_path / "a", [[2], [3], [], []], [named] * 4).job == named
    with pytest.raises(InputError, match="describe two jobs"):
        recorded(tmp_path / "b", [[], [], [], []], [named, named, SEEN, SEEN])
