"""A guard's file reads back as it was written, at any instant and cut off anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.diagnose.evidence.records.guard_file import (
    HEADER_BYTES,
    OPS,
    GuardedGroup,
    GuardHeader,
    guard_file,
    packed_place,
    ranges_of,
    read_guard_file,
    unpacked_place,
)
from serried.errors import InputError
from serried.runtime.guard.operations import OperationLog
from serried.trace.model.record import RecordHeader, TracedJob

ALL_REDUCE, SEND = OPS.index("all_reduce"), OPS.index("send")
JOB = TracedJob("custom", 8, {"dp": 4, "pp": 2}, "", "1f1b", 4)


def header(rank: int = 3, num_rows: int = 16) -> GuardHeader:
    return GuardHeader(RecordHeader("run", rank, JOB), 7, 8, rank, 8, num_rows=num_rows)


def written(folder: Path, count: int = 5, num_rows: int = 16) -> OperationLog:
    log = OperationLog(folder, header(num_rows=num_rows))
    dp = log.add_group(GuardedGroup("4", (1, 3, 5, 7), "dp", "gloo"))
    log.begin_step(12)
    for seq in range(1, count + 1):
        log.end(log.begin(ALL_REDUCE, dp, seq, -1, 10, 10, 1))
        log.count(dp, seq)
    return log


def test_operations_that_ended_and_one_that_is_waited_in_read_back(tmp_path: Path) -> None:
    log = written(tmp_path)
    place = packed_place(1, 2, is_backward=True)
    number = log.begin(SEND, 1, -1, 5, 64, -1, 4, place)
    file = read_guard_file(log.path)
    assert file.waits_in == number == 6
    assert file.groups == (GuardedGroup("4", (1, 3, 5, 7), "dp", "gloo"),)
    assert (file.counts, file.step, file.is_cut_off) == ({"4": 5}, 12, False)
    assert file.rows["seq"].tolist() == [1, 2, 3, 4, 5, -1]
    assert (file.rows["ended_ns"] > 0).tolist() == [True] * 5 + [False]
    last = file.rows[-1]
    assert (int(last["peer"]), int(last["numel_in"])) == (5, 64)
    assert unpacked_place(int(last["place"])) == (1, 2, True)


def test_a_ring_holds_the_last_operations_in_their_order(tmp_path: Path) -> None:
    log = written(tmp_path, count=100)
    file = read_guard_file(log.path)
    assert file.rows["seq"].tolist() == list(range(85, 101))
    assert file.num_begun == 100
    log.end(3)  # long gone from the ring: the end of another operation must not be written over
    assert read_guard_file(log.path).rows["number"].tolist() == list(range(85, 101))


def test_a_call_that_came_back_is_not_waited_in_until_it_is_waited_for(tmp_path: Path) -> None:
    log = written(tmp_path)
    number = log.begin(ALL_REDUCE, 1, 6)
    log.returned()
    assert read_guard_file(log.path).waits_in == 0
    log.wait(number)
    assert read_guard_file(log.path).waits_in == number
    log.end(number)
    assert read_guard_file(log.path).waits_in == 0


def test_a_new_run_replaces_what_an_earlier_one_left(tmp_path: Path) -> None:
    written(tmp_path)
    OperationLog(tmp_path, header())
    assert read_guard_file(tmp_path / "rank-00003.guard").num_begun == 0
    assert [path.name for path in tmp_path.iterdir()] == ["rank-00003.guard"]


@given(st.data())
def test_a_file_cut_off_anywhere_gives_what_came_before_or_one_sentence(
    data: st.DataObject,
) -> None:
    raw = WHOLE[: data.draw(st.integers(0, len(WHOLE)))]
    try:
        file = guard_file("cut", raw)
    except InputError:
        assert len(raw) < HEADER_BYTES
        return
    assert file.is_cut_off is (len(file.rows) < 5)
    assert file.rows["seq"].tolist() == list(range(1, 6))[: len(file.rows)]


@given(st.data())
def test_damaged_bytes_are_read_or_refused_and_never_raise_anything_else(
    data: st.DataObject,
) -> None:
    raw = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 8))):
        raw[data.draw(st.integers(0, 6000))] = data.draw(st.integers(0, 255))
    try:
        file = guard_file("damaged", bytes(raw))
    except InputError:
        return
    assert len(file.rows) <= file.header.num_rows


def test_another_file_is_refused_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "x.guard").write_text("hello")
    with pytest.raises(InputError, match=r"x\.guard is not a file of serried's guard"):
        read_guard_file(tmp_path / "x.guard")


@given(st.sets(st.integers(0, 60)).map(lambda ranks: tuple(sorted(ranks))))
def test_ranges_hold_the_ranks_that_they_were_made_of(ranks: tuple[int, ...]) -> None:
    assert tuple(r for each in ranges_of(ranks) for r in range(*each)) == ranks


def _whole() -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return written(Path(folder)).path.read_bytes()


WHOLE = _whole()
