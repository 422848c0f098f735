"""Jobs recorded in pieces hand over once: the last piece of one to the first of the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from serried.trace.formats.reading import read_trace
from serried.trace.measure.statistics import measure
from serried.trace.model.whole_jobs import whole_hand_overs, whole_jobs
from tests.trace.traced_run import compute, trace_of

PADDLE = Path(__file__).parents[2] / "goldens" / "traces" / "paddle"


def test_the_last_piece_goes_to_the_first_piece() -> None:
    spans = trace_of(
        [
            *(compute(0, "0B0", 20, 25), compute(0, "0B0", 25, 30)),
            *(compute(1, "1B0", 0, 10), compute(1, "1B0", 10, 20)),
        ],
        pp=2,
    ).spans
    before, after = whole_hand_overs(spans)
    assert [
        (int(spans.end_ns[b]), int(spans.start_ns[a])) for b, a in zip(before, after, strict=True)
    ] == [(20, 20)]


def test_a_job_is_as_long_as_its_pieces_and_stands_where_the_first_of_them_did() -> None:
    pieces = [
        *(compute(0, "0F0", 0, 5), compute(0, "0B0", 5, 9), compute(0, "0F1", 9, 12)),
        *(compute(0, "0B0", 12, 18), compute(0, "0B1", 18, 20)),
    ]
    found = whole_jobs(trace_of(pieces, pp=1).spans)
    assert [(str(each.action), each.duration_ns) for each in found] == [
        *(("0F0", 5), ("0B0", 10), ("0F1", 3), ("0B1", 2)),
    ]


@pytest.mark.parametrize("sample", ["chunk", "sendrecv"])
def test_pieces_and_one_way_receives_leave_the_causes_of_idle_time_as_they_are(sample: str) -> None:
    plain, other = (measure(read_trace([PADDLE / name])).bubbles for name in ("dev23", sample))
    assert plain is not None and other is not None
    # sendrecv has receives of a quarter of a millisecond in 150, and sends as long.
    assert other.causes == pytest.approx(plain.causes, abs=0.004)
