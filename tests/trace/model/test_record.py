"""A recording gives back what was added, whole, whenever and however its rank stopped."""

from __future__ import annotations

import dataclasses
import json
import signal
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.action import Action, ActionKind, Span
from serried.errors import EnvironmentProblem, InputError
from serried.trace.model.record import (
    HEADER_BYTES,
    MAGIC,
    RankRecord,
    RecordHeader,
    boot_id,
    file_name,
    read_rank_record,
)
from serried.trace.model.record_writer import RecordWriter
from tests.trace.recorded_run import Run, record

RECORD_BYTES = 40
JOB = Run().job
KINDS = list(ActionKind)

small = st.integers(-(2**31), 2**31 - 1)
times = st.integers(0, 2**63 - 1)
spans = st.builds(
    lambda action, step, both, peer: Span(3, action, step, min(both), max(both), peer),
    st.builds(Action, st.sampled_from(KINDS), st.integers(-1, 2**31 - 1), small),
    small,
    st.tuples(times, times),
    small,
)


def recorder_in(folder: Path, rank: int = 3) -> RecordWriter:
    return RecordWriter(folder, RecordHeader("run-a", rank, JOB))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recordings")


@pytest.fixture(scope="module")
def whole(folder: Path) -> bytes:
    """The bytes of a closed file of 25 spans."""
    recorder = recorder_in(folder, rank=0)
    for span in Run(num_microbatches=8, num_steps=1).spans()[:25]:
        record(recorder, span)
    recorder.close()
    return recorder.path.read_bytes()


def test_a_file_is_named_by_its_rank_so_that_names_sort_as_ranks_do() -> None:
    assert [file_name(rank) for rank in (0, 3, 131_071)] == [
        "rank-00000.spans",
        "rank-00003.spans",
        "rank-131071.spans",
    ]


@given(added=st.lists(spans, max_size=30))
def test_what_is_read_is_what_was_added(added: list[Span], folder: Path) -> None:
    (folder / file_name(3)).unlink(missing_ok=True)
    recorder = recorder_in(folder, rank=3)
    for span in added:
        record(recorder, span)
    recorder.close()

    read = read_rank_record(recorder.path)

    assert list(read.spans) == added
    assert not read.torn
    assert recorder.path.stat().st_size == HEADER_BYTES + RECORD_BYTES * len(added)


def test_the_header_is_read_as_it_was_written(tmp_path: Path) -> None:
    job = dataclasses.replace(JOB, options={"use_tp_pp_dp_mapping": "true"}, backend="nccl")
    header = RecordHeader("run-ä", 7, job, "host 7", "boot 7", 123, 456)

    recorder = RecordWriter(tmp_path, header)
    recorder.close()

    assert read_rank_record(recorder.path).header == header


def test_the_header_says_host_boot_and_both_clocks_by_itself() -> None:
    first, second = (RecordHeader("run-a", 0, JOB) for _ in range(2))

    assert first.host and first.host == second.host
    assert first.boot == second.boot == boot_id()
    assert 0 < first.monotonic_ns <= second.monotonic_ns
    assert first.wall_ns > 1_600_000_000_000_000_000


def test_a_recording_grows_past_its_first_reserve(tmp_path: Path) -> None:
    recorder = recorder_in(tmp_path)
    for i in range(40_000):
        recorder.add(ActionKind.F, i, i + 1, step=i)
    recorder.close()

    read = read_rank_record(recorder.path)

    assert np.array_equal(read.spans.start_ns, np.arange(40_000))
    assert not read.torn


def test_space_is_reserved_before_it_is_written(tmp_path: Path) -> None:
    recorder = recorder_in(tmp_path)
    recorder.add(ActionKind.F, 0, 1, step=0)

    status = recorder.path.stat()
    recorder.close()

    # A write to a part of the map that the disk has no block for would end the process.
    assert status.st_blocks * 512 >= status.st_size > HEADER_BYTES


def test_a_recorder_may_be_closed_twice(tmp_path: Path) -> None:
    recorder = recorder_in(tmp_path)
    recorder.close()
    recorder.close()

    assert len(read_rank_record(recorder.path).spans) == 0


def test_a_span_that_cannot_be_written_loses_none_of_those_after_it(tmp_path: Path) -> None:
    recorder = recorder_in(tmp_path)
    recorder.add(ActionKind.F, 1, 2, step=0)
    with pytest.raises(struct.error):
        recorder.add(ActionKind.F, 3, 4, step=2**40)
    recorder.add(ActionKind.B, 5, 6, step=0)
    recorder.close()

    assert read_rank_record(recorder.path).spans.start_ns.tolist() == [1, 5]


def test_a_span_without_a_step_is_of_the_one_that_began_last(tmp_path: Path) -> None:
    recorder = recorder_in(tmp_path)
    recorder.add(ActionKind.F, 1, 2)
    recorder.begin_step(7)
    recorder.add(ActionKind.F, 3, 4, 5, 6, 8)
    recorder.add(ActionKind.B, 5, 6, step=2)
    recorder.add(ActionKind.B, 7, 8)
    recorder.close()

    read = [
        (span.step, str(span.action), span.peer) for span in read_rank_record(recorder.path).spans
    ]

    assert read == [(-1, "F", -1), (7, "5F6", 8), (2, "B", -1), (7, "B", -1)]


# ----------------------------------------------------------------------- killed


KILLED = """
import sys
from pathlib import Path
from serried.action import ActionKind
from serried.trace.model.record import RecordHeader
from serried.trace.model.record_writer import RecordWriter
from tests.trace.recorded_run import Run

recorder = RecordWriter(Path(sys.argv[1]), RecordHeader("run-a", 0, Run().job))
i = 0
while True:
    recorder.add(ActionKind.F, i, i + 7, step=i, stage=i, microbatch=i, peer=i)
    i += 1
    if i == int(sys.argv[2]):
        print("there", flush=True)
"""


def killed_after(num_spans: int, folder: Path) -> RankRecord:
    """Returns what is left of a child that was killed once it had added ``num_spans``."""
    command = [sys.executable, "-c", KILLED, str(folder), str(num_spans)]
    root = Path(__file__).parents[3]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "there\n"
        child.send_signal(signal.SIGKILL)
        assert child.wait(timeout=60) == -signal.SIGKILL
    return read_rank_record(folder / file_name(0))


def assert_is_whole(read: RankRecord, at_least: int) -> None:
    count = np.arange(len(read.spans))
    assert len(count) >= at_least
    assert np.array_equal(read.spans.start_ns, count)
    assert np.array_equal(read.spans.end_ns, count + 7)
    assert np.array_equal(read.spans.peer, count)
    assert read.torn


def test_complete_spans_survive_a_rank_killed_while_it_writes(tmp_path: Path) -> None:
    assert_is_whole(killed_after(1000, tmp_path), at_least=1000)


@pytest.mark.soak
@pytest.mark.parametrize("num_spans", [1, *range(1_000, 60_000, 5_999)])
def test_complete_spans_survive_a_kill_at_any_time(num_spans: int, tmp_path: Path) -> None:
    assert_is_whole(killed_after(num_spans, tmp_path), at_least=num_spans)


def test_a_run_that_goes_on_can_be_read_and_counts_as_torn(tmp_path: Path) -> None:
    recorder = recorder_in(tmp_path)
    recorder.add(ActionKind.F, 1, 2, step=0)

    read = read_rank_record(recorder.path)
    recorder.close()

    assert (len(read.spans), read.torn) == (1, True)


@given(cut=st.integers(0, HEADER_BYTES - 1))
def test_a_file_cut_within_its_header_says_so(cut: int, whole: bytes, folder: Path) -> None:
    path = folder / "cut.spans"
    path.write_bytes(whole[:cut])

    with pytest.raises(InputError) as caught:
        read_rank_record(path)

    assert str(caught.value) == (
        f"{path} ends within its header: its rank stopped before it recorded a span"
    )


@given(cut=st.integers(HEADER_BYTES, HEADER_BYTES + 25 * RECORD_BYTES))
def test_a_file_cut_anywhere_gives_exactly_its_complete_spans(
    cut: int, whole: bytes, folder: Path
) -> None:
    path = folder / "cut.spans"
    path.write_bytes(whole)
    expected = list(read_rank_record(path).spans)
    path.write_bytes(whole[:cut])

    read = read_rank_record(path)

    assert list(read.spans) == expected[: (cut - HEADER_BYTES) // RECORD_BYTES]
    assert read.torn == (cut < len(whole))


@given(garbage=st.binary(min_size=1, max_size=200))
def test_garbage_after_the_last_span_is_not_read(
    garbage: bytes, whole: bytes, folder: Path
) -> None:
    path = folder / "garbage.spans"
    path.write_bytes(whole + garbage)

    read = read_rank_record(path)

    assert len(read.spans) == 25
    assert read.torn


@given(written=st.integers(0, RECORD_BYTES - 1))
def test_a_span_half_written_is_not_read(written: int, whole: bytes, folder: Path) -> None:
    path = folder / "half.spans"
    last = len(whole) - RECORD_BYTES
    # The last three bytes of a seal this small are zero, so its record is whole before them.
    is_whole = written >= RECORD_BYTES - 3
    path.write_bytes(whole[: last + written].ljust(len(whole) + 400, b"\0"))

    read = read_rank_record(path)

    assert len(read.spans) == (25 if is_whole else 24)
    assert read.torn


# ----------------------------------------------------------------------- what cannot be


def test_an_earlier_recording_is_not_overwritten(tmp_path: Path) -> None:
    recorder_in(tmp_path).close()

    with pytest.raises(InputError) as caught:
        recorder_in(tmp_path)

    assert str(caught.value) == (
        f"{tmp_path}/rank-00003.spans holds an earlier recording; "
        "choose another folder or remove it"
    )


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem) as caught:
        recorder_in(tmp_path / "absent")

    assert str(caught.value) == (
        f"{tmp_path}/absent/rank-00003.spans cannot be recorded: No such file or directory; "
        "choose a folder with space that can be written"
    )


def test_a_header_that_does_not_fit_is_said(tmp_path: Path) -> None:
    job = dataclasses.replace(JOB, options={"key": "v" * HEADER_BYTES})

    with pytest.raises(InputError) as caught:
        RecordWriter(tmp_path, RecordHeader("run-a", 0, job))

    assert str(caught.value) == (f"the header of {tmp_path}/rank-00000.spans is too long to record")
    assert list(tmp_path.iterdir()) == []


FULL = """
import resource, sys
from pathlib import Path
from serried.errors import EnvironmentProblem
from serried.action import ActionKind
from serried.trace.model.record import RecordHeader
from serried.trace.model.record_writer import RecordWriter
from tests.trace.recorded_run import Run

resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
recorder = RecordWriter(Path(sys.argv[1]), RecordHeader("run-a", 0, Run().job))
added, told = 0, []
try:
    while True:
        recorder.add(ActionKind.F, added, added + 1, step=0)
        added += 1
except EnvironmentProblem as problem:
    recorder.when_full = told.append
    recorder.add(ActionKind.F, added, added + 1, step=0)
    recorder.close()
    print(added, problem)
    print(*told)
"""


def test_a_full_disk_is_an_error_and_keeps_what_was_recorded(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=root,
        timeout=60,
        check=True,
    )

    raised, told = done.stdout.splitlines()
    count, _, sentence = raised.partition(" ")
    read = read_rank_record(tmp_path / file_name(0))
    assert sentence == (
        f"{tmp_path}/rank-00000.spans cannot be recorded: File too large; "
        "choose a folder with space that can be written"
    )
    assert told == sentence
    assert len(read.spans) == int(count) > 0
    assert not read.torn


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / file_name(0)
    path.write_bytes(b"PK\x03\x04 something else")

    with pytest.raises(InputError) as caught:
        read_rank_record(path)

    assert str(caught.value) == f"{path} is not a recording of serried"


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"run": "a"}', b'{"run": 1, "job": 2}', b"\xff"])
def test_a_header_that_says_something_else_is_refused(
    text: bytes, whole: bytes, tmp_path: Path
) -> None:
    path = tmp_path / file_name(0)
    start = whole[:8] + struct.pack("<I", len(text)) + text
    path.write_bytes(start.ljust(HEADER_BYTES, b"\0"))

    with pytest.raises(InputError) as caught:
        read_rank_record(path)

    assert str(caught.value) == f"the header of {path} cannot be read"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rank", "3"),
        ("rank", -1),
        ("wall_ns", 1e300),
        ("monotonic_ns", 2**70),
        ("run", 5),
        ("host", None),
        ("world_size", 0),
        ("num_microbatches", -8),
        ("gpus_per_node", True),
        ("sizes", {"pp": 0}),
        ("sizes", [4]),
        ("options", {"key": 1}),
        ("schedule", ["1f1b"]),
        ("cores", -2),
        ("threads", 0),
        ("device", 7),
        ("model", {"hidden": "wide"}),
        ("training", {"zero": 1}),
    ],
)
def test_a_header_with_a_value_that_cannot_be_is_refused(
    name: str, value: object, tmp_path: Path
) -> None:
    fields = dataclasses.asdict(RecordHeader("run-a", 0, JOB))
    (fields if name in fields else fields["job"])[name] = value
    text = json.dumps(fields).encode()
    path = tmp_path / file_name(0)
    path.write_bytes((MAGIC + struct.pack("<I", len(text)) + text).ljust(HEADER_BYTES, b"\0"))

    with pytest.raises(InputError) as caught:
        read_rank_record(path)

    assert str(caught.value) == f"the header of {path} cannot be read"


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [(36 - 4, 99, "kind 99 and lasts 4 ns"), (0, 127, "kind 1 and lasts -22 ns")],
)
def test_a_damaged_span_is_refused_by_its_number(
    tmp_path: Path, place: int, value: int, words: str
) -> None:
    recorder = recorder_in(tmp_path)
    for start in range(100, 105):
        recorder.add(ActionKind.F, start, start + 4, step=0)
    recorder.close()
    raw = bytearray(recorder.path.read_bytes())
    raw[HEADER_BYTES + 1 * 40 + place] = value
    recorder.path.write_bytes(raw)

    with pytest.raises(InputError) as caught:
        read_rank_record(recorder.path)

    assert str(caught.value) == (
        f"{recorder.path} is damaged, or of a newer serried: its span 1 is of {words}"
    )


def test_a_file_that_cannot_be_opened_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_rank_record(tmp_path)

    assert str(caught.value) == f"{tmp_path} cannot be read: Is a directory"
