"""The store: Parquet that gives the Trace back, that others open, and that is never half there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from serried.errors import InputError
from serried.trace.merged import Trace
from serried.trace.reading import read_trace
from serried.trace.statistics import measure
from serried.trace.store import read_store, write_store
from tests.trace.recorded_run import Clock, Run

parquet = pytest.importorskip("pyarrow.parquet")
RUN = Run(pp=4, dp=4, num_microbatches=8, num_steps=2)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    clocks = [Clock("a")] * 8 + [Clock("b", late_ns=3_000_000)] * 8
    folder = RUN.write(tmp_path_factory.mktemp("run"), only=range(15), clocks=clocks)
    return read_trace([folder])


def test_a_trace_comes_back_whole(trace: Trace, tmp_path: Path) -> None:
    write_store(trace, tmp_path / "run.store")
    again = read_trace([tmp_path / "run.store"])
    for name, column in trace.spans.columns().items():
        other = getattr(again.spans, name)
        assert column.dtype == other.dtype
        np.testing.assert_array_equal(column, other, err_msg=name)
    for name in ("run", "job", "base_ns", "hosts", "clocks", "ranks", "torn", "missing"):
        assert getattr(again, name) == getattr(trace, name), name
    assert [str(each) for each in again.warnings] == [str(each) for each in trace.warnings]
    assert measure(again) == measure(trace)


def test_a_node_is_a_partition_and_words_are_words(trace: Trace, tmp_path: Path) -> None:
    write_store(trace, tmp_path / "run.store")
    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.parquet"))
    assert names == ["run.store/node=0/spans.parquet", "run.store/node=1/spans.parquet"]
    whole = parquet.read_table(tmp_path / "run.store")  # any engine that knows partitions
    assert whole.num_rows == len(trace.spans)
    assert set(whole["node"].to_pylist()) == {0, 1}
    rows = [row for row in whole.to_pylist() if row["rank"] == 4 and row["step"] == 0]
    first = min(rows, key=lambda row: (row["start_ns"], row["end_ns"]))
    assert (first["kind"], first["action"]) == ("RECV_F", "1RECV_F0")


def test_an_earlier_store_is_replaced_and_any_other_folder_is_not(
    trace: Trace, tmp_path: Path
) -> None:
    for _ in range(2):
        write_store(trace, tmp_path / "run.store")
    (tmp_path / "mine").mkdir()
    with pytest.raises(InputError, match="is there and is no store"):
        write_store(trace, tmp_path / "mine")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "run.store"]


def test_a_store_that_cannot_be_written_leaves_nothing(trace: Trace, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write_store(trace, tmp_path / "file" / "run.store")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("damage", ["json", "part", "schema", "rows"])
def test_a_damaged_store_is_refused(trace: Trace, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "run.store"
    write_store(trace, path)
    if damage == "json":
        (path / "_serried.json").write_text("{")
    if damage == "part":
        (path / "node=1" / "spans.parquet").write_bytes(b"PAR1")
    if damage == "rows":
        shutil.rmtree(path / "node=1")
    if damage == "schema":
        about = json.loads((path / "_serried.json").read_text())
        (path / "_serried.json").write_text(json.dumps({**about, "schema": "serried.trace/9"}))
    with pytest.raises(InputError, match=r"store of serried, or is damaged|serried.trace/9"):
        read_store(path)
