"""A document read piece by piece is the one that json reads whole, in the memory of one value."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.trace.formats.event_file import read_event_file
from serried.trace.formats.json_stream import JsonStream, LongValueError

SAMPLES = Path(__file__).parents[2] / "goldens" / "traces"
FILES = sorted(
    path
    for tool in ("kineto", "megatronapp", "paddle")
    for path in (SAMPLES / tool).rglob("*.json*")
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def pieces(data: bytes, length: int) -> Iterator[bytes]:
    return (data[at : at + length] for at in range(0, len(data), length))


def read_whole(document: JsonStream) -> Any:
    """Reads a document by its members and entries, as far as it has any."""
    if document.next() == "{":
        return {key: document.value() for key in document.members()}
    return [*document.entries()] if document.next() == "[" else document.value()


@given(VALUES, st.integers(1, 40), st.sampled_from([None, 1]))
def test_what_is_read_is_what_json_reads(value: Any, length: int, indent: int | None) -> None:
    data = json.dumps(value, indent=indent).encode()
    document = JsonStream(pieces(data, length), 10**6)
    assert read_whole(document) == json.loads(data)
    assert document.next() == ""


@given(VALUES, st.data())
def test_a_document_cut_anywhere_is_none(value: Any, data: st.DataObject) -> None:
    whole = json.dumps([value]).encode()
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(json.JSONDecodeError):
        read_whole(JsonStream(pieces(cut, 7), 10**6))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_samples_are_read_as_json_reads_them(path: Path) -> None:
    data = path.read_bytes()
    whole = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    events = whole["traceEvents"] if isinstance(whole, dict) else whole
    found = read_event_file(path)
    assert found.events == events
    assert [found.num_events, found.cut_off] == [len(events), False]
    if isinstance(whole, dict):
        assert found.about == {key: each for key, each in whole.items() if key != "traceEvents"}


def test_a_long_array_takes_the_memory_of_a_piece() -> None:
    entry = b'{"name": "aten::mm", "args": {"dims": [[32, 128], [128, 128]]}}, ' * 1000
    document = JsonStream((b"[", *[entry] * 25, b"0]"), 10**6)
    tracemalloc.start()
    try:
        assert sum(1 for _ in document.entries()) == 25_001
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 5 * len(entry)


def test_a_value_longer_than_the_limit_is_refused_before_it_is_held() -> None:
    taken = []

    def endless() -> Iterator[bytes]:
        while True:
            taken.append(1000)
            yield b"[" + b"0," * 500 if len(taken) == 1 else b"0," * 500

    document = JsonStream(endless(), 50_000)
    with pytest.raises(LongValueError):
        document.value()
    assert sum(taken) < 200_000
