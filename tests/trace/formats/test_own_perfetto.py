"""Perfetto's format that serried wrote comes back as the trace that it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from serried.action import ActionKind
from serried.errors import InputError
from serried.trace.formats.foreign import ForeignSpan, foreign_trace, pipelines, spans_of
from serried.trace.formats.own_perfetto import own_perfetto_trace
from serried.trace.formats.perfetto import write_perfetto
from serried.trace.formats.protobuf import bytes_field, number_field
from serried.trace.formats.reading import read_trace
from serried.trace.measure.analysis import analyse
from serried.trace.model.trace import Trace
from tests.trace.alike import differences
from tests.trace.any_run import any_rows
from tests.trace.carried import write_carried
from tests.trace.recorded_run import Run

GOLDENS = Path(__file__).parents[2] / "goldens" / "traces"
RUN = Run(pp=2, tp=1, dp=2, num_microbatches=4, num_steps=2)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return read_trace([RUN.write(tmp_path_factory.mktemp("run"))])


def written(trace: Trace, folder: Path) -> Path:
    path = folder / "written.pftrace"
    write_perfetto(trace, path)
    return path


def test_a_run_is_the_same_again_with_all_that_is_measured(run: Trace, tmp_path: Path) -> None:
    again = read_trace([written(run, tmp_path)])
    assert differences(run, again) == []
    assert differences(analyse(run), analyse(again)) == []


@given(any_rows())
def test_any_run_is_the_same_again(
    tmp_path_factory: pytest.TempPathFactory, rows: list[ForeignSpan]
) -> None:
    world = 1 + max(row.rank for row in rows)
    layout = pipelines(rows, world, None)
    machines = {"a": range(world // 2), "b": range(world // 2, world)}
    trace = foreign_trace("any", layout, machines, spans_of(rows))
    again = own_perfetto_trace(written(trace, tmp_path_factory.mktemp("any")))
    # Spans of one rank at the same moments may stand in any order.
    assert differences(replace(trace, spans=again.spans), again) == []
    assert sorted(map(str, trace.spans)) == sorted(map(str, again.spans))


@pytest.mark.parametrize("name", ["megatronapp", "kineto", "paddle/vpp", "paddle/multi"])
def test_another_tool_s_trace_is_the_same_again(name: str, tmp_path: Path) -> None:
    found = read_trace([GOLDENS / name])
    assert differences(found, read_trace([written(found, tmp_path)])) == []


def test_bytes_groups_and_a_user_s_names_come_back(tmp_path: Path) -> None:
    trace = read_trace([write_carried(tmp_path / "run")])
    kind, peer = trace.spans.kind.copy(), trace.spans.peer.copy()
    kind[:2], peer[:2] = ActionKind.SPAN, (1, 0)
    named = replace(
        trace, spans=replace(trace.spans, kind=kind, peer=peer), names=("读取", "forward")
    )
    assert differences(named, read_trace([written(named, tmp_path)])) == []


def test_a_file_that_was_cut_off_gives_what_came_before(run: Trace, tmp_path: Path) -> None:
    path = written(run, tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 3 // 4])
    again = read_trace([path])
    assert 0.4 * len(run.spans) < len(again.spans) < len(run.spans)
    assert {*map(str, again.spans)} < {*map(str, run.spans)}
    assert "ends in the middle" in str(again.warnings[-1])


def test_no_damage_ends_in_anything_but_a_sentence(run: Trace, tmp_path: Path) -> None:
    path = written(run, tmp_path)
    whole = path.read_bytes()
    for place in range(0, len(whole), 97):
        for change in (0x01, 0x80, 0xFF):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ change]) + whole[place + 1 :])
            try:
                own_perfetto_trace(path)
            except InputError as refusal:
                assert str(path) in str(refusal) or "damaged" in str(refusal)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"no packets",
        bytes(range(256)),
        bytes_field(1, number_field(8, 5) + number_field(10, 1)),
        bytes_field(1, bytes_field(5, bytes_field(2, bytes_field(1, "serried")))),
        bytes_field(1, bytes_field(60, bytes_field(2, "rank 3"))),
    ],
    ids=["empty", "text", "bytes", "an event", "no run", "a track"],
)
def test_what_serried_did_not_write_is_refused(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "some.pftrace"
    path.write_bytes(raw)
    with pytest.raises(InputError, match="no trace that serried wrote in Perfetto's format"):
        read_trace([path])


def test_a_second_file_and_sizes_are_refused(run: Trace, tmp_path: Path) -> None:
    path = written(run, tmp_path)
    with pytest.raises(InputError, match="holds a whole run; give it alone"):
        read_trace([path, tmp_path])
    with pytest.raises(InputError, match="leave out --pp"):
        read_trace([path], {"pp": 4})
