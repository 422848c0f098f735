"""What spans carry of a traffic file: their bytes added up, and the group that all are over."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.action import ActionKind
from serried.errors import InputError
from serried.trace.model import traffic
from serried.trace.model.span_groups import SpanGroup, SpanTraffic
from serried.trace.model.traffic import CollectiveMove, TrafficWriter, read_traffic

GATHER, REDUCE = ActionKind.ALL_GATHER, ActionKind.ALL_REDUCE
MOVES = st.lists(
    st.builds(
        CollectiveMove,
        st.sampled_from((GATHER, REDUCE)),
        st.sampled_from(((0, 1), (0, 2), (0, 1, 2, 3))),
        st.integers(0, 1 << 40),
        st.integers(0, 8),
    ),
    max_size=20,
).map(lambda moves: sorted(moves, key=lambda move: move.span))


def written(folder: Path, moves: list[CollectiveMove]) -> Path:
    record = folder / "rank-00000.spans"
    writer = TrafficWriter(record)
    for move in moves:
        writer.add(move.span + 1, [move])
    writer.close()
    return record


def of_span(moves: list[CollectiveMove], span: int) -> tuple[int, SpanGroup | None]:
    """Returns what a span carries, worked out move by move."""
    mine = [move for move in moves if move.span == span]
    alike = {(move.kind, move.ranks) for move in mine}
    group = SpanGroup(mine[0].kind, mine[0].ranks, len(mine)) if len(alike) == 1 else None
    return sum(move.size_bytes for move in mine) if mine else -1, group


@given(moves=MOVES, at_once=st.integers(1, 9), piece=st.integers(1, 64))
def test_a_span_carries_the_bytes_and_the_group_of_its_collectives(
    tmp_path_factory: pytest.TempPathFactory,
    moves: list[CollectiveMove],
    at_once: int,
    piece: int,
) -> None:
    path = written(tmp_path_factory.mktemp("moves"), moves).with_suffix(".traffic")
    found: list[tuple[int, SpanGroup | None]] = []
    if not path.exists():
        return
    with pytest.MonkeyPatch.context() as patch, path.open("rb") as file:
        patch.setattr(traffic, "_PIECE_BYTES", piece)
        told = SpanTraffic(path, file, {})
        for first in range(0, 9, at_once):
            sizes, groups = told.columns(first, min(at_once, 9 - first))
            names = [*told.numbers]
            found += [
                (size, names[group] if group >= 0 else None)
                for size, group in zip(sizes.tolist(), groups.tolist(), strict=True)
            ]
    assert found == [of_span(moves, span) for span in range(9)]
    with path.open("rb") as file:
        whole = SpanTraffic(path, file, {})
        whole.read_all()
    assert {*whole.numbers} == {group for _, group in found if group}


def test_collectives_out_of_the_order_of_spans_are_refused(tmp_path: Path) -> None:
    moves = [CollectiveMove(GATHER, (0, 1), 8, span) for span in (3, 1)]
    record = written(tmp_path, moves)
    assert len(read_traffic(record)) == 2
    with record.with_suffix(".traffic").open("rb") as file:
        told = SpanTraffic("a.traffic", file, {})
        with pytest.raises(InputError, match=r"a\.traffic is damaged: its collectives are not in"):
            told.columns(0, 9)
