"""Ranks killed while they save: what was committed stays, and the run goes on from there."""

from __future__ import annotations

import os
import random
import secrets
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from serried.errors import SerriedError
from serried.runtime.checkpoint.checkpoint import METADATA, committed, describe, step_folder
from serried.runtime.job.report import Event, RankReport, Resumed, Saved, Started, StepDone
from serried.runtime.job.settings import (
    CheckpointSettings,
    ModelSizes,
    OptimizerSettings,
    TrainSettings,
)
from serried.runtime.run.launch import train

RUN = TrainSettings(
    world_size=2,
    zero=2,
    model=ModelSizes(layers=2, hidden=32, heads=4, seq_len=16),
    optimizer=OptimizerSettings(lr_schedule="constant"),
    global_batch_size=4,
    microbatches=1,
    device="cpu",
    dtype="float64",
    timeout_s=60,
)
PATIENCE_S = 20
"""A save that has not come so far by then is killed where it is."""


@dataclass
class Killer:
    """Kills every rank while the checkpoint after step ``at`` is written, ``share`` of it there."""

    folder: Path
    at: int
    share: float
    whole_bytes: int
    ranks: tuple[RankReport, ...] = ()
    losses: dict[int, float] = field(default_factory=dict)
    resumed: int = 0
    saved: int = 0

    def tell(self, event: Event) -> None:
        if isinstance(event, Started):
            self.ranks = event.ranks
        elif isinstance(event, Resumed):
            self.resumed = event.step
        elif isinstance(event, Saved):
            self.saved = event.step
        elif isinstance(event, StepDone) and event.loss is not None:
            self.losses[event.step] = event.loss
            if event.step == self.at:
                self._wait_for(step_folder(self.folder, event.step + 1))
                for rank in self.ranks:
                    with suppress(ProcessLookupError):
                        os.kill(rank.pid, signal.SIGKILL)

    def _wait_for(self, folder: Path) -> None:
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and not (folder / METADATA).exists():
            try:
                there = sum(file.stat().st_size for file in folder.iterdir())
            except FileNotFoundError:
                continue
            if there >= self.share * self.whole_bytes:
                return


def bytes_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


def kill_while_saving(folder: Path, kills: int) -> None:
    """Kills a run ``kills`` times while it saves, and compares its losses with one left alone."""
    seed = secrets.randbits(32)
    draw = random.Random(seed)
    steps = kills + 3
    alone = train(replace(RUN, steps=steps, checkpoints=CheckpointSettings(folder / "alone")))
    whole_bytes = bytes_of(committed(folder / "alone")[-1])
    checkpoints = CheckpointSettings(folder / "runs", every=1, last=2, resume=True)
    settings, losses = replace(RUN, steps=steps, checkpoints=checkpoints), dict[int, float]()
    done = 0
    for number in range(kills):
        share = draw.choice((0.0, draw.uniform(0, 1.1)))
        killer = Killer(folder / "runs", done + draw.randrange(2), share, whole_bytes)
        with pytest.raises(SerriedError, match="SIGKILL"):
            train(settings, killer.tell)
        kept = committed(folder / "runs")
        told = f"seed {seed}, kill {number}, {share:.2f} of the bytes of step {killer.at + 1}"
        assert killer.resumed == done, told
        done = describe(kept[-1]).step if kept else 0
        # At most what came after the last commit is lost, and that was told of or is newer.
        assert killer.saved <= done <= killer.at + 1, told
        losses |= killer.losses
    last = Killer(folder / "runs", steps, 0, 0)
    train(settings, last.tell)
    assert last.resumed == done
    losses |= last.losses
    # What the kills left half written is gone as well.
    assert sorted((folder / "runs").iterdir()) == committed(folder / "runs")[-2:]
    wanted = dict(enumerate(alone.losses))
    assert losses == pytest.approx(wanted, rel=1e-12, abs=0), f"seed {seed}"


def test_a_run_killed_while_it_saves_goes_on_from_the_last_commit(tmp_path: Path) -> None:
    kill_while_saving(tmp_path, 2)


@pytest.mark.soak
def test_fifty_kills_while_saving_lose_nothing_committed(tmp_path: Path) -> None:
    kill_while_saving(tmp_path, 50)
