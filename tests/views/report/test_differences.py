"""A report's columns take few bytes, come back to the bit, and stay as they are where they must."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from serried.views.report.differences import (
    BEFORE,
    PLACES,
    RANKS_MOST,
    ColumnPlace,
    as_differences,
)
from serried.views.web.wire.payload import pack
from tests.conftest import Call

RANKS = np.repeat(np.arange(500, dtype=np.int32), 4)


def restored(body: bytes, places: list[ColumnPlace]) -> bytes:
    """Returns what ``static/base/kept.js`` makes of an answer."""
    whole = bytearray(body)
    types = {"u16": "<u2", "i32": "<i4", "f64": "<f8"}
    for kind, at, length, ranks_at in places:
        column = np.frombuffer(whole, types[kind], length, at)
        if ranks_at == BEFORE:
            back = np.cumsum(column, dtype=column.dtype)
        else:
            own = np.arange(length, dtype="<i4")
            ranks = own if ranks_at == PLACES else np.frombuffer(whole, "<i4", length, ranks_at)
            back = np.where(column < 0, column, (column + ranks) & RANKS_MOST).astype("<i4")
        whole[at : at + column.nbytes] = back.tobytes()
    return bytes(whole)


def test_columns_come_back_to_the_bit_peers_by_their_ranks() -> None:
    peer = np.where(np.arange(2000) % 3 == 0, -1, (RANKS + 4096) % 5000).astype(np.int32)
    times = np.cumsum(np.arange(2000) % 7).astype(np.float64) * 1000
    message = pack({}, {"rank": RANKS, "peer": peer, "start_ns": times})
    body, places = as_differences(message)
    assert len(body) == len(message)
    assert {(each.type, each.ranks_at < 0) for each in places} >= {("i32", False), ("f64", True)}
    assert restored(body, places) == message


def test_entries_that_name_others_of_their_column_are_written_by_how_far_they_are() -> None:
    own = np.arange(2000, dtype=np.int32)
    source = np.where(own % 5 == 0, -1, (own * own + 816) % 7 + own).astype(np.int32)
    microbatch = (own % 1536).astype(np.uint16)
    message = pack({}, {"source": source, "microbatch": microbatch})
    body, places = as_differences(message)
    assert [(each.type, each.ranks_at) for each in places] == [("i32", PLACES), ("u16", BEFORE)]
    assert restored(body, places) == message


@pytest.mark.parametrize(
    "column",
    [
        np.array([-(2**31), 2**31 - 1] * 1000, dtype=np.int32),
        np.linspace(0, 1, 2000) ** 3,
        np.array([np.nan, np.inf, -np.inf, -0.0, 0.0] * 400),
        np.array([1e300, 1.0] * 1000),
        np.array([], dtype=np.int32),
    ],
)
def test_numbers_of_any_size_come_back_to_the_bit(column: np.ndarray) -> None:
    message = pack({}, {"rank": RANKS, "other": column})
    assert restored(*as_differences(message)) == message


@pytest.mark.parametrize("body", [b"", b"{}", b'{"ok": "OK"}', b"\xff\xff\xff\xff{", b"\0" * 64])
def test_what_is_no_payload_stays_as_it_is(body: bytes) -> None:
    assert as_differences(body) == (body, [])


def test_a_report_grows_by_little_for_each_rank_of_a_planned_step(
    serried: Call, tmp_path: Path
) -> None:
    asked = ["--model", "llama3-70b", "--cluster", "dgx-h100", "--sequence", "4096"]
    sizes = {}
    for ranks, batch in ((64, 4), (256, 16)):
        layout = ["--world-size", str(ranks), "--tp", "8", "--pp", "4"]
        step = str(tmp_path / f"{ranks}.json")
        serried("plan", *asked, *layout, "--global-batch", str(batch), "--trace", step)
        serried("report", step, "-o", str(tmp_path / f"{ranks}.html"))
        sizes[ranks] = (tmp_path / f"{ranks}.html").stat().st_size
    a_rank = (sizes[256] - sizes[64]) / (256 - 64)
    # 16,384 ranks of 12 spans are to stay below 1 MB, beside what a report of few ranks takes.
    assert sizes[64] + a_rank * 16_384 < 1_000_000
