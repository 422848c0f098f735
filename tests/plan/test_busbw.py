"""The busbw table: nccl-tests' conventions, what lies between measured sizes, and its file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from serried.errors import InputError
from serried.plan.busbw import BusbwRow, BusbwTable, from_document, read_busbw, to_document

TABLE = BusbwTable(
    "two hosts",
    (
        BusbwRow("all_reduce", 4, 1, 2, 1_000, 1_000.0),
        BusbwRow("all_reduce", 4, 1, 2, 100_000, 10_000.0),
        BusbwRow("all_reduce", 4, 1, 1, 100_000, 12_000.0),
        BusbwRow("all_reduce", 8, 2, 1, 1_000, 8_000.0),
        BusbwRow("sendrecv", 2, 2, 4, 1_000, 2_000.0),
    ),
)


def test_busbw_of_an_all_reduce_counts_every_byte_twice_but_a_share() -> None:
    row = TABLE.rows[1]
    assert row.algbw_bytes_per_s == pytest.approx(1e10)
    assert row.busbw_bytes_per_s == pytest.approx(1.5e10)


def test_a_measured_size_gives_back_its_time() -> None:
    assert TABLE.time_ns("all_reduce", ranks=4, nodes=1, size_bytes=1_000) == pytest.approx(1_000)


def test_of_two_rows_of_one_shape_and_size_the_slower_counts() -> None:
    assert TABLE.time_ns("all_reduce", ranks=4, nodes=1, size_bytes=100_000) == pytest.approx(
        12_000
    )


def test_between_two_sizes_bandwidth_follows_their_logarithms() -> None:
    low, high = (
        TABLE.busbw("all_reduce", ranks=4, nodes=1, size_bytes=n) for n in (1_000, 100_000)
    )
    middle = TABLE.busbw("all_reduce", ranks=4, nodes=1, size_bytes=10_000)
    assert middle == pytest.approx((low * high) ** 0.5)


def test_beyond_the_sizes_the_nearest_one_counts() -> None:
    busbw = [TABLE.busbw("all_reduce", ranks=4, nodes=1, size_bytes=n) for n in (1, 1_000)]
    assert busbw[0] == busbw[1]


def test_groups_across_nodes_are_never_read_from_groups_on_one() -> None:
    across = TABLE.busbw("all_reduce", ranks=4, nodes=4, size_bytes=1_000)
    assert across == pytest.approx(TABLE.rows[3].busbw_bytes_per_s)


def test_an_operation_that_was_not_measured_is_refused() -> None:
    with pytest.raises(InputError) as refused:
        TABLE.busbw("sendrecv", ranks=2, nodes=1, size_bytes=1)
    assert str(refused.value) == (
        "sendrecv was not measured on one node; this table has all_reduce, sendrecv"
    )


def test_a_table_comes_back_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "busbw.json"
    path.write_text(json.dumps(to_document(TABLE)))
    assert read_busbw(path) == TABLE


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x", "t.json is no JSON: Expecting value: line 1 column 1 (char 0)"),
        (
            '{"schema": "other"}',
            "t.json is no busbw table: its schema is not serried.busbw/1; "
            "serried check --busbw writes one",
        ),
        ('{"schema": "serried.busbw/1"}', "t.json has no list of rows"),
    ],
)
def test_a_file_that_holds_no_table_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(InputError) as refused:
        read_busbw(tmp_path / "t.json")
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("operation", "gossip", "all_reduce, all_gather, reduce_scatter, all_to_all, sendrecv"),
        ("ranks", 0, "a number above 0"),
        ("ranks", 2.5, "a number above 0"),
        ("time_ns", "long", "a number above 0"),
        ("size_bytes", True, "a number above 0"),
    ],
)
def test_a_value_that_cannot_be_is_named_with_its_row(key: str, value: object, wanted: str) -> None:
    document = to_document(TABLE)
    document["rows"][1][key] = value
    with pytest.raises(InputError) as refused:
        from_document(document, "t.json")
    assert str(refused.value) == f"t.json, row 1: {key} is {value}; it is {wanted}"


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        read_busbw(tmp_path / "none.json")
    assert str(refused.value) == f"{tmp_path}/none.json cannot be read: No such file or directory"
