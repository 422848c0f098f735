"""Jobs of other sizes replay to their own step time, and to that of their mean durations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serried.action import ActionKind
from serried.errors import InputError
from serried.pipeline import Costs, Request, Simulation, generate, simulate
from serried.trace.formats.reading import read_trace
from serried.trace.measure.replay_spans import replay_of_trace
from serried.trace.measure.what_if import WhatIf, what_if

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

M = 8
OPTIMIZER_S = 5.0
NAMES = ("dp_rank", "stage", "rank", "step", "optype", "start_ts", "duration", "seq_id", "mc")
SIZES = [(1, 3, 1), (2, 1, 1), (2, 3, 1), (4, 2, 1), (2, 2, 2), (4, 1, 2)]
"""Stages, replicas and chunks on each."""

Rows = list[tuple[Any, ...]]


def simulated(pp: int, vpp: int, factors: list[float]) -> Simulation:
    """Returns one replica's step, messages free; ``factors`` make whole stages slower."""
    name = "interleaved-1f1b" if vpp > 1 else "1f1b"
    schedule = generate(name, Request(pp, M, vpp if vpp > 1 else None))
    each = [factors[stage % pp] for stage in range(pp * vpp)]
    return simulate(schedule, Costs(each, each, each))


def operations(pp: int, vpp: int, stage: int, step: Simulation) -> Rows:
    """Returns type, start, end, chunk, microbatch and global chunk of what one stage did."""
    rows: Rows = []
    schedule = step.schedule
    turn, free = {"forward": 0, "backward": 0}, 0.0
    for entry in range(schedule.first[stage], schedule.first[stage + 1]):
        action = schedule.action(entry)
        way = "forward" if action.kind == ActionKind.F else "backward"
        start, end = (float(step.ticks.number(at[entry])) for at in (step.start, step.end))
        up = 1 if way == "forward" else -1
        numbers = (action.stage // pp, action.microbatch, action.stage)
        # Without chunks the profiler writes no messages at the two ends of the model; with
        # chunks it writes them all.
        if vpp > 1 or 0 <= action.stage - up < pp:
            rows.append((f"{way}-recv", free, start, turn[way], -1, -1, -1))
        rows.append((f"{way}-compute", start, end, turn[way], *numbers))
        if vpp > 1 or 0 <= action.stage + up < pp:
            rows.append((f"{way}-send", end, end, turn[way], -1, -1, -1))
        turn[way] += 1
        free = end
    return rows


def table(pp: int, dp: int, vpp: int, factors: np.ndarray[Any, Any], steps: int) -> Rows:
    """Returns the rows of a job; ``factors`` are by step, replica and stage."""
    rows: Rows = []
    for step in range(steps):
        every = [
            operations(pp, vpp, stage, simulated(pp, vpp, factors[step, replica].tolist()))
            for replica in range(dp)
            for stage in range(pp)
        ]
        last = max(row[2] for mine in every for row in mine)
        for at, mine in enumerate(every):
            replica, stage = divmod(at, pp)
            done = max(row[2] for row in mine)
            tail = [
                ("optimizer-clip-main-grad", done, last, 0, -1, -1, -1),
                ("optimizer", last, last + OPTIMIZER_S, 0, -1, -1, -1),
            ]
            for kind, start, end, seq, chunk, microbatch, gmc in [*mine, *tail]:
                place = (replica, stage, stage * dp + replica, step, kind, start, end - start)
                rows.append((*place, seq, chunk, microbatch, gmc))
    return rows


def written(folder: Path, rows: Rows, name: str = "job") -> Path:
    columns = dict(zip((*NAMES, "mb_id", "gmc"), map(list, zip(*rows, strict=True)), strict=True))
    path = folder / f"{name}.parquet"
    parquet.write_table(pyarrow.table(columns), path)
    return path


def replayed(path: Path) -> WhatIf:
    replay = replay_of_trace(read_trace([path]))
    assert replay is not None
    return what_if(replay)


def step_time(pp: int, vpp: int, factors: list[float]) -> float:
    return float(simulated(pp, vpp, factors).makespan) + OPTIMIZER_S


@pytest.mark.parametrize(("pp", "dp", "vpp"), SIZES)
def test_a_job_without_stragglers_has_no_slowdown(
    tmp_path: Path, pp: int, dp: int, vpp: int
) -> None:
    found = replayed(written(tmp_path, table(pp, dp, vpp, np.ones((2, dp, pp)), 2)))
    assert found.recorded == pytest.approx(step_time(pp, vpp, [1.0] * pp))
    assert found.slowdown == pytest.approx(1)
    assert all(abs(gain.shorter) < 1e-9 for gain in found.ranks)


@pytest.mark.parametrize(("pp", "dp", "vpp"), SIZES)
def test_slow_ranks_cost_what_their_step_is_longer_than_that_of_the_mean(
    tmp_path: Path, pp: int, dp: int, vpp: int
) -> None:
    factors = np.random.default_rng(pp + dp + vpp).uniform(1, 3, (3, dp, pp))
    found = replayed(written(tmp_path, table(pp, dp, vpp, factors, 3)))
    slowest = [
        max(step_time(pp, vpp, factors[step, replica].tolist()) for replica in range(dp))
        for step in range(3)
    ]
    assert found.recorded == pytest.approx(np.mean(slowest), rel=1e-6)
    assert found.ideal == pytest.approx(step_time(pp, vpp, [float(factors.mean())] * pp), rel=1e-6)


def test_a_step_that_a_replica_lacks_part_of_is_left_out(tmp_path: Path) -> None:
    factors = np.ones((3, 2, 2))
    factors[1] = 9
    rows = table(2, 2, 1, factors, 3)
    lost = next(r for r in rows if r[3] == 1 and r[0] == 1 and r[4] == "backward-compute")
    found = replayed(written(tmp_path, [row for row in rows if row is not lost]))
    assert found.num_steps == 2
    assert found.slowdown == pytest.approx(1)


def test_a_folder_of_one_job_is_read_and_of_several_refused(tmp_path: Path) -> None:
    rows = table(2, 1, 1, np.ones((1, 1, 2)), 1)
    written(tmp_path, rows)
    (tmp_path / "ms.json").write_text('{"Ms": 1}')
    assert read_trace([tmp_path]).job.sizes["pp"] == 2
    written(tmp_path, rows, "another")
    with pytest.raises(InputError, match="are tables of jobs of their own; give one of them"):
        read_trace([tmp_path])


def test_absent_numbers_of_messages_and_ends_before_starts_are_clock_errors(tmp_path: Path) -> None:
    rows = table(2, 1, 1, np.ones((1, 1, 2)), 1)
    rows = [(*row[:8], *(None if n == -1 else n for n in row[8:])) for row in rows]
    early = next(at for at, row in enumerate(rows) if row[4] == "forward-send")
    rows[early] = (*rows[early][:6], -0.002, *rows[early][7:])
    found = replayed(written(tmp_path, rows))
    assert found.recorded == pytest.approx(step_time(2, 1, [1.0, 1.0]), abs=0.01)
