"""A rank with several recordings: copies count once, a restart keeps what led to its last step."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

import pytest

from serried.errors import InputError
from serried.trace.measure.statistics import measure
from serried.trace.merge.attempts import with_restarts
from serried.trace.merge.in_memory import merge
from serried.trace.model.record import HEADER_BYTES, file_name
from serried.trace.model.record_writer import RecordWriter
from serried.trace.model.trace import Trace
from tests.trace.recorded_run import WALL_NS, Clock, Run, record

RUN = Run(pp=2, num_microbatches=3, num_steps=8)
STARTED = Run(pp=2)
SECOND = 1_000_000_000


def attempt(
    folder: Path, *, steps: Iterable[int], after_s: int = 0, rank: int = 0, host: str = "a"
) -> Path:
    """Records ``steps`` of ``rank``, begun ``after_s`` seconds into the run; returns its file."""
    folder.mkdir(exist_ok=True)
    kept = [span for span in RUN.spans() if span.rank == rank and span.step in steps]
    began_ns = after_s * SECOND
    header = dataclasses.replace(
        Clock(host, boot=host).header(RUN.name, rank, RUN.job),
        monotonic_ns=began_ns,
        wall_ns=WALL_NS + began_ns,
    )
    recorder = RecordWriter(folder, header)
    for span in kept:
        record(recorder, span, began_ns)
    recorder.close()
    return folder / file_name(rank)


def steps_of(trace: Trace, rank: int) -> list[int]:
    spans = trace.spans
    return sorted(set(spans.step[spans.rank == rank].tolist()))


def of_rank(trace: Trace, rank: int) -> list[str]:
    return [str(each) for each in trace.warnings if each.ranks == (rank,)]


# ----------------------------------------------------------------------- copies


def test_a_recording_copied_into_a_second_folder_counts_once(tmp_path: Path) -> None:
    a, b = RUN.write(tmp_path / "a"), RUN.write(tmp_path / "b", only=[1])

    for folders in ([a, b], [b, a]):
        trace = merge(folders)
        assert len(trace.spans) == len(RUN.spans())
        assert of_rank(trace, 1) == [
            f"{b}/rank-00001.spans is a copy of {a}/rank-00001.spans, rank 1's recording; "
            "counted once"
        ]


def test_of_a_copy_that_was_cut_off_the_whole_one_counts(tmp_path: Path) -> None:
    a, b = RUN.write(tmp_path / "a"), RUN.write(tmp_path / "b", only=[1])
    cut = a / file_name(1)
    cut.write_bytes(cut.read_bytes()[: HEADER_BYTES + 3 * 40])

    trace = merge([a, b])

    assert (len(trace.spans), trace.torn) == (len(RUN.spans()), ())
    assert of_rank(trace, 1)[0].startswith(f"{cut} is a copy of {b}/rank-00001.spans")


# ----------------------------------------------------------------------- restarts


def test_a_restarted_rank_keeps_the_steps_that_led_to_its_last(tmp_path: Path) -> None:
    for rank in (0, 1):
        attempt(tmp_path / "first", steps=range(6), rank=rank)
        attempt(tmp_path / "again", steps=range(3, 8), after_s=60, rank=rank)

    trace = merge([tmp_path / "first", tmp_path / "again"])

    assert steps_of(trace, 0) == steps_of(trace, 1) == list(range(8))
    assert len(trace.spans) == len(RUN.spans())
    assert [len(measure(trace).steps), measure(trace).left_out] == [8, ()]
    late = trace.spans.step >= 3
    assert trace.spans.start_ns[late].min() > 59 * SECOND > trace.spans.start_ns[~late].max()
    assert of_rank(trace, 0) == [
        f"rank 0 was restarted: {tmp_path}/again/rank-00000.spans follows "
        f"{tmp_path}/first/rank-00000.spans, of which the steps before 3 are kept"
    ]


def test_parts_that_follow_one_another_are_kept_whole(tmp_path: Path) -> None:
    for number, steps in enumerate((range(2), range(2, 5), range(5, 8))):
        for rank in (0, 1):
            attempt(tmp_path / str(number), steps=steps, after_s=60 * number, rank=rank)

    trace = merge([tmp_path / "2", tmp_path / "0", tmp_path / "1"])

    assert len(trace.spans) == len(RUN.spans())
    assert of_rank(trace, 1) == [
        f"rank 1 was restarted: {tmp_path}/{later}/rank-00001.spans follows "
        f"{tmp_path}/{earlier}/rank-00001.spans, of which all spans are kept"
        for earlier, later in ((0, 1), (1, 2))
    ]


def test_the_recorders_folder_of_a_later_attempt_is_named(tmp_path: Path) -> None:
    folder = RUN.write(tmp_path / "run")
    dataclasses.replace(RUN, name="run-b").write(folder / "restart-1")

    assert [str(each) for each in merge([folder]).warnings] == [
        f"the job of {folder} was restarted: {folder}/restart-1 hold what came after, and are left "
        "out; merge them by themselves"
    ]
    assert merge([folder / "restart-1"]).warnings == ()


def test_an_attempt_on_another_machine_is_left_out_and_named(tmp_path: Path) -> None:
    attempt(tmp_path / "first", steps=range(6))
    attempt(tmp_path / "again", steps=range(3, 8), after_s=60, host="b")
    attempt(tmp_path / "again", steps=range(3, 8), after_s=60, rank=1)

    trace = merge([tmp_path / "first", tmp_path / "again"])

    assert steps_of(trace, 0) == list(range(3, 8))
    assert [host.name for host in trace.hosts] == ["b", "a"]
    assert of_rank(trace, 0) == [
        f"rank 0 was restarted on another machine, b: {tmp_path}/again/rank-00000.spans is kept, "
        f"{tmp_path}/first/rank-00000.spans left out; merge the folders of the earlier attempt by "
        "themselves to see it"
    ]


def test_a_restart_that_recorded_nothing_takes_nothing_away(tmp_path: Path) -> None:
    attempt(tmp_path / "first", steps=range(8))
    attempt(tmp_path / "again", steps=(), after_s=60)

    assert steps_of(merge([tmp_path / "first", tmp_path / "again"]), 0) == list(range(8))


def test_a_rank_recorded_twice_at_the_same_time_is_refused(tmp_path: Path) -> None:
    attempt(tmp_path / "a", steps=range(8), after_s=60)
    attempt(tmp_path / "b", steps=range(8), after_s=60, host="b")

    with pytest.raises(InputError) as caught:
        merge([tmp_path / "a", tmp_path / "b"])
    assert str(caught.value) == (
        f"rank 0 stands twice, in {tmp_path}/a/rank-00000.spans and "
        f"{tmp_path}/b/rank-00000.spans; give only one of them"
    )


# ----------------------------------------------------------------------- folders of attempts


def test_a_later_attempt_of_the_run_comes_with_its_first(tmp_path: Path) -> None:
    first = STARTED.write(tmp_path / "run")
    again = STARTED.write(first / "restart-1")
    assert with_restarts([first]) == [first, again]


def test_one_that_is_given_too_comes_once(tmp_path: Path) -> None:
    first = STARTED.write(tmp_path / "run")
    again = STARTED.write(first / "restart-1")
    assert with_restarts([again, first]) == [again, first]
    roundabout = first / ".." / "run" / "restart-1"
    assert with_restarts([first, roundabout]) == [first, roundabout]


def test_one_of_another_run_or_without_a_recording_is_not_taken(tmp_path: Path) -> None:
    first = STARTED.write(tmp_path / "run")
    dataclasses.replace(STARTED, name="run-b").write(first / "restart-1")
    (first / "restart-2").mkdir()
    (first / "restart-3").mkdir()
    (first / "restart-3" / "rank-00000.spans").write_bytes(b"cut")
    assert with_restarts([first]) == [first]


def test_a_restart_with_other_ranks_is_named_and_left_out(tmp_path: Path) -> None:
    first = STARTED.write(tmp_path / "run")
    again = Run(pp=1).write(first / "restart-1")
    (told,) = (str(each) for each in merge([first]).warnings)
    assert told.startswith(f"the job of {first} was restarted: {again} hold what came after")
