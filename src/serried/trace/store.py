"""The store: a run's spans as partitioned Parquet, which every table engine opens.

    run.store/
    ├── _serried.json             run, job, hosts, clocks, what was missing or torn
    ├── node=0/spans.parquet      rank step stage kind microbatch peer action start_ns end_ns
    └── node=1/spans.parquet      by rank and start; row groups of one rank or a few

Times are nanoseconds on the common clock from 0; ``base_ns`` in ``_serried.json`` is the wall
time of 0. ``kind`` and ``action`` are words (``F``, ``3F2``), dictionary encoded.

    duckdb   select rank, sum(end_ns - start_ns) from 'run.store/*/spans.parquet'
             where kind = 'F' group by rank
    polars   pl.scan_parquet("run.store/*/spans.parquet", hive_partitioning=True)
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serried.errors import EnvironmentProblem, InputError
from serried.finding import Finding, Sentence
from serried.span import ActionKind, Spans
from serried.trace.merge import Host, HostClock, Trace, layout_of
from serried.trace.record import Job
from serried.trace.tracks import actions_of

SCHEMA = "serried.trace/1"
ABOUT, PART = "_serried.json", "spans.parquet"
_ROWS_A_GROUP = 262_144
_PLAIN = ("rank", "step", "stage", "microbatch", "peer", "start_ns", "end_ns")


def write_store(trace: Trace, path: Path) -> None:
    """Writes ``trace`` as a store at ``path``, whole or not at all.

    An earlier store at ``path`` is replaced; any other folder is refused. Raises InputError
    when it cannot be written, EnvironmentProblem without pyarrow.
    """
    _pyarrow()
    if path.exists() and not (path / ABOUT).is_file():
        raise InputError("{path} is there and is no store of serried; give another name", path=path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.mkdir(parents=True)
        _write(trace, part)
        if path.exists():
            shutil.rmtree(path)
        part.replace(path)
    except OSError as error:
        raise InputError(
            "{path} cannot be written: {reason}", path=path, reason=error.strerror
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def read_store(path: Path) -> Trace:
    """Reads a store back as the Trace that it was written from.

    Raises InputError when ``path`` is not a store or is damaged.
    """
    _pyarrow()
    from pyarrow import ArrowException, parquet

    try:
        about = json.loads((path / ABOUT).read_text(encoding="utf-8"))
        if about["schema"] != SCHEMA:
            raise InputError(
                "{path} is a store of {schema}; this serried reads {known}",
                path=path,
                schema=about["schema"],
                known=SCHEMA,
            )
        tables = [parquet.read_table(file) for file in sorted(path.glob(f"node=*/{PART}"))]
        spans = Spans.joined([_spans(table) for table in tables])
        return _trace(about, spans)
    except (
        *(OSError, ArrowException, ArithmeticError, AttributeError),
        *(LookupError, RecursionError, TypeError, ValueError),
    ) as error:
        raise InputError("{path} is not a store of serried, or is damaged", path=path) from error


def is_store(path: Path) -> bool:
    """Tells whether ``path`` is a store."""
    return (path / ABOUT).is_file()


# ----------------------------------------------------------------------- writing


def _pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise EnvironmentProblem(
            "the store is Parquet, which needs pyarrow; pip install 'serried[trace]' brings it"
        ) from error


def _write(trace: Trace, folder: Path) -> None:
    from pyarrow import parquet

    for node, rows in _nodes(trace):
        place = folder / f"node={node}" / PART
        place.parent.mkdir()
        writer = None
        try:
            for first in range(0, len(rows), _ROWS_A_GROUP):
                table = _table(trace.spans.where(rows[first : first + _ROWS_A_GROUP]))
                writer = writer or parquet.ParquetWriter(place, table.schema, compression="zstd")
                writer.write_table(table)
        finally:
            if writer:
                writer.close()
    text = json.dumps(_about(trace), indent=1, ensure_ascii=False)
    (folder / ABOUT).write_text(text, encoding="utf-8")


def _nodes(trace: Trace) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yields each node with the rows of its ranks."""
    node = np.array([trace.placement.node(rank) for rank in range(trace.job.world_size)])
    of_span = node[trace.spans.rank]
    for each in np.unique(of_span).tolist():
        yield each, np.flatnonzero(of_span == each)


def _table(spans: Spans) -> Any:
    """Returns spans as an Arrow table."""
    import pyarrow as pa

    kinds = np.array([kind.name for kind in ActionKind])
    at = np.searchsorted(list(ActionKind), spans.kind).astype(np.int8)
    code, texts = actions_of(spans)
    columns = {name: pa.array(getattr(spans, name)) for name in _PLAIN[:5]}
    columns["kind"] = pa.DictionaryArray.from_arrays(pa.array(at), pa.array(kinds))
    columns["action"] = pa.DictionaryArray.from_arrays(
        pa.array(code.astype(np.int32)), pa.array(texts)
    )
    columns |= {name: pa.array(getattr(spans, name)) for name in _PLAIN[5:]}
    return pa.table(columns)


def _about(trace: Trace) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "run": trace.run,
        "job": asdict(trace.job),
        "base_ns": trace.base_ns,
        "hosts": [asdict(host) for host in trace.hosts],
        "clocks": [asdict(clock) for clock in trace.clocks],
        "ranks": trace.ranks,
        "torn": trace.torn,
        "missing": trace.missing,
        "names": trace.names,
        "waits_inside": trace.waits_inside,
        "warnings": [_finding(each) for each in trace.warnings],
        "num_spans": len(trace.spans),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    """Returns a finding by its templates, so that any language can say it again."""

    def words(sentence: Sentence) -> dict[str, Any]:
        values = {name: str(value) for name, value in sentence.values.items()}
        return {"template": sentence.template, "values": values}

    return {
        "kind": finding.kind,
        "ranks": finding.ranks,
        "evidence": [words(each) for each in finding.evidence],
        "cure": finding.cure and words(finding.cure),
    }


# ----------------------------------------------------------------------- reading


def _spans(table: Any) -> Spans:
    columns = {name: table[name].to_numpy() for name in _PLAIN}
    kinds = table["kind"].combine_chunks()
    chunks = kinds.chunks if hasattr(kinds, "chunks") else [kinds]
    numbers = [
        np.array([ActionKind[name] for name in chunk.dictionary.to_pylist()], dtype=np.int32)[
            chunk.indices.to_numpy()
        ]
        for chunk in chunks
    ]
    return Spans(kind=np.concatenate(numbers), **columns)


_TEXT, _NUMBER, _WHOLE = (str,), (int, float), (int,)
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("run", "name", "host", "source", "framework", "order", "schedule"), _TEXT),
    **dict.fromkeys(("compute", "backend"), _TEXT),
    **dict.fromkeys(("world_size", "num_microbatches", "gpus_per_node", "base_ns"), _WHOLE),
    **dict.fromkeys(("ranks", "torn", "missing", "sizes"), _WHOLE),
    **dict.fromkeys(("offset_ns", "drift"), _NUMBER),
    **{"names": _TEXT, "options": _TEXT, "uncertainty_ns": (*_NUMBER, type(None))},
}
"""What each key holds, or each of its entries where it is a list or an object."""


def _require_typed(about: dict[str, Any]) -> None:
    """Raises TypeError for a value of another type than was written."""
    for each in (about, about["job"], *about["hosts"], *about["clocks"]):
        for name, value in each.items():
            parts = value.values() if isinstance(value, dict) else value
            for part in parts if isinstance(value, list | dict) else [value]:
                if name in _TYPES and (type(part) not in _TYPES[name]):
                    raise TypeError(name)


def _trace(about: dict[str, Any], spans: Spans) -> Trace:
    _require_typed(about)
    job = Job(**about["job"])
    found = np.unique(spans.rank).tolist()
    if len(spans) != about["num_spans"] or not {*found} <= {*about["ranks"]}:
        raise ValueError("spans are missing, or of other ranks")
    if not 0 <= min(about["ranks"]) <= max(about["ranks"]) < job.world_size:
        raise ValueError("ranks are outside the job")
    if job.num_microbatches < 1 or job.gpus_per_node < 1 or not about["hosts"]:
        raise ValueError("the job is not one")
    return Trace(
        run=about["run"],
        job=job,
        spans=spans,
        base_ns=about["base_ns"],
        hosts=tuple(
            Host(each["name"], tuple(each["ranks"]), each["offset_ns"]) for each in about["hosts"]
        ),
        ranks=tuple(about["ranks"]),
        torn=tuple(about["torn"]),
        missing=tuple(about["missing"]),
        warnings=tuple(_said(each) for each in about["warnings"]),
        layout=layout_of(job)[0],
        clocks=tuple(HostClock(**each) for each in about["clocks"]),
        waits_inside=about["waits_inside"],
        names=tuple(about["names"]),
    )


def _said(written: dict[str, Any]) -> Finding:
    def sentence(words: dict[str, Any]) -> Sentence:
        return Sentence(words["template"], words["values"])

    return Finding(
        written["kind"],
        tuple(sentence(each) for each in written["evidence"]),
        tuple(written["ranks"]),
        cure=sentence(written["cure"]) if written["cure"] else None,
    )
