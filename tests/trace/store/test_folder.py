"""The store: Parquet that gives the Trace back, that others open, and that is never half there."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from serried.action import ActionKind
from serried.errors import InputError
from serried.finding import Finding, said
from serried.limits import ABOUT_BYTES
from serried.trace.formats.foreign import ForeignSpan, foreign_trace, pipelines, spans_of
from serried.trace.formats.reading import read_trace
from serried.trace.measure.analysis import analyse
from serried.trace.measure.statistics import measure
from serried.trace.model.trace import Trace
from serried.trace.store.folder import read_store, write_store
from serried.views.sentences import say
from tests.trace.alike import differences
from tests.trace.any_run import any_rows
from tests.trace.recorded_run import Clock, Run

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
GOLDENS = Path(__file__).parents[2] / "goldens" / "traces"
RUN = Run(pp=4, dp=4, num_microbatches=8, num_steps=2)
OTHERS = [
    *("kineto", "megatronapp", "straggler_analysis", "store_1"),
    *(f"paddle/{name}" for name in ("chunk", "dev23", "multi", "sendrecv", "single", "vpp")),
]
"""Runs of every tool that have files here."""


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


@given(any_rows())
def test_any_run_comes_back_with_all_that_is_measured_of_it(
    tmp_path_factory: pytest.TempPathFactory, rows: list[ForeignSpan]
) -> None:
    world = 1 + max(row.rank for row in rows)
    machines = {"a": range(world // 2), "b": range(world // 2, world)}
    layout = pipelines(rows, world, None)
    written = foreign_trace("any", layout, machines, spans_of(rows))
    store = tmp_path_factory.mktemp("any") / "run.store"
    write_store(written, store)
    assert differences(written, read_store(store)) == []
    assert differences(analyse(written), analyse(read_store(store))) == []


@pytest.mark.parametrize("name", OTHERS)
def test_another_tools_run_comes_back_with_all_that_is_measured_of_it(
    name: str, tmp_path: Path
) -> None:
    written = read_trace([GOLDENS / name])
    write_store(written, tmp_path / "run.store")
    again = read_trace([tmp_path / "run.store"])
    assert differences(written, again) == []
    assert differences(analyse(written), analyse(again)) == []


def test_what_a_span_has_none_of_is_null(tmp_path: Path) -> None:
    none = -1
    rows = [
        ForeignSpan(0, 0, ActionKind.F, 0, 0, 0, 9),
        ForeignSpan(0, 0, ActionKind.REDUCE_GRAD, none, 0, 9, 10),
        ForeignSpan(0, none, ActionKind.OPTIMIZER, none, 0, 10, 11),
        ForeignSpan(0, none, ActionKind.SPAN, none, none, 11, 12),
    ]
    layout = pipelines(rows, 1, None)
    write_store(foreign_trace("any", layout, {"": range(1)}, spans_of(rows)), tmp_path / "a.store")
    table = parquet.read_table(tmp_path / "a.store" / "node=0").to_pylist()
    assert [[row[name] for name in ("step", "stage", "microbatch", "peer")] for row in table] == [
        [0, 0, 0, None],
        [0, 0, None, None],
        [0, None, None, None],
        [None, None, None, None],
    ]
    assert read_store(tmp_path / "a.store").spans.step.tolist() == [0, 0, 0, none]


def test_a_store_of_the_first_edition_still_opens() -> None:
    old, new = read_trace([GOLDENS / "store_1"]), read_trace([GOLDENS / "paddle" / "single"])
    assert json.loads((GOLDENS / "store_1" / "_serried.json").read_text())["schema"].endswith("/1")
    # That edition did not keep how finely its writer told times.
    assert differences(old, replace(new, resolution_ns=1)) == []


def test_what_is_said_of_a_run_is_said_in_chinese_from_its_store_too(
    trace: Trace, tmp_path: Path
) -> None:
    inner = InputError("{axis}={size}; a size is at least 1", axis="tp", size=0)
    reason = said("the run's groups cannot be made again: {reason}", reason=inner)
    write_store(trace.with_warnings(Finding("layout", (reason,))), tmp_path / "run.store")
    (again,) = read_store(tmp_path / "run.store").warnings[-1].evidence
    assert say(again, "zh") == say(reason, "zh") != str(reason)


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


@pytest.mark.parametrize("damage", ["json", "part", "schema", "rows", "replay"])
def test_a_damaged_store_is_refused(trace: Trace, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "run.store"
    write_store(trace, path)
    if damage == "json":
        (path / "_serried.json").write_text("{")
    if damage == "part":
        (path / "node=1" / "spans.parquet").write_bytes(b"PAR1")
    if damage == "replay":
        about = json.loads((path / "_serried.json").read_text())
        (path / "_serried.json").write_text(json.dumps({**about, "has_replay": True}))
    if damage == "rows":
        shutil.rmtree(path / "node=1")
    if damage == "schema":
        about = json.loads((path / "_serried.json").read_text())
        (path / "_serried.json").write_text(json.dumps({**about, "schema": "serried.trace/9"}))
    with pytest.raises(InputError, match=r"store of serried, or is damaged|serried.trace/9"):
        read_store(path)


def test_a_store_that_says_more_of_itself_than_any_run_is_refused(
    trace: Trace, tmp_path: Path
) -> None:
    path = tmp_path / "run.store"
    write_store(trace, path)
    os.truncate(path / "_serried.json", ABOUT_BYTES.most + 1)
    with pytest.raises(InputError, match=r"_serried\.json holds more than 256 MB"):
        read_store(path)


@pytest.mark.parametrize("part", ["node=0/spans.parquet", "_replay.parquet"])
def test_a_part_that_claims_more_values_than_its_bytes_hold_is_refused(
    tmp_path: Path, part: str
) -> None:
    path = tmp_path / "run.store"
    write_store(read_trace([GOLDENS / "straggler_analysis"]), path)
    endless = pyarrow.table({"start": np.zeros(5_000_000, dtype=np.int8)})
    parquet.write_table(endless, path / part, compression="zstd")
    with pytest.raises(InputError, match="5000000 values, more than 100 for each of its bytes"):
        read_store(path)
