"""Tables of jobs of many sizes give the figures that the published definition gives."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serried.trace.formats.reading import read_trace
from serried.trace.measure.replay_spans import replay_of_trace
from serried.trace.measure.statistics import measure
from serried.trace.measure.what_if import WhatIf, what_if
from tests.trace.straggler_jobs import Job, Op

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

JOBS = {
    "long last stage": Job(pp=4, dp=2, m=4, lasts=1.6),
    "two stages of many replicas": Job(pp=2, dp=8, m=8, steps=2, seed=2),
    "one slow rank": Job(pp=4, dp=4, m=8, steps=2, seed=3, slow_rank=6),
    "one replica": Job(pp=3, dp=1, m=5, seed=4, slow_rank=1),
    "one stage": Job(pp=1, dp=3, m=3, seed=5, slow_rank=2),
    "fewer microbatches than stages": Job(pp=4, dp=2, m=2, seed=6),
    "one microbatch": Job(pp=2, dp=2, m=1, seed=7, lasts=2.0),
}
Rows = list[dict[str, Any]]


def written(folder: Path, rows: Rows, types: dict[str, str] | None = None) -> Path:
    table = pyarrow.Table.from_pylist(rows)
    for name, type_ in (types or {}).items():
        at = table.column_names.index(name)
        table = table.set_column(at, name, table[name].cast(type_))
    parquet.write_table(table, folder / "job.parquet")
    return folder / "job.parquet"


def asked(path: Path) -> WhatIf:
    replay = replay_of_trace(read_trace([path]))
    assert replay is not None
    return what_if(replay)


def is_of(rank: int, job: Job) -> Callable[[Op], bool]:
    """Returns what tells whether an operation is of ``rank``."""
    return lambda op: op[1] * job.dp + op[0] == rank


def slowdown(job: Job) -> float:
    return job.mean_step(job.own) / job.mean_step([job.ideal()])


@pytest.mark.parametrize("name", JOBS)
def test_the_slowdown_and_its_shares_are_the_published_definitions(
    tmp_path: Path, name: str
) -> None:
    job = JOBS[name]
    found = asked(written(tmp_path, job.rows()))
    recorded, ideal = job.mean_step(job.own), job.mean_step([job.ideal()])
    assert found.num_steps == job.steps
    assert found.recorded == pytest.approx(recorded)
    assert found.ideal == pytest.approx(ideal)
    assert found.slowdown == pytest.approx(recorded / ideal)
    without_last = job.mean_step(job.mixed(lambda op: op[1] == job.pp - 1))
    share = (recorded - without_last) / (recorded - ideal)
    # Of one stage alone it would be all, and say nothing.
    assert found.last_stage_share == (pytest.approx(share) if job.pp > 1 else None)
    gains = {each.rank: each.shorter for each in found.ranks}
    for rank in {0, job.pp * job.dp - 1}:
        cured = job.mean_step(job.mixed(is_of(rank, job)))
        assert gains[rank] == pytest.approx(1 - cured / recorded)


@pytest.mark.parametrize("name", ["one slow rank", "one replica", "one stage"])
def test_the_slow_rank_explains_the_slowdown(tmp_path: Path, name: str) -> None:
    job = JOBS[name]
    found = asked(written(tmp_path, job.rows()))
    assert found.ranks[0].rank == job.slow_rank
    assert found.slowest_share is not None and found.slowest_share > 0.8


def test_the_order_and_the_types_of_columns_change_nothing(tmp_path: Path) -> None:
    job = JOBS["long last stage"]
    rows = job.rows()
    random.Random(1).shuffle(rows)
    small = {"dp_rank": "int8", "stage": "int8", "rank": "int16", "mc": "int8", "gmc": "int16"}
    floats = {"start_ts": "float32", "duration": "float32", "mb_id": "float64", "seq_id": "float32"}
    backwards = [dict(reversed(row.items())) for row in rows]
    found = asked(written(tmp_path, backwards, {**small, **floats}))
    assert found.slowdown == pytest.approx(slowdown(job), rel=1e-5)


def test_steps_on_clocks_of_their_own_change_nothing(tmp_path: Path) -> None:
    job = JOBS["two stages of many replicas"]
    rows = [{**row, "start_ts": row["start_ts"] + 1.7e9 + 60 * row["step"]} for row in job.rows()]
    assert asked(written(tmp_path, rows)).slowdown == pytest.approx(slowdown(job), rel=1e-5)


def test_operations_of_other_kinds_and_other_columns_change_nothing(tmp_path: Path) -> None:
    job = JOBS["one slow rank"]
    rows = job.rows()
    loads = [
        {**row, "optype": "data-load", "start_ts": 0.0, "duration": 0.02, "mc": -1, "mb_id": -1}
        for row in rows
        if row["optype"] == "forward-compute"
    ]
    more = [{**row, "tp_rank": 0, "host": "a"} for row in [*loads, *rows]]
    assert asked(written(tmp_path, more)).slowdown == pytest.approx(slowdown(job))


def test_a_step_with_a_gap_is_left_out_and_the_others_stand(tmp_path: Path) -> None:
    job = JOBS["long last stage"]
    rows = job.rows()
    step = rows[-1]["step"]
    lost = next(at for at, row in enumerate(rows) if row["step"] == step and row["dp_rank"] == 1)
    found = asked(written(tmp_path, rows[:lost] + rows[lost + 1 :]))
    shorter = replace(job, steps=2, own=[])
    assert shorter.own == job.own[:2]
    assert found.num_steps == 2
    assert found.slowdown == pytest.approx(slowdown(shorter))


def test_each_stage_is_busy_for_as_long_as_its_computations(tmp_path: Path) -> None:
    job = JOBS["one slow rank"]
    trace = read_trace([written(tmp_path, job.rows())])
    stats = measure(trace)
    assert (trace.job.sizes["pp"], trace.job.sizes["dp"]) == (4, 4)
    assert [each.step for each in stats.steps] == [17, 20]
    for rank in stats.ranks:
        stage, replica = divmod(rank.rank, job.dp)
        busy = np.mean(
            [
                sum(own[op] for op in own if op[:2] == (replica, stage) and "compute" in op[2])
                for own in job.own
            ]
        )
        assert rank.compute_ns == pytest.approx(1e9 * busy, rel=1e-6)


def test_time_is_told_apart_without_counting_any_of_it_twice(tmp_path: Path) -> None:
    # Receives of this job have streams of their own and go on behind computations.
    stats = measure(read_trace([written(tmp_path, JOBS["two stages of many replicas"].rows())]))
    window = np.mean([step.window_ns for step in stats.steps])
    for rank in stats.ranks:
        parts = (rank.compute_ns, rank.receive_wait_ns, rank.other_ns)
        assert min(parts) >= 0
        assert sum(parts) == pytest.approx(window)
