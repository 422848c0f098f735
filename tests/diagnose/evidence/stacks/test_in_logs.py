"""Stacks in logs are read, in ranks' own files and mixed in a console, whoever put them there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from serried.diagnose.evidence.log_line import log_line
from serried.diagnose.evidence.stacks.in_logs import StacksInLog
from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed

Taken = Callable[[list[str], int], list[str]]

TORCH = "/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
BUSY = ['File "/job/train.py", line 40 in read', 'File "/job/train.py", line 80 in <module>']
WAITING = [
    f'File "{TORCH}", line 5356 in barrier',
    'File "/job/train.py", line 76 in main',
    'File "/job/train.py", line 80 in <module>',
]


def printed(stack: list[str], head: str = "Current thread 0x00007ff2c7682b80") -> list[str]:
    return [f"{head} (most recent call first):", *(f"  {frame}" for frame in stack)]


def groups(folder: Path, size: int) -> None:
    everyone = {"groups": {"0": {"desc": "default_pg", "ranks": list(range(size))}}}
    (folder / "layout.json").write_text(json.dumps(everyone))


def own_log(folder: Path, rank: int, lines: list[str]) -> None:
    place = folder / "none_ab12" / "attempt_0" / str(rank)
    place.mkdir(parents=True)
    (place / "stderr.log").write_text("\n".join(lines) + "\n")


def verdict(folder: Path) -> tuple[str, tuple[int, ...] | None]:
    first = diagnosed(gather([folder])).causes[0]
    return first.kind, first.ranks


def test_stacks_in_the_logs_that_torchrun_keeps_of_each_rank_tell_who_is_elsewhere(
    tmp_path: Path,
) -> None:
    groups(tmp_path, 4)
    for rank in range(4):
        own_log(tmp_path, rank, printed(BUSY if rank == 2 else WAITING))
    assert verdict(tmp_path) == ("stuck_in_user_code", (2,))


def test_stacks_of_ranks_that_a_console_mixes_are_kept_apart(tmp_path: Path) -> None:
    groups(tmp_path, 3)
    stacks = [printed(BUSY if rank == 1 else WAITING) for rank in range(3)]
    rows = [
        f"[default{rank}]:{stack[at]}"
        for at in range(4)
        for rank, stack in enumerate(stacks)
        if at < len(stack)
    ]
    (tmp_path / "console.log").write_text("\n".join(rows) + "\n")
    assert verdict(tmp_path) == ("stuck_in_user_code", (1,))


def test_the_last_stack_counts_and_those_of_a_loaders_workers_do_not(tmp_path: Path) -> None:
    groups(tmp_path, 3)
    worker = [
        'File "/venv/site-packages/torch/utils/data/_utils/worker.py", line 9 in loop',
        BUSY[1],
    ]
    for rank in range(3):
        last = WAITING if rank else BUSY
        own_log(tmp_path, rank, [*printed(WAITING), "", *printed(last), *printed(worker)])
    assert verdict(tmp_path) == ("stuck_in_user_code", (0,))


def test_stacks_that_a_job_went_on_after_tell_nothing(tmp_path: Path) -> None:
    groups(tmp_path, 2)
    for rank in range(2):
        steps = [f"step {step} loss 0.5" for step in range(60)]
        own_log(tmp_path, rank, [*printed(WAITING if rank else BUSY), *steps])
    assert not diagnosed(gather([tmp_path])).causes


def by_py_spy(stack: list[str], pid: int) -> list[str]:
    frames = [re.sub(r'File "(.*)", line (\d+) in (.*)', r"\3 (\1:\2)", each) for each in stack]
    head = [f"Process {pid}: python train.py --steps 9", "Python v3.11.7 (/usr/bin/python3.11)", ""]
    other = [f'Thread {pid + 1} (idle): "Thread-1"', "    wait (threading.py:327)"]
    main = [f'Thread {pid} (idle): "MainThread"', *(f"    {each}" for each in frames)]
    return [*head, *main, *other]


def by_gdb(stack: list[str], pid: int) -> list[str]:
    frames = [re.sub(r'File "(.*)", line (\d+) in (.*)', r"\3 () at \1:\2", each) for each in stack]
    other = [
        f"Thread 2 (Thread 0x7f00 (LWP {pid + 1})):",
        "#0  0x7f in poll () from /lib/libc.so.6",
    ]
    main = [f"#{place}  0x00007f1 in {each}" for place, each in enumerate(frames)]
    return [*other, f'Thread 1 (Thread 0x7f01 (LWP {pid}) "python3"):', *main]


@pytest.mark.parametrize("taken", [by_py_spy, by_gdb])
def test_stacks_that_somebody_appended_to_the_log_of_a_rank_are_of_that_rank(
    taken: Taken, tmp_path: Path
) -> None:
    groups(tmp_path, 3)
    for rank in range(3):
        log = ["loading data", *taken(BUSY if rank == 1 else WAITING, 40 + rank), "the end"]
        (tmp_path / f"rank_{rank}.log").write_text("\n".join(log) + "\n")
    assert verdict(tmp_path) == ("stuck_in_user_code", (1,))


@pytest.mark.parametrize("taken", [by_py_spy, by_gdb])
def test_stacks_in_one_file_are_of_the_ranks_whose_processes_the_log_names(
    taken: Taken, tmp_path: Path
) -> None:
    groups(tmp_path, 3)
    rows = ["$ py-spy dump --pid $(pgrep -f train.py)"]
    for rank in range(3):
        rows += taken(BUSY if rank == 2 else WAITING, 400 + 10 * rank)
    (tmp_path / "all.txt").write_text("\n".join(rows) + "\n")
    assert diagnosed(gather([tmp_path])).notes
    ends = [
        f"[{rank}]:\n  time : 2026-11-28_09:00:00\n  host : a\n  rank : {rank} (local_rank: {rank})"
        f"\n  exitcode : -15 (pid: {400 + 10 * rank})"
        for rank in range(3)
    ]
    (tmp_path / "console.log").write_text("\n".join(ends) + "\n")
    assert verdict(tmp_path) == ("stuck_in_user_code", (2,))


def test_a_programs_own_word_of_a_process_is_no_heading_of_the_stack_that_python_prints() -> None:
    stacks = StacksInLog()
    for number, row in enumerate(["Process 3: loading shards", *printed(WAITING)], 1):
        stacks.read(log_line(row, "job.log", number))
    [sign] = stacks.signs()
    assert sign.speaker.pid is None
