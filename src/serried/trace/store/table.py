"""Store table: spans as Parquet and back, a file per node, in row groups of one rank or a few.

Times are delta encoded and words dictionary encoded, then all is compressed by zstd: a span
takes about ten bytes. What a span has none of (the stage of an optimizer, the microbatch of a
reduction, the peer of a computation, the bytes of what is no collective) is NULL; stores that were
written as ``serried.trace/1`` hold -1 there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from serried.action import ActionKind, Spans
from serried.errors import EnvironmentProblem, InputError
from serried.limits import PARQUET_VALUES
from serried.trace.model.span_groups import SpanGroup
from serried.trace.model.tracks import actions_of

ROWS_A_GROUP = 65_536
"""The most rows of a row group: what is read at least of a rank's spans."""

_PLAIN = ("rank", "step", "stage", "microbatch", "peer", "start_ns", "end_ns")
_TIMES = ("start_ns", "end_ns")
_OFTEN_ABSENT = ("step", "stage", "microbatch", "peer", "bytes", "group_number")
_MOVED = {"bytes": "size_bytes", "group_number": "group"}
"""What collectives moved, by the names of columns; a store of before 2026-11-23 lacks them."""
_LONG = (*_TIMES, "bytes")
_ABSENT = -1
_SURE_VALUES = 2_000_000


def require_pyarrow() -> None:
    """Raises EnvironmentProblem where pyarrow is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise EnvironmentProblem(
            "the store is Parquet, which needs pyarrow; pip install 'serried[trace]' brings it"
        ) from error


def write_spans(
    sink: Path | BinaryIO, blocks: Iterable[Spans], groups: Sequence[SpanGroup] = ()
) -> None:
    """Writes one Parquet file of ``blocks``, which hold whole ranks or parts of one, in order.

    ``groups`` are those of the trace, whose words stand beside their numbers. Raises OSError when
    it cannot be written.
    """
    from pyarrow import parquet

    encodings = dict.fromkeys(_TIMES, "DELTA_BINARY_PACKED")
    words = [name for name in (*_PLAIN, "kind", "action", *_WORDS) if name not in _TIMES]
    writer = None
    try:
        for spans in _groups(blocks):
            table = _table(spans, groups)
            # The schema is known with the first table.
            writer = writer or parquet.ParquetWriter(
                sink,
                table.schema,
                compression="zstd",
                use_dictionary=words,
                column_encoding=encodings,
            )
            writer.write_table(table, row_group_size=ROWS_A_GROUP)
    finally:
        if writer:
            writer.close()


def read_table(path: Path) -> Any:
    """Returns a Parquet file as an Arrow table; raises what Arrow does where it is none.

    Values that repeat take next to no bytes. Raises InputError for a file that says it holds so
    many to each of its bytes as no recorded run does: they would fill the memory.
    """
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        about = file.metadata
        groups = [about.row_group(at) for at in range(about.num_row_groups)]
        # The footer tells this before anything is unpacked.
        values = sum(
            group.column(at).num_values for group in groups for at in range(group.num_columns)
        )
        if values > _SURE_VALUES + PARQUET_VALUES.most * path.stat().st_size:
            raise InputError(
                "{path} says that it holds {values} values, more than {limit} for each of its "
                "bytes, which no trace does; it was not read",
                path=path,
                values=values,
                limit=PARQUET_VALUES.most,
            )
        return file.read()


def read_spans(path: Path) -> Spans:
    """Reads a file back; raises what Arrow and numpy do where it is none, and TypeError."""
    table = read_table(path)
    columns = {name: _numbers(table, name) for name in _PLAIN}
    told = {of: name for name, of in _MOVED.items() if name in table.column_names}
    columns |= {of: _numbers(table, name) for of, name in told.items()}
    kinds = table["kind"].combine_chunks()
    chunks = kinds.chunks if hasattr(kinds, "chunks") else [kinds]
    # Words are looked up once for each dictionary, and not for each row.
    numbers = [
        np.array([ActionKind[name] for name in chunk.dictionary.to_pylist()], dtype=np.int32)[
            chunk.indices.to_numpy()
        ]
        for chunk in chunks
    ]
    return Spans(kind=np.concatenate(numbers), **columns)


def _numbers(table: Any, name: str) -> np.ndarray[Any, Any]:
    """Returns a column of whole numbers; raises TypeError for any other, and for absent times."""
    import pyarrow as pa

    column, kind = table[name], pa.int64() if name in _LONG else pa.int32()
    if column.type != kind or (column.null_count and name not in _OFTEN_ABSENT):
        raise TypeError(name)
    return np.asarray(column.fill_null(_ABSENT).to_numpy())


def _groups(blocks: Iterable[Spans]) -> Iterator[Spans]:
    """Yields the rows of ``blocks`` in order, so many at once as a row group takes."""
    waiting: list[Spans] = []
    count = 0
    for piece in _pieces(blocks):
        # A rank is cut only where it alone is longer than a group.
        if count + len(piece) > ROWS_A_GROUP:
            yield _one_after_another(waiting)
            waiting, count = [], 0
        waiting.append(piece)
        count += len(piece)
    if waiting:
        yield _one_after_another(waiting)


def _pieces(blocks: Iterable[Spans]) -> Iterator[Spans]:
    for block in blocks:
        for first in range(0, len(block), ROWS_A_GROUP):
            yield block.where(np.arange(first, min(first + ROWS_A_GROUP, len(block))))


def _one_after_another(parts: list[Spans]) -> Spans:
    if len(parts) == 1:
        return parts[0]
    tables = [part.columns() for part in parts]
    return Spans(*(np.concatenate([table[name] for table in tables]) for name in tables[0]))


def _table(spans: Spans, groups: Sequence[SpanGroup]) -> Any:
    """Returns spans as an Arrow table."""
    import pyarrow as pa

    kinds = np.array([kind.name for kind in ActionKind])
    at = np.searchsorted(list(ActionKind), spans.kind).astype(np.int8)
    code, texts = actions_of(spans)
    columns = {name: _column(spans, name) for name in _PLAIN[:3]}
    columns["kind"] = pa.DictionaryArray.from_arrays(pa.array(at), pa.array(kinds))
    columns |= {name: _column(spans, name) for name in _PLAIN[3:5]}
    columns["action"] = pa.DictionaryArray.from_arrays(
        pa.array(code.astype(np.int32)), pa.array(texts)
    )
    columns |= {name: _column(spans, name) for name in _PLAIN[5:]}
    columns |= {name: _column(spans, name, of) for name, of in _MOVED.items()}
    group = pa.array(spans.group, mask=spans.group == _ABSENT)
    for name, word in _WORDS.items():
        told = pa.array([word(each) for each in groups], pa.string())
        columns[name] = pa.DictionaryArray.from_arrays(group, told)
    return pa.table(columns)


_WORDS: dict[str, Callable[[SpanGroup], str]] = {
    "collective": lambda group: group.kind.name,
    "group": lambda group: ",".join(map(str, group.ranks)),
}
"""What a table engine groups by, dictionary encoded."""


def _column(spans: Spans, name: str, of: str = "") -> Any:
    """Returns a column as Arrow's, NULL where a span has none of it; ``of`` is its name here."""
    import pyarrow as pa

    values = getattr(spans, of or name)
    return pa.array(values, mask=values == _ABSENT if name in _OFTEN_ABSENT else None)
