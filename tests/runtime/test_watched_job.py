"""Real jobs are watched, by the command that people give, while something goes wrong in them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import serried
from serried.diagnose.evidence.records.process import holders_of
from serried.diagnose.watch.following import FollowedJob
from tests.runtime.rank_group import run_ranks

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


SLOW, SLOWED_S = 1, 0.15


class Slowed(torch.nn.Module):
    """Is a small model that takes long on one rank."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if dist.get_rank() == SLOW:
            time.sleep(SLOWED_S)
        y: torch.Tensor = self.linear(x)
        return y


def train(folder: Path, meets: bool) -> dict[str, Any]:
    """Trains until the folder is marked, and logs its loss, as a program of anybody's does.

    Ranks meet in every step, or not at all. The rate of learning is far too large.
    """
    rank, model = dist.get_rank(), Slowed()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e12)

    def batches() -> Iterator[torch.Tensor]:
        is_over = torch.zeros(1)
        while not is_over:
            yield torch.ones(4, 8)
            is_over[0] = (folder / "over").exists()
            if meets:
                dist.all_reduce(is_over)

    with (folder / f"rank-{rank}.log").open("w", buffering=1) as log:
        for step, x in enumerate(serried.record(batches(), folder)):
            loss = model(x).square().mean()
            loss.backward()
            for parameter in model.parameters() if meets else ():
                dist.all_reduce(parameter.grad)
            optimizer.step()
            optimizer.zero_grad()
            print(f"step {step} | loss {loss.item():.3e}", file=log)
    return {}


def heard_of(folder: Path, *, meets: bool, wanted: set[str]) -> dict[str, Any]:
    """Returns the first of each kind of notice of a job that is watched until all were heard."""
    heard: dict[str, Any] = {}
    job = folder / "job"
    job.mkdir()
    words = ["diagnose", "--watch", str(job), "--every", "0.2", "--format", "json"]
    with (
        ThreadPoolExecutor(1) as beside,
        subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, text=True) as watching,
    ):
        try:
            ran = beside.submit(_ran, folder, job, meets, watching)
            assert watching.stdout
            for line in watching.stdout:
                told = json.loads(line)
                heard.setdefault(told["kind"], told)
                if wanted <= {*heard}:
                    break
        finally:
            (job / "over").touch()
            watching.terminate()
        ran.result()
    return heard


def _ran(folder: Path, job: Path, meets: bool, watching: subprocess.Popen[str]) -> None:
    try:
        run_ranks(train, 3, folder, job, meets)
    finally:
        watching.terminate()  # which would wait for ever for ranks that never came


def test_a_loss_that_is_no_number_and_a_slow_rank_are_told_of_a_real_training(
    tmp_path: Path,
) -> None:
    heard = heard_of(tmp_path, meets=True, wanted={"nan", "slow"})
    assert heard["slow"]["ranks"] == [SLOW]
    assert "holds the others up" in heard["slow"]["sentence"]
    assert heard["nan"]["sentence"].startswith("a loss or gradient is no number any more: step ")
    assert "behind" not in heard


def test_a_rank_that_falls_behind_is_told_of_a_real_training(tmp_path: Path) -> None:
    heard = heard_of(tmp_path, meets=False, wanted={"behind"})
    assert heard["behind"]["ranks"] == [SLOW]
    assert heard["behind"]["sentence"].startswith(f"rank {SLOW} falls behind: it is at step ")
