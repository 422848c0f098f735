"""A guarded rank leaves what it was in, whoever holds it up, and a training goes on regardless."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

import serried
from serried.diagnose.evidence.records.guard_file import (
    FAILED,
    LEFT,
    OPS,
    GuardFile,
    read_guard_file,
)
from serried.diagnose.evidence.records.left import read_guarded_rank
from serried.errors import InputError
from serried.runtime.guard.guard import current
from tests.runtime.rank_group import run_ranks
from tests.runtime.small_disk import PAGE, small_disk


def until(happens: Any) -> None:
    """Waits until ``happens()`` holds; a test's own time-out ends a wait in vain."""
    while not happens():
        time.sleep(0.02)


def told(file: GuardFile) -> list[tuple[str, str, int, int, int, int]]:
    return [
        (
            OPS[row["op"]],
            file.groups[row["group"] - 1].desc,
            int(row["seq"]),
            int(row["peer"]),
            int(row["numel_in"]),
            int(row["numel_out"]),
        )
        for row in file.rows
    ]


# ---------------------------------------------------------------------- operations of real ranks


def exchange(folder: Path) -> dict[str, Any]:
    """Lets four ranks exchange; rank 1 looks at rank 0's file while that waits for it."""
    rank = dist.get_rank()
    guard = serried.guard(folder, timeout_s=1.0)
    pairs = [dist.new_group([0, 1], group_desc="pair"), dist.new_group([2, 3], group_desc="pair")]
    guard.begin_step(7)
    dist.all_reduce(torch.ones(4))
    work = dist.all_reduce(torch.ones(6), group=pairs[rank // 2], async_op=True)
    work.wait()
    out = [torch.ones(2) for _ in range(4)]
    dist.all_gather(out, torch.ones(2))
    if rank % 2 == 0:
        dist.send(torch.ones(3), rank + 1)
    else:
        dist.recv(torch.ones(3), rank - 1)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    model(torch.ones(1, 2)).sum().backward()  # reduced by C++, which no call of Python's shows
    if rank == 1:
        stacks = folder / "rank-00000.stacks"
        until(lambda: "in wait" in stacks.read_text())
        hung = read_guarded_rank(folder / "rank-00000.guard")
        while not hung.stack.frames:  # its next stack is half written
            time.sleep(0.02)
            hung = read_guarded_rank(folder / "rank-00000.guard")
        row = hung.file.rows[hung.file.waits_in - 1]
        seen = OPS[row["op"]], int(row["seq"]), hung.file.groups[row["group"] - 1].desc
        assert hung.file.counts is not None
        above = hung.file.counts["0"]
        stack = [frame.function for frame in hung.stack.frames]
        fr = folder / "rank-00000.fr.json"
        until(fr.exists)
    dist.all_reduce(torch.ones(5))
    guard.close()
    file = read_guard_file(folder / f"rank-{rank:05d}.guard")
    mine = told(file), file.step, file.ended
    return locals_of(mine, seen, above, stack) if rank == 1 else {"mine": mine}


def locals_of(mine: Any, seen: Any, above: int, stack: list[str]) -> dict[str, Any]:
    return {"mine": mine, "seen": seen, "above": above, "stack": stack}


@pytest.fixture(scope="module")
def exchanged(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("guard")
    return run_ranks(exchange, 4, folder, folder / "left")


def test_operations_stand_with_group_number_peer_and_sizes(exchanged: list[dict[str, Any]]) -> None:
    operations, step, ended = exchanged[3]["mine"]
    assert operations[:4] == [
        ("all_reduce", "default_pg", operations[0][2], -1, 4, 4),
        ("all_reduce", "pair", 1, -1, 6, 6),
        ("all_gather", "default_pg", operations[0][2] + 1, -1, 2, 8),
        ("recv", "default_pg", -1, 2, -1, 3),
    ]
    assert exchanged[2]["mine"][0][3] == ("send", "default_pg", -1, 3, 3, -1)
    assert (step, ended) == (7, LEFT)


def test_collectives_of_ddp_are_counted_though_python_never_sees_them(
    exchanged: list[dict[str, Any]],
) -> None:
    operations = exchanged[3]["mine"][0]
    seen = [each[2] for each in operations if each[1] == "default_pg" and each[2] >= 0]
    assert seen[-1] - seen[0] >= len(seen), "its bucket lies between two that Python saw"


def test_a_rank_that_waits_says_in_what_while_it_waits(exchanged: list[dict[str, Any]]) -> None:
    op, seq, group = exchanged[1]["seen"]
    assert (op, group) == ("all_reduce", "default_pg")
    assert seq == exchanged[1]["above"] == exchanged[0]["mine"][0][-1][2]
    assert "all_reduce" in exchanged[1]["stack"]


# ---------------------------------------------------------------------- one process


@pytest.fixture(autouse=True)
def unguarded() -> Iterator[None]:
    yield
    if guard := current():
        guard.close()


def test_an_exception_is_left_as_python_prints_it(tmp_path: Path) -> None:
    with suppress(ValueError), serried.guard(tmp_path):
        raise ValueError("a bad label")
    left = read_guarded_rank(tmp_path / "rank-00000.guard")
    assert left.file.ended == FAILED
    assert left.failure
    assert left.failure.quote.text == "ValueError: a bad label"
    assert "in test_an_exception" in (tmp_path / "rank-00000.failed").read_text()


def test_the_hook_of_exceptions_that_stood_before_still_gets_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, where: heard.append(str(error)))
    mine = sys.excepthook
    guard = serried.guard(tmp_path)
    sys.excepthook(ValueError, ValueError("x"), None)
    guard.close()
    assert heard == ["x"]
    assert sys.excepthook is mine
    assert (tmp_path / "rank-00000.failed").exists()


def test_a_signal_leaves_stacks_and_its_handler_still_gets_its_turn(tmp_path: Path) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: heard.append(number))
    try:
        with serried.guard(tmp_path):
            os.kill(os.getpid(), signal.SIGUSR1)
            until(lambda: heard)
        stack = read_guarded_rank(tmp_path / "rank-00000.guard").stack
        assert stack.by_signal
        assert "test_a_signal_leaves_stacks" in " ".join(each.function for each in stack.frames)
        os.kill(os.getpid(), signal.SIGUSR1)  # given back, and not ended by it
        until(lambda: len(heard) == 2)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_stacks_of_a_standstill_that_is_over_tell_no_more(tmp_path: Path) -> None:
    stacks = tmp_path / "rank-00000.stacks"
    with serried.guard(tmp_path, timeout_s=0.1) as guard:
        until(lambda: "no progress" in stacks.read_text())
        until(lambda: read_guarded_rank(tmp_path / "rank-00000.guard").stack.frames)
        guard.begin_step(1)
        until(lambda: "the rank went on" in stacks.read_text())
        left = stacks.read_text()
    stacks.write_text(left[: left.rindex("the rank went on")] + "the rank went on\n")
    assert read_guarded_rank(tmp_path / "rank-00000.guard").stack.frames == ()


def test_stacks_are_left_while_c_holds_the_interpreter(tmp_path: Path) -> None:
    read = ctypes.PyDLL(None).read  # PyDLL keeps the lock: no thread of Python can run
    place, stacks = tmp_path / "rank-00000.guard", tmp_path / "rank-00000.stacks"
    wait = f"for n in $(seq 1000); do grep -q Timeout {stacks} && exit; sleep 0.1; done"
    with (
        serried.guard(tmp_path, timeout_s=0.3),
        subprocess.Popen(["sh", "-c", f"read line; {wait}"], stdin=-1, stdout=-1) as other,
    ):
        first_ns = read_guard_file(place).alive_ns
        until(lambda: read_guard_file(place).alive_ns > first_ns)  # its watch has begun
        assert other.stdin and other.stdout
        other.stdin.write(b"held now\n")
        other.stdin.flush()
        read(other.stdout.fileno(), ctypes.create_string_buffer(1), 1)  # until the other ends
    text = stacks.read_text()
    assert "Timeout" in text
    assert "test_stacks_are_left_while_c_holds" in text


def test_a_process_that_is_ended_leaves_its_stacks_and_ends_as_before(tmp_path: Path) -> None:
    script = (
        "import serried, time\n"
        f"serried.guard({str(tmp_path)!r})\n"
        "def held(): print('ready', flush=True); time.sleep(60)\n"
        "held()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        process.terminate()
        assert process.wait() == -signal.SIGTERM
    left = read_guarded_rank(tmp_path / "rank-00000.guard")
    assert left.stack.by_signal
    assert left.stack.frames[0].function == "held"


def test_steps_are_counted_by_the_optimizer_unless_they_are_told(tmp_path: Path) -> None:
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    guard = serried.guard(tmp_path)
    for _ in range(3):
        optimizer.step()
    assert read_guard_file(tmp_path / "rank-00000.guard").step == 3
    guard.begin_step(40)
    optimizer.step()
    assert read_guard_file(tmp_path / "rank-00000.guard").step == 40


def test_a_process_has_one_guard_and_torch_its_own_methods_after_it(tmp_path: Path) -> None:
    allreduce = dist.ProcessGroup.allreduce
    first = serried.guard(tmp_path)
    assert serried.guard(tmp_path / "other") is first
    first.close()
    assert dist.ProcessGroup.allreduce is allreduce
    assert current() is None


def test_without_a_folder_it_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SERRIED_GUARD_DIR", raising=False)
    with serried.guard() as guard:
        assert not guard.is_on


@pytest.mark.parametrize("pages", [1, 4])
def test_a_full_disk_ends_the_guarding_and_not_the_training(
    pages: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with small_disk(tmp_path / "disk", PAGE * pages) as disk:
        with serried.guard(disk) as guard:
            assert not guard.is_on
        assert list(disk.iterdir()) == []
    assert "No space left on device; the training goes on" in caplog.text


def test_a_disk_that_fills_while_a_rank_leaves_its_words_keeps_none_of_them_half(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "disk", PAGE * 32) as disk:
        guard = serried.guard(disk)
        assert guard.is_on
        with suppress(OSError), (disk / "others").open("wb", buffering=0) as others:
            while True:
                others.write(bytes(PAGE))
        guard.failed(ValueError("x" * 9000))
        guard.dump("asked")
        guard.begin_step(5)
        guard.close()
        assert read_guard_file(disk / "rank-00000.guard").step == 5
        assert not (disk / "rank-00000.failed").exists()
        assert not [path for path in disk.iterdir() if path.name.startswith(".")]


def test_a_folder_that_cannot_be_made_is_said_and_the_training_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    assert not serried.guard(tmp_path / "file" / "runs").is_on
    assert "cannot be guarded into" in caplog.text


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"timeout_s": 0}, "a time-out of 0 s cannot be"),
        ({"signals": ["KILL"]}, "KILL is no signal that can be caught"),
        ({"signals": ["FOO"]}, "FOO is no signal that can be caught"),
    ],
)
def test_what_cannot_be_is_refused(asked: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=sentence):
        serried.guard(tmp_path, **asked)


def test_a_forked_process_is_not_guarded_and_ends_by_itself(tmp_path: Path) -> None:
    script = (
        "import os, sys, time, serried\n"
        "from serried.runtime.guard.guard import current\n"
        f"serried.guard({str(tmp_path)!r}, timeout_s=0.2)\n"
        "time.sleep(0.4)\n"  # C's thread counts by now, and no fork has it
        "pid = os.fork()\n"
        "if not pid: sys.exit(7 if current() is None else 1)\n"
        "told = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
        "sys.exit(0 if told == 7 and current() else 2)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == 0
    assert read_guard_file(tmp_path / "rank-00000.guard").ended == LEFT
