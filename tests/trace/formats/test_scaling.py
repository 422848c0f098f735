"""Twice as large a file takes twice the work, whatever is in it; and no file takes all memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serried.errors import InputError
from serried.trace.clocks.pings import ping_file, ping_heading, ping_line, read_pings
from serried.trace.formats.megatron.statistics import measure_timers
from serried.trace.formats.megatron.timers import read_timer_log
from serried.trace.formats.paddle.folder import copied_machines
from serried.trace.formats.paddle.log import read_paddle_logs
from serried.trace.formats.perfetto import write_perfetto
from serried.trace.formats.reading import read_recording, read_trace
from serried.trace.formats.straggler.table import COLUMNS, read_straggler_table, replay_of
from serried.trace.gpu.activity import GpuTrace
from serried.trace.gpu.analysis import analyse_gpus
from serried.trace.merge.files import rank_files
from serried.trace.merge.survey import survey
from serried.trace.model.record import names_in
from serried.trace.store.folder import read_store, write_store
from tests.trace.recorded_run import Run
from tests.trace.steps_taken import DOUBLED, steps_taken
from tests.trace.traced_run import compute, trace_of

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

Event = dict[str, Any]
Write = Callable[[Path, int], Callable[[], object]]
"""Writes a file of a size into a folder; returns what reads it."""
TWO_RANKS = trace_of([compute(0, "0F0", 0, 5), compute(1, "1F0", 5, 9)], pp=2)


def begin_and_end(event: Event, begin: float, end: float) -> list[Event]:
    return [{**event, "ph": "B", "ts": begin}, {**event, "ph": "E", "ts": end}]


def kineto(count: int) -> object:
    actions = [{"name": f"PP:0F{n}", "ph": "X", "ts": 10 * n, "dur": 4} for n in range(count)]
    steps = [
        {"name": f"ProfilerStep#{n}", "ph": "X", "ts": 99 * n, "dur": 90} for n in range(count)
    ]
    return {"distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": [*actions, *steps]}


def ndtimeline(count: int) -> object:
    named = {"name": "forward-compute", "ph": "X", "dur": 4}
    return [
        {**named, "ts": 10 * n, "args": {"rank": n % 7, "step": n // 50, "pp": n % 7}}
        for n in range(count)
    ]


def megatronapp(count: int) -> object:
    found = []
    for n in range(count):
        numbers = {"iteration": n // 50, "microbatch": n % 50, "model_chunk": 0, "pp_rank": n % 4}
        event = {"name": "forward", "pid": n % 4, "tid": 0, "args": numbers}
        found += begin_and_end(event, 10 * n, 10 * n + 5)
    return found


def paddle_dynamic(count: int) -> object:
    place = {"cat": "pipeline timeline", "pid": 0}
    found = []
    for n in range(count):
        event = {**place, "name": f"F{n % 8}", "tid": 1 + n * 2 // count}
        found += begin_and_end(event, 10 * (n % (count // 2)), 10 * (n % (count // 2)) + 5)
    return found


def events(document: Callable[[int], object], folder: Path, count: int) -> Callable[[], object]:
    path = folder / "x.json"
    path.write_text(json.dumps(document(count)))
    return lambda: read_trace([path])


def many_event_files(folder: Path, count: int) -> Callable[[], object]:
    for rank in range(count):
        text = json.dumps(kineto(1)).replace('"rank": 0', f'"rank": {rank}')
        (folder / f"rank{rank}.json").write_text(text)
    return lambda: read_trace([folder], {"pp": 1, "dp": count})


def paddle_records(folder: Path, count: int) -> Callable[[], object]:
    for rank in range(2):
        lines = paddle_dynamic(count)
        assert isinstance(lines, list)
        text = "\n".join(json.dumps({**each, "tid": rank + 1}) for each in lines)
        (folder / f"profile_record_tmp_file_for_rank_{rank}").write_text(text)
    return lambda: read_trace([folder])


def paddle_logs(folder: Path, count: int) -> Callable[[], object]:
    line = (
        "noise Profiler Info: Job ({n}), type = forward, micro_batch_id = {n}, "
        "job_start_time = {at}.0, job_end_time = {at}.5\n"
    )
    for device in range(2):
        text = "".join(line.format(n=n, at=1_700_000_000_000 + n) for n in range(count))
        (folder / f"workerlog.{device}").write_text(text)
    return lambda: read_paddle_logs(folder)


def copied_logs(folder: Path, count: int) -> Callable[[], object]:
    paths = {}
    for machine in range(count):
        path = folder / f"{machine:04d}"
        path.write_text(f"{machine:04d}")
        paths[str(machine)] = {0: path}
    return lambda: copied_machines(paths)


def megatron_timers(folder: Path, count: int) -> Callable[[], object]:
    iteration = (
        " iteration {}/ 100 | elapsed time per iteration (ms): 9.0 | global batch size: 8 |\n"
    )
    lines = [iteration.format(5), "times across ranks (ms):\n"]
    for timer in ("forward-backward", "forward-compute", "backward-compute"):
        lines += [f"  {timer}:\n", *(f"     rank {rank:2d}: {rank}.5\n" for rank in range(count))]
    path = folder / "x.log"
    path.write_text("".join([*lines, iteration.format(10)]))
    return lambda: measure_timers(read_timer_log(path), {"dp": count})


def table(folder: Path, rows: list[tuple[Any, ...]]) -> Callable[[], object]:
    names = (*COLUMNS, "mb_id", "gmc")
    path = folder / "x.parquet"
    columns = zip(*rows, strict=True)
    parquet.write_table(pyarrow.table(dict(zip(names, map(list, columns), strict=True))), path)
    return lambda: replay_of(read_straggler_table(path))


def operation(type_: str, stage: int, seq: int, *, dp: int = 0, step: int = 0) -> tuple[Any, ...]:
    start = float(seq) + (type_ == "backward-compute") * 0.5
    return (dp, stage, stage, step, type_, start, 0.1, seq, seq, 0, 0)


def stages(folder: Path, count: int) -> Callable[[], object]:
    types = ("forward-compute", "backward-compute")
    return table(folder, [operation(type_, stage, 0) for stage in range(count) for type_ in types])


def chunks(folder: Path, count: int) -> Callable[[], object]:
    types = ("params-all-gather", "forward-compute", "backward-compute", "grads-reduce-scatter")
    last = [operation("separate-grads-all-reduce", 0, count)]
    rows = [operation(type_, 0, seq) for seq in range(count) for type_ in types]
    return table(folder, rows + last)


def pings(folder: Path, count: int) -> Callable[[], object]:
    lines = [ping_line(1, (10 * n, 10 * n + 1, 10 * n + 2, 10 * n + 3)) for n in range(count)]
    (folder / ping_file(0)).write_text(ping_heading(run="run-a", rank=0) + "".join(lines))
    return lambda: read_pings([folder], TWO_RANKS)


def record(folder: Path, count: int) -> Callable[[], object]:
    (file,) = rank_files(Run(pp=1, dp=1, num_steps=count).write(folder))
    return lambda: survey(file)


def names(_: Path, count: int) -> Callable[[], object]:
    text = "\n".join(json.dumps(f"name {n}") for n in range(count))
    return lambda: names_in(text)


def store(folder: Path, count: int) -> Callable[[], object]:
    run = Run(pp=2, dp=count, num_steps=1, num_microbatches=1)
    trace = read_trace([run.write(folder / "run")])
    write_store(trace, folder / "run.store")
    return lambda: read_store(folder / "run.store")


def kernels(folder: Path, count: int) -> Path:
    """Writes a profile of GPUs: launches, kernels on two streams, an all-reduce every fifth."""
    found: list[Event] = []
    for n in range(count):
        names = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", f"gemm_{n % 9}"
        args = {"device": 0, "stream": 7 if n % 5 else 20, "correlation": n}
        timed = {"ph": "X", "ts": 20 * n, "dur": 15}
        found += [
            {**timed, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 3, "args": args},
            {**timed, "cat": "kernel", "name": names[bool(n % 5)], "args": args},
        ]
    path = folder / "rank0.json"
    path.write_text(json.dumps({"traceEvents": found}))
    return path


def profile(folder: Path, count: int) -> Callable[[], object]:
    path = kernels(folder, count)
    return lambda: read_recording([path])


def profile_measured(folder: Path, count: int) -> Callable[[], object]:
    found = read_recording([kernels(folder, count)])
    assert isinstance(found, GpuTrace)
    return lambda: analyse_gpus(found)


def own_perfetto(folder: Path, count: int) -> Callable[[], object]:
    run = Run(pp=2, dp=2, num_steps=count, num_microbatches=2)
    write_perfetto(read_trace([run.write(folder / "run")]), folder / "run.pftrace")
    return lambda: read_trace([folder / "run.pftrace"])


READERS: dict[str, tuple[Write, int]] = {
    "kineto": (partial(events, kineto), 200),
    "kineto, a file a rank": (many_event_files, 30),
    "ndtimeline": (partial(events, ndtimeline), 300),
    "megatronapp": (partial(events, megatronapp), 300),
    "paddle dynamic, joined": (partial(events, paddle_dynamic), 300),
    "paddle dynamic, a file a rank": (paddle_records, 300),
    "paddle logs": (paddle_logs, 300),
    "paddle logs of many machines": (copied_logs, 100),
    "megatron timers of many ranks": (megatron_timers, 200),
    "straggler table of many stages": (stages, 100),
    "straggler table of many chunks": (chunks, 150),
    "pings": (pings, 300),
    "a record": (record, 50),
    "names": (names, 300),
    "a store of many ranks": (store, 20),
    "a profile of GPUs": (profile, 300),
    "what is measured of a profile": (profile_measured, 200),
    "our own Perfetto file": (own_perfetto, 20),
}


@pytest.mark.parametrize("name", READERS)
def test_twice_as_much_to_read_takes_twice_the_work(name: str, tmp_path: Path) -> None:
    write, count = READERS[name]
    taken = []
    for size in (count, 2 * count):
        folder = tmp_path / str(size)
        folder.mkdir()
        read = write(folder, size)
        read()  # what is imported and kept on the way counts once
        taken.append(steps_taken(read))
    assert taken[1] <= DOUBLED * taken[0]


# ----------------------------------------------------------------------- hostile files


def test_steps_that_lack_operations_take_no_room_in_the_table_of_steps(tmp_path: Path) -> None:
    # Every operation in a step and on a replica of its own: room for all would be their cube.
    rows = [operation(type_, 0, 0) for type_ in ("forward-compute", "backward-compute")]
    count = 30_000
    rows += [operation("gc", 0, n) for n in range(count)]
    rows += [operation("gc", 0, n, dp=n, step=n) for n in range(1, count)]
    rows = [(dp, stage, dp, *rest) for dp, stage, _, *rest in rows]
    with pytest.raises(InputError, match="no step of the table has every operation"):
        table(tmp_path, rows)()


def test_a_table_that_says_it_holds_more_than_its_bytes_can_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    column = np.zeros(30_000_000, dtype=np.int8)
    parquet.write_table(pyarrow.table({"rank": column}), path, compression="zstd")
    with pytest.raises(InputError, match="more than 100 for each of its bytes"):
        read_straggler_table(path)


def test_a_line_of_letters_is_no_work_for_the_reader_of_timers(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes((b"world size: " + b"a" * 65_000 + b"\n") * 50)
    with pytest.raises(InputError, match="holds no whole interval"):
        read_timer_log(path)


@pytest.mark.parametrize("stage", [2**24, 10**30])
def test_one_event_of_a_stage_far_away_makes_no_pipeline_of_that_length(
    stage: int, tmp_path: Path
) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps([{"name": f"PP:{stage}F0", "ph": "X", "ts": 1, "dur": 1}]))
    try:
        assert len(read_trace([path]).spans) == 1
    except InputError as error:
        assert str(path) in str(error) or "stage" in str(error)


def test_a_rank_far_away_in_a_file_s_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "profile_record_tmp_file_for_rank_9999999"
    lines = begin_and_end({"name": "F0", "cat": "pipeline timeline", "tid": 1}, 1, 2)
    path.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(InputError, match="rank 9999999 is beyond 262143"):
        read_trace([path])


@pytest.mark.parametrize("name", [ping_file(0), "_serried.json"])
def test_a_file_larger_than_stated_is_refused_by_its_name(name: str, tmp_path: Path) -> None:
    place = tmp_path / name
    with place.open("wb") as file:
        file.truncate(300 << 20)
    if name == "_serried.json":
        with pytest.raises(InputError, match="holds more than 256 MB"):
            read_store(tmp_path)
    else:
        found = read_pings([tmp_path], TWO_RANKS)
        assert "holds more than 256 MB" in str(found.findings[0].evidence[0])
