"""A payload comes back as it went: names, types, values, and nothing over."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.views.web.wire.payload import SCHEMA, pack
from tests.views.web.reader import read


@given(
    st.dictionaries(st.text(max_size=9), st.text(max_size=30), max_size=4),
    st.lists(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=9), max_size=5),
)
def test_headers_and_columns_survive_the_way(
    header: dict[str, str], lists: list[list[int]]
) -> None:
    columns = {f"c{i}": np.array(each, dtype=np.int32) for i, each in enumerate(lists)}
    header = {f"x{key}": value for key, value in header.items()}
    message = read(pack(header, columns))
    assert {key: message.header[key] for key in header} == header
    assert {name: column.tolist() for name, column in message.columns.items()} == {
        name: column.tolist() for name, column in columns.items()
    }


def test_the_version_stands_in_the_header() -> None:
    assert read(pack({}, {})).header == {"schema": SCHEMA, "columns": []}


@pytest.mark.parametrize(
    ("column", "code"),
    [
        (np.array([1, 255], dtype=np.uint8), "u8"),
        (np.array([-1], dtype=np.int32), "i32"),
        (np.array([0xFFFFFF], dtype=np.uint32), "u32"),
        (np.array([2**52], dtype=np.int64), "f64"),
        (np.array([0.5]), "f64"),
    ],
)
def test_a_column_travels_in_the_smallest_type_that_holds_it(
    column: np.ndarray[tuple[int], np.dtype[np.generic]], code: str
) -> None:
    message = read(pack({}, {"a": column}))
    assert message.header["columns"][0]["type"] == code
    assert message.columns["a"].tolist() == column.tolist()


def test_a_column_is_sent_in_its_own_order_when_it_is_a_stride_of_another() -> None:
    assert read(pack({}, {"a": np.arange(6, dtype=np.int32)[::-2]})).columns["a"].tolist() == [
        5,
        3,
        1,
    ]


def test_a_header_without_meaning_in_json_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        pack({"bubble": float("nan")}, {})
