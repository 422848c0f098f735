"""What kinds of groups moved in a recorded run: met in order, less waits, without launches."""

from __future__ import annotations

from pathlib import Path

import pytest

from serried.action import ActionKind
from serried.trace.measure.span_traffic import span_traffic
from serried.trace.merge.in_memory import merge
from serried.trace.model.group_traffic import GroupTraffic
from serried.trace.model.record import RecordHeader
from serried.trace.model.record_writer import RecordWriter
from serried.trace.model.traffic import CollectiveMove
from tests.trace.carried import DP_BYTES, JOB, STEPS, TP_BYTES, write_carried

Moved = tuple[int, int, int, int]
"""When an all-reduce of ranks 0 and 1 was issued, its wait began and ended, and its bytes."""


def recorded(folder: Path, ranks: dict[int, list[Moved]], backend_ranks: int = 4) -> Path:
    """Records all-reduces between ranks 0 and 1 in one step."""
    for rank in range(backend_ranks):
        writer = RecordWriter(folder, RecordHeader("some", rank, JOB, "a", "boot", 0, 1 << 60))
        writer.begin_step(0)
        for issued, start, end, size in ranks.get(rank, []):
            if issued < start:
                writer.add(ActionKind.IN_FLIGHT, issued, start, 0, 0)
            writer.add(ActionKind.ALL_REDUCE, start, end, 0, 0)
            writer.add_moves([CollectiveMove(ActionKind.ALL_REDUCE, (0, 1), size)])
        writer.add(ActionKind.OPTIMIZER, 10**9, 10**9 + 1)
        writer.close()
    return folder


def only(folder: Path) -> GroupTraffic:
    (row,) = span_traffic(merge([folder]))
    return row


def test_kinds_are_the_layout_s_and_the_slowest_stands_first(tmp_path: Path) -> None:
    tp, dp = span_traffic(merge([write_carried(tmp_path)]))
    assert [(row.group, row.operation, row.num_ranks, row.num_nodes) for row in (tp, dp)] == [
        ("tp", "all_reduce", 2, 1),
        ("dp", "all_reduce", 2, 1),
    ]
    # Two pairs, in all steps but the first; of ranks 0 and 1 the late one tells the transfer.
    assert (tp.count, tp.size_bytes) == (2 * (STEPS - 1), 2 * (STEPS - 1) * TP_BYTES)
    assert tp.transfer_ns == (500_000 + 1_000_000) * (STEPS - 1)
    assert tp.wait_ns == 250_000 * (STEPS - 1)
    # The last step's span is of two groups, so that one step is left: two collectives a span.
    assert (dp.count, dp.size_bytes, dp.transfer_ns) == (4, 2 * DP_BYTES, 2 * 2_000_000)
    assert dp.busbw_bytes_per_s == pytest.approx(DP_BYTES / 2e-3)
    assert tp.is_whole and dp.is_whole


def test_what_was_on_its_way_took_at_most_from_its_issue_on(tmp_path: Path) -> None:
    row = only(recorded(tmp_path, {0: [(0, 900, 1000, 8000)], 1: [(100, 950, 1000, 8000)]}))
    assert (row.transfer_ns, row.wait_ns, row.is_whole) == (900, 0, False)


def test_a_member_without_a_file_leaves_the_wait_in(tmp_path: Path) -> None:
    recorded(tmp_path, {0: [(0, 0, 1000, 8000)], 1: [(500, 500, 1000, 8000)]})
    (tmp_path / "rank-00001.spans").unlink()
    row = only(tmp_path)
    assert (row.transfer_ns, row.is_whole) == (1000, False)


def test_collectives_that_one_member_has_more_of_meet_nobody(tmp_path: Path) -> None:
    one = (0, 0, 1000, 8000)
    recorded(tmp_path, {0: [one, (2000, 2000, 3000, 8000)], 1: [one]})
    assert span_traffic(merge([tmp_path])) == []


def test_a_span_of_the_launch_alone_tells_no_bandwidth(tmp_path: Path) -> None:
    launch = [(0, 0, 5, 1 << 30)]
    recorded(tmp_path, {0: launch, 1: launch})
    assert span_traffic(merge([tmp_path])) == []
