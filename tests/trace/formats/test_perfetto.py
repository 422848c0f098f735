"""The Perfetto file, parsed with Perfetto's own messages and held to its importer's rules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from serried.action import Action, ActionKind, Span
from serried.errors import InputError
from serried.trace.formats.perfetto import write_perfetto
from serried.trace.formats.reading import read_trace
from serried.trace.merge.in_memory import merge
from serried.trace.model.record import RecordHeader
from serried.trace.model.record_writer import RecordWriter
from serried.trace.model.trace import Trace
from tests.trace import recorded_run
from tests.trace.perfetto_rules import Read, read
from tests.trace.recorded_run import WALL_NS, Run, table

RUN = Run(pp=4, dp=4, num_microbatches=8, num_steps=2)
PADDLE = Path(__file__).parents[2] / "goldens" / "traces" / "paddle"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return merge([RUN.write(tmp_path_factory.mktemp("run"))])


def written(trace: Trace, folder: Path) -> Read:
    path = folder / "trace.pftrace"
    write_perfetto(trace, path)
    return read(path.read_bytes())


def test_every_span_comes_back_with_its_numbers(trace: Trace, tmp_path: Path) -> None:
    found = written(trace, tmp_path)

    def numbers(span: Span) -> dict[str, str | int]:
        given: dict[str, str | int] = {
            "action": str(span.action),
            "step": span.step,
            "stage": span.action.stage,
            "microbatch": span.action.microbatch,
            "peer": span.peer,
        }
        return {key: value for key, value in given.items() if value != -1}

    ours = [
        (each.start, each.end, found.path(each.track)[1].split(" ")[1], each.arguments)
        for each in found.slices
    ]
    theirs = [(s.start_ns, s.end_ns, str(s.rank), numbers(s)) for s in trace.spans]
    assert sorted(ours, key=str) == sorted(theirs, key=str)


def test_tracks_are_nodes_ranks_and_streams_in_order(trace: Trace, tmp_path: Path) -> None:
    found = written(trace, tmp_path)
    assert found.ordered(0) == ["node 0 · a", "node 1 · a"]
    first, second = (uuid for uuid, each in found.tracks.items() if each.name.startswith("node"))
    assert found.ordered(first) == [f"rank {rank} · stage {rank // 4}" for rank in range(8)]
    assert found.ordered(second) == [f"rank {rank} · stage {rank // 4}" for rank in range(8, 16)]
    rank_5 = next(u for u, each in found.tracks.items() if each.name.startswith("rank 5 "))
    assert found.ordered(rank_5) == ["compute (emulated)", "receive", "send", "step"]


def test_every_message_has_an_arrow_to_what_was_computed_from_it(
    trace: Trace, tmp_path: Path
) -> None:
    found = written(trace, tmp_path)
    messages = 2 * (RUN.pp - 1) * RUN.num_microbatches * RUN.dp * RUN.num_steps
    assert len(found.arrows) == messages
    for source, target in found.arrows:
        assert source.name.startswith("send")
        assert target.category == "emulated compute"
        assert source.arguments["microbatch"] == target.arguments["microbatch"]
        assert f"rank {source.arguments['peer']} " in found.path(target.track)[1]


def test_names_hold_no_digits_so_that_a_kind_has_one_colour(trace: Trace, tmp_path: Path) -> None:
    found = written(trace, tmp_path)
    assert not any(character.isdigit() for each in found.slices for character in each.name)


def test_spans_of_the_user_s_stand_under_their_own_names(tmp_path: Path) -> None:
    names = [f"读取 {number}" for number in range(200)]  # more than one byte numbers
    recorder = RecordWriter(tmp_path, RecordHeader("run-a", 0, Run(pp=1, dp=1).job))
    for number, name in enumerate(names):
        where = {"step": 0, "stage": number % 2, "microbatch": number}
        recorder.add(
            ActionKind.SPAN, 2 * number, 2 * number + 1, **where, name=recorder.number_of(name)
        )
    recorder.add(ActionKind.SPAN, 1000, 1001, step=0)
    recorder.close()

    slices = written(merge([tmp_path]), tmp_path).slices

    assert [each.name for each in slices] == [*names, "named by the user"]
    assert {each.category for each in slices} == {"named"}
    assert slices[7].arguments == {"action": "1SPAN7", "step": 0, "stage": 1, "microbatch": 7}


def test_time_0_is_tied_to_the_wall_clock(trace: Trace, tmp_path: Path) -> None:
    first_ns = min(span.start_ns for span in RUN.spans())
    assert written(trace, tmp_path).wall_ns == trace.base_ns == WALL_NS + first_ns


def test_the_same_trace_gives_the_same_bytes(trace: Trace, tmp_path: Path) -> None:
    for name in ("a.pftrace", "b.pftrace"):
        write_perfetto(trace, tmp_path / name)
    assert (tmp_path / "a.pftrace").read_bytes() == (tmp_path / "b.pftrace").read_bytes()


def test_overlapping_slices_get_tracks_of_their_own(trace: Trace, tmp_path: Path) -> None:
    forward = Action(ActionKind.F, 0, 0)
    spans = [
        Span(0, forward, 0, 0, 10),
        Span(0, forward, 0, 5, 15),
        Span(0, forward, 0, 10, 10),
        Span(0, forward, 0, 10, 20),
    ]
    found = written(replace(trace, spans=table(spans)), tmp_path)
    assert sorted((each.start, each.end) for each in found.slices) == [
        (0, 10),
        (5, 15),
        (10, 10),
        (10, 20),
    ]
    rank_0 = next(u for u, each in found.tracks.items() if each.name.startswith("rank 0 "))
    assert found.ordered(rank_0) == ["compute (emulated)", "compute (emulated) 2"]


def test_a_message_that_arrives_before_it_was_sent_has_no_arrow(
    trace: Trace, tmp_path: Path
) -> None:
    early = np.where(trace.spans.rank >= 12, 10 * recorded_run.FORWARD_NS, 0)
    spans = replace(
        trace.spans, start_ns=trace.spans.start_ns + 10 * recorded_run.FORWARD_NS - early
    )
    spans = replace(spans, end_ns=trace.spans.end_ns + 10 * recorded_run.FORWARD_NS - early)
    assert 0 < len(written(replace(trace, spans=spans), tmp_path).arrows) < 384


def test_another_tools_log_is_written_too(tmp_path: Path) -> None:
    found = written(read_trace([PADDLE / "multi"]), tmp_path)
    assert len(found.slices) == 136
    assert found.ordered(0) == ["node 0 · machine0", "node 1 · machine1"]


def test_a_file_that_cannot_be_written_is_named(trace: Trace, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        write_perfetto(trace, tmp_path / "there")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
