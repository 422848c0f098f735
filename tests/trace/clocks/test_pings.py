"""Files of pings give what is sound in them, and say of the rest why it was left out."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from serried.limits import PINGS_BYTES
from serried.trace.clocks.pings import ping_file, ping_heading, ping_line, read_pings
from serried.trace.formats.reading import read_trace
from serried.trace.measure.statistics import measure
from serried.trace.merge.in_memory import merge
from serried.views.sentences import say
from tests.trace.recorded_run import Clock, Run

RUN = Run(pp=2)
GOOD = ping_line(1, (10, 20, 21, 30))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return RUN.write(tmp_path, clocks=[Clock("a"), Clock("b")])


def said(folder: Path) -> list[str]:
    """Returns the warnings of reading a folder, which goes on to measure it."""
    trace = read_trace([folder])
    assert measure(trace).alignment.causality_violations == 0
    return [str(evidence) for each in trace.warnings for evidence in each.evidence]


def test_lines_that_are_no_ping_are_left_out(folder: Path) -> None:
    bad = [
        *("not json", "[]", "{}", '{"peer": 1}', '{"peer": 1, "times": [1, 2]}'),
        *(ping_line(1, (30, 20, 21, 10)), GOOD[:-5], "[" * 100_000, '{"peer": 1, "times": 7}'),
        json.dumps({"peer": 1, "times": [1.5, 2, 3, 4]}),
        json.dumps({"peer": 1, "times": [1, 2, 3, 2**70]}),
    ]
    (folder / ping_file(0)).write_text("\n".join([*bad, GOOD]))
    (folder / "clock-x.jsonl").write_text(GOOD)
    crossings = read_pings([folder], merge([folder]))
    assert crossings.from_host.tolist() == [0, 1]
    assert said(folder) == [f"11 of 12 lines of {folder / ping_file(0)} are no pings; left out"]


def test_a_file_that_was_torn_keeps_its_whole_lines(folder: Path) -> None:
    text = ping_heading(run=RUN.name, rank=0) + GOOD * 3 + GOOD[:20]
    (folder / ping_file(0)).write_text(text)
    assert len(read_pings([folder], merge([folder]))) == 6
    assert said(folder) == [f"1 of 4 lines of {folder / ping_file(0)} are no pings; left out"]


@pytest.mark.parametrize("text", ["", ping_heading(run=RUN.name, rank=0)])
def test_a_file_without_a_ping_is_said_and_messages_align_alone(folder: Path, text: str) -> None:
    (folder / ping_file(0)).write_text(text)
    assert said(folder) == [
        f"{folder / ping_file(0)} holds no ping: its rank ended before it asked a host"
    ]
    assert read_trace([folder]).clocks[1].source == "messages"


def test_a_file_of_another_run_is_left_out(folder: Path) -> None:
    (folder / ping_file(0)).write_text(ping_heading(run="yesterday", rank=0) + GOOD)
    assert len(read_pings([folder], merge([folder]))) == 0
    assert said(folder) == [
        f"{folder / ping_file(0)} holds the clocks of run yesterday, not of {RUN.name}; left out"
    ]
    warning = read_trace([folder]).warnings[0]
    assert say(warning.evidence[0], "zh") == (
        f"{folder / ping_file(0)} 里是运行 yesterday 的时钟，不是 {RUN.name} 的，没有采用"
    )


def test_pings_of_ranks_without_a_recording_are_left_out(folder: Path) -> None:
    (folder / ping_file(0)).write_text(GOOD + ping_line(9, (10, 20, 21, 30)))
    (folder / ping_file(7)).write_text(GOOD)
    assert len(read_pings([folder], merge([folder]))) == 2
    assert said(folder) == [
        "pings of rank 7, 9 are left out: without its recording its host is not known"
    ]


def test_noise_that_is_no_text_is_no_crash(folder: Path) -> None:
    (folder / ping_file(0)).write_bytes(bytes(range(256)) * 40)
    assert "are no pings; left out" in said(folder)[0]


def test_a_folder_in_place_of_a_file_is_said(folder: Path) -> None:
    (folder / ping_file(0)).mkdir()
    assert said(folder) == [f"{folder / ping_file(0)} is a folder, where a file is asked for"]


def test_a_pipe_in_place_of_a_file_is_said_and_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / ping_file(0))
    assert "is a named pipe" in said(folder)[0]


def test_pings_without_end_are_said_and_not_read(folder: Path) -> None:
    (folder / ping_file(0)).touch()
    os.truncate(folder / ping_file(0), PINGS_BYTES.most + 1)
    assert "holds more than 256 MB" in said(folder)[0]
