"""Merging gives one run on one clock, and says what is missing, torn or mixed."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried import frameworks
from serried.action import ActionKind, Span
from serried.errors import InputError
from serried.frameworks import Sizes
from serried.trace.formats.chrome import write_chrome
from serried.trace.measure.statistics import measure
from serried.trace.merge.in_memory import merge
from serried.trace.merge.store import merge_store
from serried.trace.model.record import HEADER_BYTES, file_name
from serried.trace.model.record_writer import RecordWriter
from serried.trace.model.trace import Trace
from serried.trace.store.folder import read_store
from tests.trace.recorded_run import WALL_NS, Clock, Run, record

RUN = Run(pp=2, tp=2, dp=2, num_microbatches=3)

Ask = Callable[[], Trace]


def refused(ask: Ask) -> str:
    with pytest.raises(InputError) as caught:
        ask()
    return str(caught.value)


def warned(trace: Trace) -> list[str]:
    return [str(warning) for warning in trace.warnings]


def in_time_order(spans: list[Span]) -> list[Span]:
    return sorted(spans, key=lambda span: (span.rank, span.start_ns))


# ----------------------------------------------------------------------- one run


def test_a_merged_run_holds_every_span_of_every_rank(tmp_path: Path) -> None:
    trace = merge([RUN.write(tmp_path / "run")])

    assert list(trace.spans) == in_time_order(RUN.spans())
    assert trace.ranks == tuple(range(8))
    assert (trace.run, trace.job) == (RUN.name, RUN.job)
    assert (trace.torn, trace.missing, trace.warnings) == ((), (), ())
    assert trace.is_emulated


def test_a_run_whose_recorder_named_no_schedule_has_the_microbatches_that_ran(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    job = dataclasses.replace(RUN.job, schedule="unknown", num_microbatches=1)
    for rank in range(RUN.world_size):
        with contextlib.closing(RecordWriter(folder, Clock("a").header("run-a", rank, job))) as one:
            for span in RUN.spans():
                if span.rank == rank:
                    record(one, span)
            # What its user counts is no microbatch of the pipeline.
            one.add(ActionKind.SPAN, 0, 1, step=0, microbatch=77)

    trace = merge([folder])

    assert trace.job.num_microbatches == RUN.num_microbatches
    merge_store([folder], tmp_path / "run.store")
    assert read_store(tmp_path / "run.store").job == trace.job


def test_times_start_at_zero_and_the_base_gives_the_wall_time_back(tmp_path: Path) -> None:
    later = 7_000_000_000
    folder = RUN.write(tmp_path / "run", clocks=[Clock("a", later)] * 8)

    trace = merge([folder])

    assert trace.spans.start_ns.min() == 0
    assert trace.base_ns == WALL_NS


def test_folders_of_two_nodes_merge_as_one_does(tmp_path: Path) -> None:
    RUN.write(tmp_path / "node0", only=range(4))
    RUN.write(tmp_path / "node1", only=range(4, 8))

    trace = merge([tmp_path / "node1", tmp_path / "node0"])

    assert list(trace.spans) == in_time_order(RUN.spans())


def test_a_folder_given_twice_counts_once(tmp_path: Path) -> None:
    folder = RUN.write(tmp_path / "run")
    (folder / file_name(8)).touch()

    trace = merge([folder, folder])

    assert len(trace.spans) == len(RUN.spans())
    assert len(trace.warnings) == 1


def test_the_layout_is_made_again_from_the_job(tmp_path: Path) -> None:
    layout = merge([RUN.write(tmp_path / "run")]).layout

    assert layout is not None
    expected = frameworks.layout("megatron", Sizes(8, tp=2, pp=2))
    assert layout.groups("pp").lists() == expected.groups("pp").lists()
    assert layout.sizes == expected.sizes


def test_internlm_jobs_give_their_layout_too(tmp_path: Path) -> None:
    made = frameworks.layout("internlm", Sizes(8, tp=2, pp=2))
    job = dataclasses.replace(RUN.job, framework="internlm", sizes=made.sizes, order=made.order)
    _write_one_rank(tmp_path, job=job)

    layout = merge([tmp_path]).layout

    assert layout is not None
    assert layout.groups("data").lists() == made.groups("data").lists()


@pytest.mark.parametrize(
    ("asked", "made"), [("", "tp-cp-ep-dp-pp"), ("tp-cp-ep-pp-dp", "tp-cp-ep-pp-dp")]
)
def test_the_layout_keeps_the_order_of_the_job(tmp_path: Path, asked: str, made: str) -> None:
    _write_one_rank(tmp_path, job=dataclasses.replace(RUN.job, order=asked))

    layout = merge([tmp_path]).layout

    assert layout is not None
    assert layout.order == made


def test_a_layout_that_cannot_be_made_is_a_warning(tmp_path: Path) -> None:
    _write_one_rank(tmp_path, job=dataclasses.replace(Run(pp=1).job, framework="other"))

    trace = merge([tmp_path])

    assert trace.layout is None
    (warning,) = warned(trace)
    assert warning.startswith(
        "the run's groups cannot be made again: framework 'other' is not known; those that are: "
    )


def _write_one_rank(folder: Path, **changes: object) -> None:
    header = dataclasses.replace(Clock("a").header("run-a", 0, RUN.job), **changes)  # type: ignore[arg-type]
    recorder = RecordWriter(folder, header)
    recorder.add(1, 5, 6, step=0, stage=0, microbatch=0)  # type: ignore[arg-type]
    recorder.close()


# ----------------------------------------------------------------------- clocks


TWO_HOSTS = [Clock("a", 10**15)] * 4 + [Clock("b", 3 * 10**9, boot="other")] * 4


def test_hosts_are_placed_by_their_clock_pairs(tmp_path: Path) -> None:
    trace = merge([RUN.write(tmp_path / "run", clocks=TWO_HOSTS)])

    assert [(host.name, host.ranks) for host in trace.hosts] == [
        ("a", (0, 1, 2, 3)),
        ("b", (4, 5, 6, 7)),
    ]
    assert [host.offset_ns for host in trace.hosts] == [WALL_NS - 10**15, WALL_NS - 3 * 10**9]
    assert list(trace.spans) == in_time_order(RUN.spans())


@given(late=st.lists(st.integers(0, 10**9), min_size=8, max_size=8))
def test_ranks_of_one_host_are_never_shifted_against_each_other(
    late: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    clocks = [dataclasses.replace(TWO_HOSTS[r], late_ns=late[r]) for r in range(8)]
    trace = merge([RUN.write(tmp_path_factory.mktemp("run"), clocks=clocks)])
    true = merge([RUN.write(tmp_path_factory.mktemp("true"))])

    for ranks in (range(4), range(4, 8)):
        on_host = np.isin(trace.spans.rank, ranks)
        shift = trace.spans.start_ns[on_host] - true.spans.start_ns[on_host]
        assert len(set(shift.tolist())) == 1


def test_one_rank_held_up_while_it_read_its_clocks_moves_nothing(tmp_path: Path) -> None:
    clocks = [*TWO_HOSTS[:7], dataclasses.replace(TWO_HOSTS[7], late_ns=40_000_000)]

    trace = merge([RUN.write(tmp_path / "run", clocks=clocks)])

    assert list(trace.spans) == in_time_order(RUN.spans())


def test_two_machines_of_one_name_are_told_apart_by_their_boot(tmp_path: Path) -> None:
    clocks = [dataclasses.replace(clock, host="node") for clock in TWO_HOSTS]

    trace = merge([RUN.write(tmp_path / "run", clocks=clocks)])

    assert [host.ranks for host in trace.hosts] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert list(trace.spans) == in_time_order(RUN.spans())


# ----------------------------------------------------------------------- damaged


def test_a_torn_file_gives_its_complete_spans_and_a_warning(tmp_path: Path) -> None:
    folder = RUN.write(tmp_path / "run")
    path = folder / file_name(5)
    path.write_bytes(path.read_bytes()[: HEADER_BYTES + 3 * 40 + 17])

    trace = merge([folder])

    assert trace.torn == (5,)
    assert (trace.spans.rank == 5).sum() == 3
    assert (trace.spans.rank == 4).sum() == len([s for s in RUN.spans() if s.rank == 4])
    assert warned(trace) == [
        f"{path} has no proper end: rank 5 was killed or still runs; "
        "its 3 complete spans are kept; if it runs, merge again later"
    ]
    assert [(warning.kind, warning.ranks) for warning in trace.warnings] == [("torn", (5,))]


def test_a_file_cut_in_its_header_is_a_warning_and_its_rank_missing(tmp_path: Path) -> None:
    folder = RUN.write(tmp_path / "run")
    path = folder / file_name(5)
    path.write_bytes(path.read_bytes()[:100])

    trace = merge([folder])

    assert trace.missing == (5,)
    assert warned(trace) == [
        f"{path} ends within its header: its rank stopped before it recorded a span",
        "1 of 8 ranks have no file here: 5; give the folders of all nodes at once",
    ]


def test_missing_ranks_are_said_and_the_others_merged(tmp_path: Path) -> None:
    trace = merge([RUN.write(tmp_path / "run", only=[0, 1, 2, 5, 7])])

    assert trace.ranks == (0, 1, 2, 5, 7)
    assert trace.missing == (3, 4, 6)
    assert warned(trace) == [
        "3 of 8 ranks have no file here: 3, 4, 6; give the folders of all nodes at once"
    ]


def test_a_rank_that_recorded_nothing_is_there_with_no_span(tmp_path: Path) -> None:
    trace = merge([RUN.write(tmp_path / "run", keep=lambda span: span.rank != 6)])

    assert trace.ranks == tuple(range(8))
    assert 6 not in trace.spans.rank
    assert trace.warnings == ()


@given(place=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255))
def test_one_wrong_byte_anywhere_gives_a_trace_or_one_sentence(
    place: float, byte: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    run = Run(pp=2, num_microbatches=1, num_steps=1)
    raw = bytearray((run.write(folder) / file_name(1)).read_bytes())
    # Of the header only what is written: the rest is not read.
    places = [*range(raw.index(b"\0" * 8)), *range(HEADER_BYTES - 8, len(raw))]
    raw[places[int(place * len(places))]] = byte
    (folder / file_name(1)).write_bytes(raw)

    with contextlib.suppress(InputError):
        trace = merge([folder])
        measure(trace)
        write_chrome(trace, folder / "trace.json")


# ----------------------------------------------------------------------- refused


def test_two_runs_in_one_folder_are_refused_by_name(tmp_path: Path) -> None:
    RUN.write(tmp_path, only=range(4))
    dataclasses.replace(RUN, name="run-b").write(tmp_path, only=range(4, 8))

    assert refused(lambda: merge([tmp_path])) == (
        f"two runs are mixed: {tmp_path}/rank-00000.spans is of run run-a, "
        f"{tmp_path}/rank-00004.spans of run run-b; merge each run from a folder of its own"
    )


def test_two_runs_in_two_folders_are_refused_by_name(tmp_path: Path) -> None:
    a, b = RUN.write(tmp_path / "a"), dataclasses.replace(RUN, name="run-b").write(tmp_path / "b")

    assert refused(lambda: merge([b, a])) == (
        f"two runs are mixed: {b}/rank-00000.spans is of run run-b, "
        f"{a}/rank-00000.spans of run run-a; merge each run from a folder of its own"
    )


def test_one_run_that_describes_two_jobs_is_refused(tmp_path: Path) -> None:
    RUN.write(tmp_path, only=range(4))
    dataclasses.replace(RUN, num_microbatches=4).write(tmp_path, only=range(4, 8))

    assert refused(lambda: merge([tmp_path])) == (
        f"{tmp_path}/rank-00000.spans and {tmp_path}/rank-00004.spans are of one run (run-a) "
        "but describe two jobs; record each job into a folder of its own"
    )


def test_a_rank_outside_its_world_is_refused(tmp_path: Path) -> None:
    _write_one_rank(tmp_path, rank=8)

    assert refused(lambda: merge([tmp_path])) == (
        f"{tmp_path}/rank-00008.spans is of rank 8, outside its job's 8 ranks; it is not usable"
    )


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    assert refused(lambda: merge([tmp_path])) == (
        f"{tmp_path} holds no rank-*.spans files; give the folder that --trace-dir named"
    )


def test_one_empty_folder_among_others_is_refused(tmp_path: Path) -> None:
    folder = RUN.write(tmp_path / "run")
    (tmp_path / "empty").mkdir()

    assert refused(lambda: merge([folder, tmp_path / "empty"])).startswith(
        f"{tmp_path}/empty holds no rank-*.spans files"
    )


def test_the_folder_above_is_refused_by_naming_those_below(tmp_path: Path) -> None:
    a, b = RUN.write(tmp_path / "a"), RUN.write(tmp_path / "b")

    assert refused(lambda: merge([tmp_path])) == (
        f"{tmp_path} itself holds no rank-*.spans files; give the folders in it that do: {a}, {b}"
    )


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert refused(lambda: merge([tmp_path / "absent"])) == (
        f"{tmp_path}/absent is not there; give the folder that --trace-dir named"
    )


def test_a_file_is_refused_where_a_folder_is_meant(tmp_path: Path) -> None:
    path = RUN.write(tmp_path) / file_name(0)

    assert refused(lambda: merge([path])) == (
        f"{path} is a file; give the folder that holds the rank-*.spans files"
    )


def test_files_without_a_complete_span_are_refused(tmp_path: Path) -> None:
    RUN.write(tmp_path, keep=lambda span: False, only=range(2))

    assert refused(lambda: merge([tmp_path])) == (
        f"{tmp_path}/rank-00000.spans, {tmp_path}/rank-00001.spans hold no complete span: "
        "the ranks stopped before they recorded one"
    )
