"""A real job is watched while one of its ranks is stopped, by the command that people give."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from serried.diagnose.evidence.records.process import holders_of
from serried.diagnose.watch.following import FollowedJob

COMMAND = [sys.executable, "-c", "from serried.views.cli.main import main; main()"]
TRAIN = "train --nproc 2 --pp 2 --compute emulated --steps 5000 --timeout 120 --trace-dir"
PATIENCE_S = 120.0


def children(pid: int) -> list[int]:
    found = " ".join(each.read_text() for each in Path(f"/proc/{pid}/task").glob("*/children"))
    return [int(each) for each in found.split()]


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_stopped_rank_makes_the_watch_speak_and_end(tmp_path: Path) -> None:
    job = FollowedJob(tmp_path)

    def both_train() -> bool:
        looked = job.look().ranks
        return len(looked) == 2 and min(each.step for each in looked.values()) >= 2

    with subprocess.Popen(
        [*COMMAND, *TRAIN.split(), str(tmp_path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as training:
        try:
            until(both_train)
            ranks = [pid for parent in children(training.pid) for pid in children(parent)]
            os.kill(ranks[-1], signal.SIGSTOP)
            held = holders_of(tmp_path.glob("rank-*.spans"))
            (stopped,) = [file for file, pid in held.items() if pid == ranks[-1]]
            words = ["diagnose", "--watch", str(tmp_path), "--still", "6", "--every", "0.2"]
            words += ["--once", "--format", "json"]
            watched = subprocess.run(
                [*COMMAND, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False
            )
        finally:
            training.kill()
    assert watched.returncode == 1, watched.stderr
    (line,) = watched.stdout.splitlines()
    told = json.loads(line)
    assert (told["schema"], told["kind"], told["is_finding"]) == ("serried.watch/1", "still", True)
    assert told["sentence"].startswith("no rank went on for ")
    why = told["diagnosis"]
    assert (why["kind"], why["ranks"]) == ("stopped", [int(stopped.stem.split("-")[1])])
