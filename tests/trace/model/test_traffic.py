"""What collectives moved, beside a rank's spans: written in order, read up to what was torn."""

from __future__ import annotations

import errno
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.action import ActionKind
from serried.errors import InputError
from serried.trace.model.traffic import (
    MAGIC,
    RECORD,
    CollectiveMove,
    TrafficWriter,
    read_traffic,
)

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

KINDS = (ActionKind.ALL_GATHER, ActionKind.REDUCE_SCATTER, ActionKind.ALL_REDUCE)
MOVES = st.builds(
    CollectiveMove,
    st.sampled_from(KINDS),
    st.lists(st.integers(0, 1 << 20), min_size=1, max_size=6, unique=True).map(tuple),
    st.integers(0, 1 << 50),
    st.integers(0, 1 << 30),
)


def written(folder: Path, moves: list[CollectiveMove]) -> Path:
    record = folder / "rank-00000.spans"
    writer = TrafficWriter(record)
    for move in moves:
        writer.add(move.span + 1, [move])
    writer.close()
    return record


@given(moves=st.lists(MOVES, max_size=12))
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, moves: list[CollectiveMove]
) -> None:
    record = written(tmp_path_factory.mktemp("traffic"), moves)
    assert list(read_traffic(record)) == moves


def test_a_rank_without_collectives_has_no_file(tmp_path: Path) -> None:
    assert read_traffic(written(tmp_path, [])) == ()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_rank_left_half_written_is_left_out(tmp_path: Path) -> None:
    moves = [CollectiveMove(KINDS[i % 3], (i, i + 1), 100 * i, i) for i in range(4)]
    record = written(tmp_path, moves)
    path = record.with_suffix(".traffic")
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        found = list(read_traffic(record))
        assert found == moves[: len(found)]


class CrampedFile(FileIO):
    """Takes a part of what is written once ``room`` bytes are there, as a disk does that fills."""

    room = 0

    def write(self, data: ReadableBuffer) -> int:
        return super().write(bytes(data)[: max(0, self.room - self.tell())])


@pytest.mark.parametrize("room", range(0, 60, 7))
def test_moves_that_find_a_full_disk_leave_none_of_their_bytes(tmp_path: Path, room: int) -> None:
    moves = [CollectiveMove(KINDS[i], (i, i + 1), 100 * i, i) for i in range(3)]
    record = tmp_path / "rank-00000.spans"
    writer = TrafficWriter(record)
    writer._file = CrampedFile(record.with_suffix(".traffic"), "w")
    writer._file.room = room
    kept = []
    for move in moves:
        try:
            writer.add(move.span + 1, [move])
            kept.append(move)
        except OSError as problem:
            assert problem.errno == errno.ENOSPC
    assert list(read_traffic(record)) == kept != moves
    writer._file.room = 1 << 20
    writer.add(3, [moves[2]])
    writer.close()
    assert list(read_traffic(record)) == [*kept, moves[2]]


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"something else", "does not say what collectives moved"),
        (MAGIC + RECORD.pack(1, 16, 7, 100), "at byte 8 is no collective"),
        (MAGIC + RECORD.pack(0, 0, 1, 1) + b"0" + RECORD.pack(1, 999, 1, 4), "is no collective"),
        (MAGIC + RECORD.pack(0, 0, 1, 3) + b"a,b", "is damaged, or of a newer serried"),
        (MAGIC + RECORD.pack(0, 0, 1, -5), "at byte 8 is no collective"),
    ],
)
def test_a_file_of_something_else_is_refused_in_a_sentence(
    tmp_path: Path, raw: bytes, sentence: str
) -> None:
    record = tmp_path / "rank-00000.spans"
    record.with_suffix(".traffic").write_bytes(raw)
    with pytest.raises(InputError, match=sentence):
        read_traffic(record)
