"""Spans whose marks have not passed wait for a later step, and are never waited for on the way."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import serried
from serried.action import ActionKind
from serried.runtime.recorder.sink import SpanSink
from serried.runtime.recording import api as recorder_doors
from serried.trace.model.record import RecordHeader, read_rank_record
from serried.trace.model.record_writer import RecordWriter
from serried.trace.model.traffic import CollectiveMove
from tests.runtime.rank_group import needs_gpu
from tests.trace.recorded_run import Run


class Later:
    """Is a clock whose marks pass when it is told so, as a device's do."""

    def __init__(self) -> None:
        self.marks: list[int] = []
        self.passed = 0
        self.zero = 0
        self.waited = False
        self.compared = 0

    def mark(self) -> object:
        self.marks.append(len(self.marks))
        return str(self.marks[-1])

    def has_passed(self, mark: object) -> bool:
        return int(str(mark)) < self.passed

    def time_ns(self, mark: object) -> int:
        return 1000 * int(str(mark))

    def move_zero(self, mark: object) -> None:
        self.zero = int(str(mark))

    def compare(self) -> None:
        self.compared += 1

    def wait(self, mark: object) -> None:
        self.waited = True
        self.passed = len(self.marks)


def test_late_spans_are_written_in_order_once_they_have_passed(tmp_path: Path) -> None:
    header = RecordHeader("r", 0, Run().job)
    sink = SpanSink(lambda: RecordWriter(tmp_path, header))
    clock = Later()
    sink.use(clock)
    for step in range(3):
        sink.begin_step(step)  # a mark of its own, from which later ones are measured
        start = sink.mark()
        sink.keep(ActionKind.F, start, sink.mark(), 0, step)
        clock.passed = 3 * step  # all of the steps before this one
    sink.drain()
    written = [span.step for span in read_rank_record(tmp_path / "rank-00000.spans").spans]
    zero, waited = clock.zero, clock.waited
    sink.close()
    spans = list(read_rank_record(tmp_path / "rank-00000.spans").spans)
    assert (written, zero, waited, clock.waited) == ([0, 1], 3, False, True)
    assert clock.compared == 3  # as each step begins
    assert [(span.step, span.start_ns, span.end_ns) for span in spans] == [
        (0, 1000, 2000),
        (1, 4000, 5000),
        (2, 7000, 8000),
    ]


def test_what_collectives_moved_is_kept_with_its_span_whatever_the_clock(tmp_path: Path) -> None:
    gather = CollectiveMove(ActionKind.ALL_GATHER, (0, 1), 64)
    for name, clock in (("host", None), ("device", Later())):
        folder = tmp_path / name
        folder.mkdir()
        sink = SpanSink(partial(RecordWriter, folder, RecordHeader("r", 0, Run().job)))
        if clock:
            sink.use(clock)
        sink.is_on = True
        sink.begin_step(0)
        for kind in (ActionKind.F, ActionKind.UNSHARD):
            start = sink.mark()
            sink.work.moves += [gather] if kind is ActionKind.UNSHARD else []
            sink.keep_since(start, kind, 0)
        assert sink.work.moves == []
        sink.close()
        found = read_rank_record(folder / "rank-00000.spans")
        assert found.moves == (replace(gather, span=1),)
        assert found.spans[1].action.kind is ActionKind.UNSHARD


class Streams(Later):
    """Is a clock whose marks pass only as they are waited for, each by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.waited_for: set[object] = set()

    def has_passed(self, mark: object) -> bool:
        return mark in self.waited_for

    def wait(self, mark: object) -> None:
        self.waited_for.add(mark)


def test_spans_whose_streams_pass_out_of_order_are_all_written_at_the_end(tmp_path: Path) -> None:
    header = RecordHeader("r", 0, Run().job)
    sink = SpanSink(lambda: RecordWriter(tmp_path, header))
    clock = Streams()
    sink.use(clock)
    for step in range(3):
        sink.begin_step(step)
        start, end = sink.mark(), sink.mark()
        clock.waited_for.add(end)  # on another stream than its start, which is not there yet
        sink.keep(ActionKind.F, start, end, 0, step)
        sink.drain()
    sink.close()
    spans = read_rank_record(tmp_path / "rank-00000.spans").spans
    assert [span.step for span in spans] == [0, 1, 2]


def test_a_mark_that_cannot_be_read_loses_its_span_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Graph(Later):
        """Refuses what is asked of mark 1, as CUDA does of an event that a graph captured."""

        def has_passed(self, mark: object) -> bool:
            if mark == "1":
                raise RuntimeError("the event was last recorded in a graph")
            return super().has_passed(mark)

        def time_ns(self, mark: object) -> int:
            return super().time_ns(mark) if self.has_passed(mark) else 0

    header = RecordHeader("r", 0, Run().job)
    sink = SpanSink(lambda: RecordWriter(tmp_path, header))
    sink.use(Graph())
    for step in range(2):
        sink.begin_step(step)
        start = sink.mark()
        sink.keep(ActionKind.F, start, sink.mark(), 0, step)
    sink.close()
    recording = read_rank_record(tmp_path / "rank-00000.spans")
    assert [span.step for span in recording.spans] == [1]
    assert (sink.lost, recording.lost) == (0, 0)  # those are for a full disk
    assert caplog.messages == [
        "a span's times cannot be had: the event was last recorded in a graph",
        "1 spans were not recorded: their times cannot be had",
    ]


@needs_gpu
def test_nothing_waits_for_a_gpu_while_steps_are_recorded(tmp_path: Path) -> None:
    model = nn.Linear(4096, 4096, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [torch.randn(4096, 4096, device="cuda") for _ in range(4)]
    with serried.record_steps(0, 0, 1, folder=tmp_path):
        model(batches[0]).sum().backward()  # the first mark waits once, to tie the clocks
    torch.cuda.set_sync_debug_mode("error")
    try:
        for step, batch in enumerate(batches, 1):
            with serried.record_steps(step, 1, 9, folder=tmp_path):
                model(batch).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    recorder_doors.finish()
    spans = list(read_rank_record(tmp_path / "rank-00000.spans").spans)
    for step in range(1, 5):
        kinds = [span.action.kind.name for span in spans if span.step == step]
        assert kinds == ["F", "B", "OPTIMIZER"]
    assert all(one.end_ns <= after.start_ns for one, after in pairwise(spans))


@needs_gpu
def test_a_span_on_a_gpu_is_as_long_as_its_kernels(tmp_path: Path) -> None:
    square = torch.randn(8192, 8192, device="cuda")
    event: Any = torch.cuda.Event
    begin, end = (event(enable_timing=True) for _ in range(2))
    with serried.record_steps(0, 0, 1, folder=tmp_path):
        begin.record()
        with serried.span("F", 0, 0):
            for _ in range(8):
                square = square @ square
        end.record()
    end.synchronize()
    recorder_doors.finish()
    (span,) = read_rank_record(tmp_path / "rank-00000.spans").spans
    assert span.duration_ns <= begin.elapsed_time(end) * 1e6
    assert span.duration_ns >= 0.5 * begin.elapsed_time(end) * 1e6
