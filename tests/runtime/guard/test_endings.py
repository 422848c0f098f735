"""Ends of a guarded process that no hook of exceptions hears of."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from serried.diagnose.evidence.records.guard_file import FAILED, LEFT
from serried.diagnose.evidence.records.left import GuardedRank, read_guarded_rank
from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed

ENDINGS = {
    "code": ("sys.exit(3)", FAILED, "SystemExit: 3"),
    "words": ("sys.exit('no such tokenizer')", FAILED, "SystemExit: no such tokenizer"),
    "nothing": ("sys.exit()", LEFT, ""),
    "zero": ("sys.exit(0)", LEFT, ""),
    "raised": ("raise ValueError('a bad label')", FAILED, "ValueError: a bad label"),
    "in order": ("pass", LEFT, ""),
    "handled": (
        "try: 1 / 0\nexcept ZeroDivisionError: sys.exit(1)",
        FAILED,
        "ZeroDivisionError: division by zero",
    ),
    "caught": (
        "try: sys.exit(2)\nexcept SystemExit: guard._guarded.log.begin(1, 0)",
        LEFT,
        "",
    ),
    "thread": (
        "thread = threading.Thread(target=lambda: 1 / 0); thread.start(); thread.join()",
        LEFT,
        "",
    ),
}
SCRIPT = """
import gc, json, multiprocessing, os, sys, threading
import serried
import serried.runtime.guard.guard  # torch, once for all

def rank(name, what):
    guard = serried.guard(os.path.join(sys.argv[1], name))
    exec(what, {"sys": sys, "threading": threading, "guard": guard})

def main():
    endings = json.loads(sys.argv[2])
    gc.freeze()  # or each process would look through all of torch once more as it ends
    for name, what in endings.items():
        given = ("child " + name, what)
        child = multiprocessing.get_context("fork").Process(target=rank, args=given)
        child.start()
        child.join()
    for name, what in [*endings.items(), ("crash", "import ctypes; ctypes.string_at(0)")]:
        if not (pid := os.fork()):
            return rank(name, what)  # and the script, and Python with it, ends as it says
        os.waitpid(pid, 0)

main()
"""
"""Ends one process after the other, each a fork of one that has imported torch."""


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("endings")
    asked = json.dumps({name: what for name, (what, _, _) in ENDINGS.items()})
    command = [sys.executable, "-c", SCRIPT, str(folder), asked]
    subprocess.run(command, capture_output=True, check=True)
    return folder


def of(folder: Path) -> GuardedRank:
    return read_guarded_rank(folder / "rank-00000.guard")


@pytest.mark.parametrize("where", ["", "child "])
@pytest.mark.parametrize("name", ENDINGS)
def test_whoever_ends_by_a_code_or_an_exception_has_failed(
    where: str, name: str, left: Path
) -> None:
    rank = of(left / f"{where}{name}")
    text = rank.failure.quote.text if rank.failure else ""
    assert (rank.file.ended, text) == ENDINGS[name][1:]


def test_what_ended_a_thread_is_left_with_its_place(left: Path) -> None:
    thread = of(left / "thread").stack.thread
    assert thread is not None
    assert thread.text.endswith(
        "a thread ended by ZeroDivisionError: division by zero (<string>:1)"
    )


def test_a_crash_is_told_by_what_the_guard_left_alone(left: Path) -> None:
    [cause] = diagnosed(gather([left / "crash"])).causes
    assert (cause.kind, cause.ranks) == ("segfault", (0,))
