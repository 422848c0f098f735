"""The stacks that a guard left say who had them written: a signal, or the watch."""

from __future__ import annotations

from pathlib import Path

import pytest

from serried.diagnose.evidence.records.guard_file import GuardHeader
from serried.diagnose.evidence.records.left import LeftStack, read_guarded_rank
from serried.runtime.guard.operations import OperationLog
from serried.trace.model.record import RecordHeader, TracedJob

MAIN, WATCH = 0x7F, 0x80
FRAME = '  File "train.py", line {line} in step'


def dump(line: int, *, by: int = MAIN) -> list[str]:
    """Returns the stacks of two threads as faulthandler writes them in thread ``by``."""
    names = {number: "Current thread" if number == by else "Thread" for number in (WATCH, MAIN)}
    watch, main = (f"{name} 0x{at:016x} (most recent call first):" for at, name in names.items())
    return [watch, FRAME.format(line=1), "", main, FRAME.format(line=line)]


def left(folder: Path, *dumps: list[str]) -> LeftStack:
    job = TracedJob("custom", 1, {"dp": 1}, "", "1f1b", 1)
    log = OperationLog(
        folder, GuardHeader(RecordHeader("run", 0, job), 7, 8, 0, 8, main_thread=MAIN)
    )
    lines = [line for each in dumps for line in each]
    log.path.with_suffix(".stacks").write_text("\n".join(lines) + "\n")
    return read_guarded_rank(log.path).stack


@pytest.mark.parametrize("by", [MAIN, WATCH, 0])
def test_stacks_are_a_signals_whichever_thread_it_came_to(tmp_path: Path, by: int) -> None:
    stack = left(tmp_path, dump(7, by=by))
    assert (stack.by_signal, stack.frames[0].line) == (True, 7)


@pytest.mark.parametrize(
    "why", ["# 2026-11-27T10:00:00Z no progress for 60 s", "Timeout (0:01:00)!"]
)
def test_stacks_are_the_watchs_where_a_line_says_why(tmp_path: Path, why: str) -> None:
    of_watch, of_signal = [why, *dump(7, by=WATCH)], dump(9, by=WATCH)
    assert not left(tmp_path, of_watch).by_signal
    assert not left(tmp_path, of_signal, of_watch).by_signal
    last = left(tmp_path, of_watch, of_signal)
    assert (last.by_signal, last.frames[0].line) == (True, 9)
