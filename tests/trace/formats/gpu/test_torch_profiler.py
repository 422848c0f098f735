"""A profile of torch's without marks of a pipeline is read whole, and refused in one sentence."""

from __future__ import annotations

import gzip
import json
import shutil
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from serried.errors import InputError
from serried.limits import Limit
from serried.trace.formats.gpu import columns
from serried.trace.formats.reading import read_recording, read_trace
from serried.trace.gpu.activity import CallKind, GpuTrace, OperationKind
from serried.trace.model.trace import Trace
from tests.trace.gpu.samples import FOLDER, sample

KERNEL = {
    "ph": "X",
    "cat": "kernel",
    "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)",
    "ts": 4458676980491.8,
    "dur": 5807.89,
    "args": {
        "device": 0,
        "stream": 40,
        "correlation": 57465,
        "Collective name": "allreduce",
        "In msg nelems": 6563840,
        "Out msg nelems": 6563840,
        "Group size": 2,
        "dtype": "Float",
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
        "Process Group Ranks": "[0, 1]",
    },
}
LAUNCH = {
    "ph": "X",
    "cat": "cuda_runtime",
    "name": "cudaLaunchKernelExC",
    "ts": 4458676980400,
    "dur": 9.5,
    "pid": 5,
    "tid": 6,
    "args": {"correlation": 57465},
}


def written(
    folder: Path, events: list[dict[str, Any]], name: str = "rank0.json", **about: Any
) -> Path:
    path = folder / name
    path.write_text(json.dumps({**about, "traceEvents": events}))
    return path


def gpus(*paths: Path) -> GpuTrace:
    found = read_recording(paths)
    assert isinstance(found, GpuTrace)
    return found


def refused(*paths: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_recording(paths)
    return str(caught.value)


def test_a_kernel_keeps_its_times_to_the_nanosecond_and_what_it_was_asked(tmp_path: Path) -> None:
    base = 1711964646000000000
    path = written(tmp_path, [KERNEL, LAUNCH], baseTimeNanoseconds=str(base))
    (rank,) = gpus(path).ranks
    kernel, call = rank.operations, rank.calls
    assert kernel.start_ns.tolist() == [base + 4458676980491800]
    assert kernel.duration_ns.tolist() == [5807890]
    assert (kernel.stream[0], kernel.correlation[0]) == (40, call.correlation[0])
    assert kernel.kind[0] == OperationKind.COMMUNICATION
    assert call.kind[0] == CallKind.DRIVER
    (asked,) = rank.exchanges
    assert (asked.collective, asked.elements_in, asked.dtype) == ("allreduce", 6563840, "Float")
    assert (asked.purpose, asked.ranks) == ("default_pg", (0, 1))


def test_a_list_of_ranks_that_was_cut_short_is_gone_on_with_by_its_stride(tmp_path: Path) -> None:
    more = {"Process Group Ranks": "[1, 5, ...]", "Group size": 4}
    args = {**KERNEL["args"], **more, "Global rank start": 1, "Global rank stride": 4}  # type: ignore[dict-item]
    (rank,) = gpus(written(tmp_path, [{**KERNEL, "args": args}])).ranks
    assert rank.exchanges[0].ranks == (1, 5, 9, 13)


def test_categories_of_the_first_versions_are_known(tmp_path: Path) -> None:
    old = [{**KERNEL, "cat": "Kernel"}, {**LAUNCH, "cat": "Runtime"}]
    (rank,) = gpus(written(tmp_path, old)).ranks
    assert (len(rank.operations), len(rank.calls)) == (1, 1)


def test_ranges_over_streams_and_their_waits_are_no_operations(tmp_path: Path) -> None:
    other = [{**KERNEL, "cat": each} for each in ("gpu_user_annotation", "cuda_sync", "overhead")]
    (rank,) = gpus(written(tmp_path, [KERNEL, *other])).ranks
    assert len(rank.operations) == 1


def test_marks_of_a_pipeline_make_it_a_pipelines_trace_however_late_they_stand(
    tmp_path: Path,
) -> None:
    mark = {"ph": "X", "cat": "user_annotation", "name": "PP:0F0", "ts": 5, "dur": 9}
    found = read_recording([written(tmp_path, [KERNEL, LAUNCH, mark])])
    assert isinstance(found, Trace) and len(found.spans) == 1


def test_ranks_stand_in_order_and_say_how_many_are_absent() -> None:
    trace = sample("sampled_rank-1.json.gz", "sampled_rank-0.json.gz")
    assert [each.rank for each in trace.ranks] == [0, 1]
    assert trace.world_size == 128
    (warning,) = trace.warnings
    assert str(warning) == "the files are of 2 of the job's 128 ranks: 0, 1"


def test_a_pipelines_reader_says_what_does_read_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="serried trace stats"):
        read_trace([written(tmp_path, [KERNEL])])


# ----------------------------------------------------------------------- bad input


def test_a_truncated_file_gives_what_came_before(tmp_path: Path) -> None:
    whole = gzip.decompress((FOLDER / "alexnet.json.gz").read_bytes())
    path = tmp_path / "cut.json"
    path.write_bytes(whole[: len(whole) // 2])
    trace = gpus(path)
    assert 0 < len(trace.ranks[0].operations) < len(sample("alexnet.json.gz").ranks[0].operations)
    assert "ends in the middle" in str(trace.warnings[0])


def test_a_truncated_gzip_gives_what_came_before(tmp_path: Path) -> None:
    path = tmp_path / "cut.json.gz"
    path.write_bytes((FOLDER / "alexnet.json.gz").read_bytes()[:20_000])
    assert "ends in the middle" in str(gpus(path).warnings[0])


@pytest.mark.parametrize("content", [b"", b"\x00\xff" * 500, b'{"traceEvents": []}', b"SQLite"])
def test_what_is_no_profile_is_refused_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "rank0.json"
    path.write_bytes(content)
    assert str(path) in refused(path)


def test_a_profile_without_a_gpu_says_how_to_record_one() -> None:
    told = refused(FOLDER / "cpu_only.json.gz")
    assert "only 15 calls of the host" in told and "ProfilerActivity.CUDA" in told


def test_a_profile_without_a_gpu_beside_others_is_left_out(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "cpu_only.json.gz", tmp_path)
    shutil.copy(FOLDER / "alexnet.json.gz", tmp_path)
    trace = gpus(tmp_path)
    assert len(trace.ranks) == 1
    assert "cpu_only.json.gz holds no kernel" in str(trace.warnings[0])


def test_files_of_jobs_of_two_sizes_are_refused(tmp_path: Path) -> None:
    one = written(tmp_path, [KERNEL], "a.json", distributedInfo={"rank": 0, "world_size": 2})
    two = written(
        tmp_path, [LAUNCH, KERNEL], "b.json", distributedInfo={"rank": 1, "world_size": 8}
    )
    assert "of 2 ranks and" in refused(one, two)


def test_a_rank_outside_its_job_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, [KERNEL], distributedInfo={"rank": 8, "world_size": 8})
    assert "outside the job's 8 ranks" in refused(path)


def test_a_rank_that_stands_twice_is_refused(tmp_path: Path) -> None:
    about = {"distributedInfo": {"rank": 0, "world_size": 2}}
    one = written(tmp_path, [KERNEL], "a.json", **about)
    two = written(tmp_path, [KERNEL, LAUNCH], "b.json", **about)
    assert "stands twice" in refused(one, two)


def test_a_copy_counts_once(tmp_path: Path) -> None:
    paths = [written(tmp_path, [KERNEL], name) for name in ("a.json", "b.json")]
    assert "counted once" in str(gpus(*paths).warnings[0])


def test_more_than_the_memory_is_for_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "ACTIVITIES", Limit(1, "events", "a file"))
    assert "more than 1 kernels and calls" in refused(written(tmp_path, [KERNEL, LAUNCH]))


@pytest.mark.parametrize(
    "broken",
    [
        {"ts": "soon"},
        {"ts": None},
        {"dur": -1},
        {"dur": 8e15},
        {"args": [1]},
        {"args": {"stream": "x", "correlation": 1e30, "bytes": True}},
        {"args": {"Collective name": 7}},
        {"name": 3},
        {"cat": ["kernel"]},
    ],
    ids=str,
)
def test_a_damaged_event_harms_no_other(tmp_path: Path, broken: dict[str, Any]) -> None:
    (rank,) = gpus(written(tmp_path, [{**KERNEL, **broken}, KERNEL])).ranks
    assert 1 <= len(rank.operations) <= 2


def test_unknown_keys_are_left_where_they_are(tmp_path: Path) -> None:
    plain = gpus(written(tmp_path, [LAUNCH, KERNEL]))
    known: dict[str, Any] = dict(KERNEL)
    args = {**known["args"], "warp schedulers": {"a": [1, None]}, "": 7}
    more = {**known, "args": args, "cname": "x", "tts": [3], "id2": {"local": 1}}
    other = {"ph": "X", "cat": "of another tool", "name": "?", "ts": 1, "dur": 1}
    events: list[dict[str, Any]] = [{"ph": "Z"}, other, LAUNCH, more]
    again = gpus(written(tmp_path, events, "rank1.json", deviceGreetings=[{"a": 1}], zebra=None))
    for each in ("start_ns", "end_ns", "stream", "exchange"):
        one, two = (getattr(found.ranks[0].operations, each) for found in (plain, again))
        assert one.tolist() == two.tolist()
    assert plain.ranks[0].exchanges == again.ranks[0].exchanges


def test_a_large_file_takes_the_memory_of_what_is_kept_of_it(tmp_path: Path) -> None:
    # A kilobyte of each event is of no use here; a piece of the text is held at a time.
    args = {"device": 0, "stream": 7, "Call stack": "x" * 1000}
    events = [{**KERNEL, "ts": 10 * n, "dur": 5, "args": args} for n in range(24_000)]
    path = written(tmp_path, events)
    assert path.stat().st_size > 24 << 20
    tracemalloc.start()
    try:
        assert len(gpus(path).ranks[0].operations) == 24_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 14 << 20
