"""Bytes and groups of spans: alike in the trace, its stores, Chrome's file and Perfetto's."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from serried.action import ActionKind
from serried.errors import InputError
from serried.trace.formats.chrome import write_chrome
from serried.trace.formats.perfetto import write_perfetto
from serried.trace.formats.reading import read_trace
from serried.trace.merge.store import merge_store
from serried.trace.model.span_groups import SpanGroup
from serried.trace.model.trace import Trace
from serried.trace.store.folder import read_store, write_store
from tests.trace import perfetto_rules
from tests.trace.alike import differences
from tests.trace.carried import DP_BYTES, TP_BYTES, write_carried

parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_carried(tmp_path_factory.mktemp("carried"))


@pytest.fixture(scope="module")
def trace(folder: Path) -> Trace:
    return read_trace([folder])


def carried(trace: Trace, rank: int, step: int) -> list[tuple[str, int, SpanGroup | None]]:
    """Returns what the spans of a rank's step carry, by start."""
    spans = trace.spans
    rows = np.flatnonzero((spans.rank == rank) & (spans.step == step))
    return [
        (
            ActionKind(int(spans.kind[row])).name,
            int(spans.size_bytes[row]),
            trace.groups[spans.group[row]] if spans.group[row] >= 0 else None,
        )
        for row in rows.tolist()
    ]


def test_spans_carry_what_their_collectives_moved_and_over_whom(trace: Trace) -> None:
    reduced = SpanGroup(ActionKind.ALL_REDUCE, (1, 3), 2)
    assert carried(trace, 3, 0) == [
        ("F", -1, None),
        ("ALL_REDUCE", TP_BYTES, SpanGroup(ActionKind.ALL_REDUCE, (2, 3))),
        ("REDUCE_GRAD", DP_BYTES, reduced),
    ]
    # The last step's reductions go over two groups, so that none of them is the span's.
    assert carried(trace, 3, 2)[2] == ("REDUCE_GRAD", DP_BYTES + 8, None)


def test_a_store_keeps_them(trace: Trace, folder: Path, tmp_path: Path) -> None:
    write_store(trace, tmp_path / "whole.store")
    merge_store([folder], tmp_path / "pieces.store")
    for name in ("whole.store", "pieces.store"):
        assert differences(trace, read_store(tmp_path / name)) == []
        rows = parquet.read_table(tmp_path / name / "node=0").to_pylist()
        words = {(row["kind"], row["bytes"], row["collective"], row["group"]) for row in rows}
        assert ("REDUCE_GRAD", DP_BYTES, "ALL_REDUCE", "0,2") in words
        assert ("F", None, None, None) in words
        assert ("REDUCE_GRAD", DP_BYTES + 8, None, None) in words


def test_chrome_s_file_shows_them_and_gives_them_back(trace: Trace, tmp_path: Path) -> None:
    write_chrome(trace, tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    args = [each["args"] for each in events if each.get("name") == "all-reduce"]
    assert {(each["bytes"], each["group"]) for each in args} == {
        (TP_BYTES, "0, 1"),
        (TP_BYTES, "2, 3"),
    }
    assert differences(trace, read_trace([tmp_path / "trace.json"])) == []


def test_perfetto_s_file_shows_them(trace: Trace, tmp_path: Path) -> None:
    write_perfetto(trace, tmp_path / "trace.pftrace")
    found = perfetto_rules.read((tmp_path / "trace.pftrace").read_bytes())
    spans = trace.spans
    theirs = [
        (start, size, str(trace.groups[group]) if group >= 0 else None, group)
        for start, size, group in zip(
            *(column.tolist() for column in (spans.start_ns, spans.size_bytes, spans.group)),
            strict=True,
        )
    ]
    ours = [
        (
            each.start,
            each.arguments.get("bytes", -1),
            each.arguments.get("group"),
            each.arguments.get("group_number", -1),
        )
        for each in found.slices
    ]
    assert sorted(ours, key=str) == sorted(theirs, key=str)


def test_a_store_whose_groups_are_gone_is_refused(trace: Trace, tmp_path: Path) -> None:
    store = tmp_path / "run.store"
    write_store(trace, store)
    about = json.loads((store / "_serried.json").read_text())
    for groups in ([], about["groups"][:1], [{**about["groups"][0], "ranks": [0, 9]}]):
        (store / "_serried.json").write_text(json.dumps({**about, "groups": groups}))
        with pytest.raises(InputError):
            read_store(store)
