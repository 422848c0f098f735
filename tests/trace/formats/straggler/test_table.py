"""StragglerAnalysis tables with a value out of place are refused in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serried.errors import InputError
from serried.trace.formats.reading import read_trace
from serried.trace.formats.straggler.table import read_straggler_table
from serried.trace.measure.replay_spans import replay_of_trace
from serried.trace.measure.what_if import what_if

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
PRODUCTION = Path(__file__).parents[3] / "goldens" / "traces" / "straggler_analysis"

Columns = dict[str, Any]


def columns() -> Columns:
    """Returns the first two steps of a real table."""
    table = read_straggler_table(PRODUCTION / "trace-ST.parquet")
    kept = np.isin(table["step"], np.unique(table["step"])[:2])
    return {name: column[kept] for name, column in table.items()}


def written(folder: Path, table: Columns) -> Path:
    path = folder / "table.parquet"
    parquet.write_table(pyarrow.table({name: list(values) for name, values in table.items()}), path)
    return path


def with_first(name: str, value: object) -> Callable[[Columns], Columns]:
    return lambda table: {**table, name: [value, *table[name][1:].tolist()]}


def only(name: str, values: list[Any]) -> Callable[[Columns], Columns]:
    def kept(table: Columns) -> Columns:
        mine = np.isin(table[name], values)
        return {each: column[mine] for each, column in table.items()}

    return kept


def as_text(name: str) -> Callable[[Columns], Columns]:
    return lambda table: {**table, name: [str(each) for each in table[name]]}


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (with_first("duration", float("nan")), "column duration of .* holds nan"),
        (with_first("duration", -1.0), "column duration of .* holds -1.0"),
        (with_first("start_ts", 1e300), "column start_ts of .* holds 1e\\+300"),
        (with_first("stage", -1), "column stage of .* holds -1"),
        (with_first("seq_id", 1.5), "column seq_id of .* holds 1.5"),
        (with_first("optype", None), "column optype of .* holds None"),
        (as_text("dp_rank"), "column dp_rank of .* holds 0"),
        (as_text("duration"), "column duration of .* holds 0"),
        (with_first("dp_rank", 2_000_000_000), "are more ranks than it has rows"),
        (only("step", []), "holds no row"),
        (only("dp_rank", [1]), "stage 0 has no forward-compute numbered from 0"),
        (only("stage", [3]), "stage 0 has no forward-compute numbered from 0"),
        (only("optype", ["forward-compute", "gc"]), "stage 0 has no backward-compute"),
        (lambda table: {**table, "duration": [0.0] * len(table["step"])}, "none can be replayed"),
        (with_first("rank", 5), "is rank [05] in one row and rank [05] in another"),
        (lambda table: {**table, "rank": [3] * len(table["step"])}, "rank 3 stands for 8 places"),
        (lambda table: {**table, "seq_id": [0] * len(table["step"])}, "stands twice"),
    ],
)
def test_a_value_out_of_place_is_named(
    tmp_path: Path, damage: Callable[[Columns], Columns], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        read_trace([written(tmp_path, damage(columns()))])


@pytest.mark.parametrize(
    "lacking",
    ["gc", "layernorm-grads-all-reduce", "optimizer", "params-all-gather", "forward-send"],
)
def test_a_table_that_lacks_an_operation_throughout_is_replayed(
    tmp_path: Path, lacking: str
) -> None:
    table = columns()
    types = sorted({*table["optype"]} - {lacking})
    replay = replay_of_trace(read_trace([written(tmp_path, only("optype", types)(table))]))
    assert replay is not None
    assert what_if(replay).slowdown > 1


def test_steps_on_a_clock_of_their_own_stand_one_after_another(tmp_path: Path) -> None:
    table = columns()
    late = {**table, "start_ts": table["start_ts"] + 1.7e9}
    spans = read_trace([written(tmp_path, late)]).spans
    steps = np.unique(spans.step)
    first, second = (spans.where(spans.step == step) for step in steps)
    gap_ns = int(second.start_ns.min()) - int(first.end_ns.max())
    assert 0 < gap_ns < 1_000_000_000


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda raw: raw[: len(raw) // 2], "is not a Parquet file that can be read"),
        (lambda raw: b"", "is not a Parquet file that can be read"),
        (lambda raw: raw[::-1], "is not a Parquet file that can be read"),
    ],
    ids=["truncated", "empty", "foreign"],
)
def test_a_damaged_table_is_named_alone_or_in_its_folder(
    tmp_path: Path, damage: Callable[[bytes], bytes], sentence: str
) -> None:
    path = tmp_path / "job.parquet"
    path.write_bytes(damage((PRODUCTION / "trace-ST.parquet").read_bytes()))
    for place in (path, tmp_path):
        with pytest.raises(InputError, match=f"job.parquet {sentence}"):
            read_trace([place])


def test_a_table_of_something_else_says_which_columns_it_lacks(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"step": [1]}), tmp_path / "metrics.parquet")
    with pytest.raises(InputError, match="lacks the columns dp_rank, stage"):
        read_trace([tmp_path])
