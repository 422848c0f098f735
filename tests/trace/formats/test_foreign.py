"""Ranks of other tools' files stand where their stages say, and damaged numbers are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from serried.action import ActionKind
from serried.errors import InputError
from serried.trace.formats.foreign import (
    ForeignSpan,
    foreign_trace,
    pipelines,
    spans_of,
    with_peers,
)
from serried.trace.model.laid_out import laid_out, told_to_ns
from serried.trace.store.folder import read_store, write_store


def forward(rank: int, stage: int) -> ForeignSpan:
    return ForeignSpan(rank, stage, ActionKind.F, 0, 0, 0, 10)


def test_a_rank_without_spans_changes_nobodys_place() -> None:
    rows = [forward(0, 0), forward(1, 0), forward(2, 1)]  # rank 3, of stage 1, left no file
    layout = pipelines(rows, 4, None)
    assert layout.groups("pp").lists() == [[0, 2], [1, 3]]


def test_ranks_of_one_stage_are_replicas_in_megatrons_order() -> None:
    layout = pipelines([forward(rank, 0) for rank in range(8)], 8, None)
    assert (layout.framework, layout.sizes["dp"], layout.sizes["pp"]) == ("megatron", 8, 1)


def test_a_stage_without_spans_is_still_a_stage() -> None:
    layout = pipelines([forward(0, 0), forward(2, 2)], 4, None)
    assert layout.groups("pp").lists() == [[0, 1, 2, 3]]


@pytest.mark.parametrize(
    ("stages", "columns"),
    [
        ((0, 0, 1, 1, 0, 0, 1, 1), [[0, 2], [1, 3], [4, 6], [5, 7]]),
        ((0, 1, 0, 1, 0, 1, 0, 1), [[0, 1], [2, 3], [4, 5], [6, 7]]),
        ((0, 0, 0, 0, 1, 1, 1, 1), [[0, 4], [1, 5], [2, 6], [3, 7]]),
        ((0, None, 1, 1, None, 0, 1, None), [[0, 2], [1, 3], [4, 6], [5, 7]]),
        ((0, 1, 2, 3, 0, 1, 2, 3), [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ((0, 0, 0, 0, 0, 0, 0, 0), [[0], [1], [2], [3], [4], [5], [6], [7]]),
    ],
)
def test_pipelines_go_through_ranks_of_the_same_place_beside_their_like(
    stages: tuple[int | None, ...], columns: list[list[int]]
) -> None:
    rows = [forward(rank, stage) for rank, stage in enumerate(stages) if stage is not None]
    layout = pipelines(rows, len(stages), None)
    kind = layout.kind_of("pp")
    found = [layout.groups_of(rank)[kind][0] for rank in range(8)] if len(columns) < 8 else columns
    assert sorted({tuple(group) for group in found}) == [tuple(column) for column in columns]


@pytest.mark.parametrize(
    "stages",
    [(0, 1, 0, 1), (0, 0, 1, 1), (0, 0, 1, 1, 0, 0, 1, 1)],
    ids=["custom", "megatron", "tensor"],
)
def test_a_store_keeps_the_layout_that_was_inferred(
    tmp_path: Path, stages: tuple[int, ...]
) -> None:
    pytest.importorskip("pyarrow")
    rows = [forward(rank, stage) for rank, stage in enumerate(stages)]
    layout = pipelines(rows, len(rows), None)
    trace = foreign_trace("a", layout, {"": range(len(rows))}, spans_of(rows))
    write_store(trace, tmp_path / "a.store")
    again = read_store(tmp_path / "a.store").layout
    assert again is not None
    assert again.groups("pp").lists() == layout.groups("pp").lists()


@pytest.mark.parametrize(
    ("ranks", "stages", "columns"),
    [
        ((0, 2, 4, 6), (0, 0, 1, 1), [[0, 4], [2, 6]]),
        ((1, 5, 9, 13), (0, 1, 0, 1), [[1, 5], [9, 13]]),
        ((0, 1, 2), (0, 0, 1), [[0, 2]]),
        ((3, 9, 10, 40), (1, 0, 0, 1), [[9, 3], [10, 40]]),
    ],
    ids=["every other", "of tensor groups", "without the last", "anywhere"],
)
def test_ranks_with_gaps_are_paired_by_their_stages(
    ranks: tuple[int, ...], stages: tuple[int, ...], columns: list[list[int]]
) -> None:
    rows = [forward(rank, stage) for rank, stage in zip(ranks, stages, strict=True)]
    layout = pipelines(rows, None, None)
    found = [group for group in layout.groups("pp").lists() if {*group} <= {*ranks}]
    assert found == columns
    assert with_peers([rows[0]._replace(kind=ActionKind.SEND_F)], layout)[0].peer in ranks


@pytest.mark.parametrize(
    ("machines", "node_of"),
    [
        ({"a": (0, 2), "b": (8, 10)}, {0: 0, 2: 0, 8: 1, 10: 1}),
        ({"a": range(4), "b": range(4, 8)}, {0: 0, 3: 0, 4: 1, 7: 1}),
        ({"": (0, 2, 14)}, {0: 0, 14: 0}),
    ],
    ids=["with gaps", "without", "one machine"],
)
def test_a_rank_without_a_file_moves_no_rank_to_another_node(
    machines: dict[str, Sequence[int]], node_of: dict[int, int]
) -> None:
    ranks = [rank for mine in machines.values() for rank in mine]
    rows = [forward(rank, 0) for rank in ranks]
    layout = laid_out("megatron", 16, {"dp": 16})
    trace = foreign_trace("any", layout, machines, spans_of(rows))
    assert {rank: trace.placement.node(rank) for rank in node_of} == node_of


def test_messages_go_round_the_pipeline_to_the_next_rank() -> None:
    rows = [ForeignSpan(rank, rank, ActionKind.SEND_F, 0, 0, 0, 1) for rank in range(3)]
    assert [row.peer for row in with_peers(rows, laid_out("megatron", 3, None))] == [1, 2, 0]


@pytest.mark.parametrize(
    ("stamp", "unit_ns"),
    [
        (lambda ns: ns, 1),
        (lambda ns: ns // 1_000 * 1_000, 1_000),
        (lambda ns: ns // 1_000_000 * 1_000_000, 1_000),
        # Milliseconds since 1970 as a double, as Paddle prints them.
        (lambda ns: int(f"{ns // 1_000 / 1e3:.6f}".replace(".", "")), 1_000),
    ],
)
def test_a_trace_knows_how_finely_its_times_are_told(
    stamp: Callable[[int], int], unit_ns: int
) -> None:
    rng = np.random.default_rng(1)
    times = [1_700_000_000_000_000_000 + int(each) for each in rng.integers(0, 10**9, 40)]
    rows = [
        ForeignSpan(0, 0, ActionKind.F, at, 0, stamp(ns), stamp(ns + 77_777))
        for at, ns in enumerate(sorted(times))
    ]
    assert told_to_ns(spans_of(rows)) == unit_ns


@pytest.mark.parametrize("name", ["rank", "stage", "microbatch", "step", "start_ns", "end_ns"])
def test_a_number_beyond_all_bounds_is_named(name: str) -> None:
    row = ForeignSpan(**{**forward(0, 0)._asdict(), name: 10**30})
    with pytest.raises(InputError, match=f"{name} 1\\d+ is beyond .* a trace can hold"):
        spans_of([row])


def test_a_world_larger_than_any_is_refused_before_it_is_laid_out() -> None:
    with pytest.raises(InputError, match="rank 2147483646 is beyond 262143"):
        pipelines([forward(2**31 - 2, 0)], 2**31 - 1, None)
