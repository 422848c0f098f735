"""Exports of Nsight Systems are read as profiles of torch's are, and refused in one sentence."""

from __future__ import annotations

import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest

from serried.errors import InputError
from serried.trace.formats.reading import read_recording
from serried.trace.gpu.activity import GpuTrace, OperationKind
from serried.trace.gpu.analysis import analyse_gpus

PROCESS = 0x0001_0000_2A00_0000
SCHEMA = """
create table StringIds (id integer not null primary key, value text not null);
create table CUPTI_ACTIVITY_KIND_KERNEL (start int, "end" int, deviceId int, contextId int,
    streamId int, correlationId int, globalPid int, demangledName int, shortName int);
create table CUPTI_ACTIVITY_KIND_MEMCPY (start int, "end" int, deviceId int, streamId int,
    correlationId int, globalPid int, bytes int, copyKind int);
create table CUPTI_ACTIVITY_KIND_RUNTIME (start int, "end" int, eventClass int, globalTid int,
    correlationId int, nameId int, returnValue int);
create table NVTX_EVENTS (start int, "end" int, eventType int, text text, globalTid int,
    textId int);
create table TARGET_INFO_GPU (id int, name text);
create table TARGET_INFO_SYSTEM_ENV (name text, value text);
create table TARGET_INFO_SESSION_START_TIME (utcEpochNs int);
insert into StringIds values (1, 'void gemm<float>(int)'), (2, 'gemm'),
    (3, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)'), (4, 'cudaLaunchKernel_v7000'), (5, 'step 2');
insert into TARGET_INFO_GPU values (0, 'NVIDIA H100');
insert into TARGET_INFO_SYSTEM_ENV values ('Hostname', 'node7');
insert into TARGET_INFO_SESSION_START_TIME values (1700000000000000000);
"""


def export(folder: Path, name: str = "rank3.sqlite", *, processes: int = 1, more: str = "") -> Path:
    """Writes an export of processes with a step of two kernels and a copy each."""
    path = folder / name
    with closing(sqlite3.connect(path)) as file:
        file.executescript(SCHEMA)
        for number in range(processes):
            process, device = PROCESS + (number << 24), processes - 1 - number
            thread = process + 77
            rows = [(1000, 3000, 7, 11, 1, 2), (3500, 5500, 20, 12, 3, 3)]
            for start, end, stream, correlation, full, short in rows:
                file.execute(
                    "insert into CUPTI_ACTIVITY_KIND_KERNEL values (?,?,?,1,?,?,?,?,?)",
                    (start, end, device, stream, correlation, process, full, short),
                )
                file.execute(
                    "insert into CUPTI_ACTIVITY_KIND_RUNTIME values (?,?,0,?,?,4,0)",
                    (start - 500, start - 400, thread, correlation),
                )
            file.execute(
                "insert into CUPTI_ACTIVITY_KIND_MEMCPY values (6000,7000,?,7,13,?,4000,1)",
                (device, process),
            )
            file.execute("insert into NVTX_EVENTS values (0,9000,59,null,?,5)", (thread,))
        file.executescript(more)
        file.commit()
    return path


def gpus(*paths: Path) -> GpuTrace:
    found = read_recording(paths)
    assert isinstance(found, GpuTrace)
    return found


def test_kernels_copies_calls_and_ranges_are_read(tmp_path: Path) -> None:
    trace = gpus(export(tmp_path))
    (rank,) = trace.ranks
    assert (trace.tool, rank.rank, rank.host, rank.gpu) == (
        "Nsight Systems", 3, "node7", "NVIDIA H100",
    )  # fmt: skip
    base = 1700000000000000000
    assert (rank.operations.start_ns - base).tolist() == [1000, 3500, 6000]
    assert [OperationKind(each) for each in rank.operations.kind.tolist()] == [
        OperationKind.COMPUTATION,
        OperationKind.COMMUNICATION,
        OperationKind.MEMORY,
    ]
    assert rank.names_of(rank.operations.name)[0] == "void gemm<float>(int)"
    assert rank.names_of(rank.calls.name) == ["step 2", "cudaLaunchKernel", "cudaLaunchKernel"]
    assert rank.steps.number.tolist() == [2]


def test_its_figures_are_measured(tmp_path: Path) -> None:
    (figures,) = analyse_gpus(gpus(export(tmp_path))).ranks
    assert (figures.time.window_ns, figures.time.idle_ns) == (6000, 1000)
    assert (figures.launches.count, figures.launches.delays_ns) == (2, 800)
    assert figures.copies[0].way == "Memcpy HtoD"
    assert figures.copies[0].gb_per_s is not None and figures.copies[0].gb_per_s.mean == 4.0


def test_processes_of_a_node_are_ranks_by_device_and_a_sentence_says_so(tmp_path: Path) -> None:
    trace = gpus(export(tmp_path, "node.sqlite", processes=2))
    assert [rank.operations.device[0] for rank in trace.ranks] == [0, 1]
    assert "names no rank" in str(trace.warnings[0])


def test_a_folder_of_exports_is_one_job(tmp_path: Path) -> None:
    for number in (10, 2):
        export(tmp_path, f"run_rank{number}.sqlite")
    assert [rank.rank for rank in gpus(tmp_path).ranks] == [2, 10]


# ----------------------------------------------------------------------- bad input


def refused(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_recording([path])
    return str(caught.value)


def test_a_truncated_export_is_refused(tmp_path: Path) -> None:
    path = export(tmp_path)
    path.write_bytes(path.read_bytes()[:9000])
    assert "cannot be read" in refused(path)


@pytest.mark.parametrize("content", [b"", b"\x00\xff" * 99])
def test_what_is_no_export_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(content)
    assert str(path) in refused(path)


def test_an_export_without_a_gpu_says_how_to_record_one(tmp_path: Path) -> None:
    path = export(tmp_path, processes=0)
    assert "--trace=cuda,nvtx" in refused(path)


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(path)) as file:
        file.execute("create table people (name text)")
    assert "no kernel" in refused(path)


def test_a_view_that_computes_without_end_is_not_asked(tmp_path: Path) -> None:
    endless = """
    drop table CUPTI_ACTIVITY_KIND_KERNEL;
    create view CUPTI_ACTIVITY_KIND_KERNEL as with recursive n(start) as
        (select 1 union all select start + 1 from n) select start, start as "end" from n;
    """
    assert "no plain table" in refused(export(tmp_path, more=endless))


def test_nsights_own_report_says_how_to_export_it(tmp_path: Path) -> None:
    path = tmp_path / "report1.nsys-rep"
    path.write_bytes(b"\x00QDSTRM")
    assert "nsys export --type sqlite" in refused(path)


def test_damaged_rows_harm_no_other(tmp_path: Path) -> None:
    damaged = """
    insert into CUPTI_ACTIVITY_KIND_KERNEL values ('x', null, 'y', 1, 2.5, 'z', null, 99, null);
    insert into CUPTI_ACTIVITY_KIND_KERNEL values (9, 3, 0, 1, 7, 1, 1, 1, 1);
    insert into CUPTI_ACTIVITY_KIND_RUNTIME values (null, 1, 0, 'x', 1, 4, 0);
    insert into NVTX_EVENTS values (5, null, 34, 'mark', 1, null);
    """
    assert len(gpus(export(tmp_path, more=damaged)).ranks[0].operations) == 3


def test_unknown_tables_and_columns_are_left_where_they_are(tmp_path: Path) -> None:
    more = """
    alter table CUPTI_ACTIVITY_KIND_KERNEL add column greenContextId int;
    alter table NVTX_EVENTS add column jsonTextId text;
    create table CUPTI_ACTIVITY_KIND_ZEBRA (start int, stripes blob);
    insert into CUPTI_ACTIVITY_KIND_ZEBRA values (1, x'00ff');
    """
    plain, again = gpus(export(tmp_path)), gpus(export(tmp_path, "rank4.sqlite", more=more))
    for each in ("start_ns", "end_ns", "stream", "kind"):
        one, two = (getattr(found.ranks[0].operations, each) for found in (plain, again))
        assert one.tolist() == two.tolist()


def test_columns_that_an_older_export_lacks_are_done_without(tmp_path: Path) -> None:
    less = """
    alter table CUPTI_ACTIVITY_KIND_KERNEL drop column demangledName;
    drop table NVTX_EVENTS; drop table TARGET_INFO_GPU;
    """
    (rank,) = gpus(export(tmp_path, more=less)).ranks
    assert rank.names_of(rank.operations.name)[0] == "gemm"
    assert (rank.gpu, len(rank.steps)) == ("", 0)


def test_a_large_export_takes_the_memory_of_what_is_kept_of_it(tmp_path: Path) -> None:
    # A kilobyte of each row is of no use here; rows come one by one.
    more = f"""
    alter table CUPTI_ACTIVITY_KIND_KERNEL add column stack text;
    with recursive n(at) as (select 1 union all select at + 1 from n where at < 24000)
    insert into CUPTI_ACTIVITY_KIND_KERNEL
        select 9000 * at, 9000 * at + 50, 0, 1, 7, -1, {PROCESS}, 1, 2, hex(zeroblob(500)) from n;
    """
    path = export(tmp_path, more=more)
    assert path.stat().st_size > 24 << 20
    tracemalloc.start()
    try:
        assert len(gpus(path).ranks[0].operations) == 24_003
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 14 << 20
