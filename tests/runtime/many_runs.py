"""Many runs in one launch: each process joins every run that has a place for its rank.

Runs on ``cuda`` share the first GPU, over NCCL.
"""

from __future__ import annotations

import gc
import multiprocessing
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Sequence
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch.distributed.tensor._redistribute import clear_redistribute_planner_cache
from torch.distributed.tensor.debug import _clear_sharding_prop_cache

from serried.errors import SerriedError
from serried.runtime.job.report import Event, RankReport, Started, StepDone
from serried.runtime.job.settings import TrainSettings
from serried.runtime.recording.training import TrainingRecorder
from serried.runtime.run.loop import RankTrainer
from serried.runtime.run.worker import leave
from serried.runtime.training.mesh import make_train_mesh
from tests.runtime.rank_group import share_gpu

PATIENCE_S = 120
AHEAD = timedelta(hours=2)
"""How long a rank waits for others that are still in runs without it."""


class Ran(NamedTuple):
    """Is what a run told: what its ranks held, and its steps, up to the error that ended it."""

    ranks: tuple[RankReport, ...]
    steps: list[StepDone]
    error: str = ""
    events: tuple[Event, ...] = ()


def run_many(runs: Sequence[TrainSettings]) -> list[Ran]:
    """Runs all of ``runs``, one after another, on one launch of processes."""
    return list(run_each(runs))


def run_each(runs: Sequence[TrainSettings]) -> Iterator[Ran]:
    """Yields what each of ``runs`` told, once it is over; raises AssertionError where one broke."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["serried.runtime.run.preload"])
    world_size = max(run.world_size for run in runs)
    pipes = [context.Pipe(duplex=False) for _ in range(world_size)]
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            context.Process(target=_rank, args=(list(runs), rank, folder, far), daemon=True)
            for rank, (_, far) in enumerate(pipes)
        ]
        try:
            for process, (_, far) in zip(processes, pipes, strict=True):
                process.start()
                far.close()
            for run in runs:
                yield _collect(run, [near for near, _ in pipes])
        finally:
            for process in processes:
                process.kill()
                process.join()


def _collect(run: TrainSettings, nears: list[Connection]) -> Ran:
    """Takes every rank's answer to one run; all but the first's are only checked for errors."""
    answers = [_answer(near) for near in nears[: run.world_size]]
    broken = [answer for answer in answers if isinstance(answer, str)]
    assert not broken, "\n".join(broken)
    first = answers[0]
    assert isinstance(first, Ran)
    return first


def _answer(near: Connection) -> Ran | str:
    try:
        answer: Ran | str = near.recv()
    except (EOFError, OSError):
        return "a rank ended without a word"
    return answer


def _rank(runs: list[TrainSettings], rank: int, folder: str, channel: Connection) -> None:
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module")
    # A collection that takes a millisecond is recorded: tests would count it on a busy machine.
    # What was loaded before all runs is no garbage of theirs, and takes long to look through.
    gc.disable()
    gc.freeze()
    for number, settings in enumerate(runs):
        if rank < settings.world_size:
            try:
                channel.send(_run(settings, rank, Path(folder) / str(number)))
            except Exception:
                channel.send(traceback.format_exc())
                break
    channel.close()
    leave(0)


def _run(settings: TrainSettings, rank: int, store: Path) -> Ran:
    timeout = timedelta(seconds=PATIENCE_S)
    # DTensor remembers meshes by their ranks, and with them groups of earlier runs, now gone.
    _clear_sharding_prop_cache()  # type: ignore[no-untyped-call]
    clear_redistribute_planner_cache()
    files = dist.FileStore(str(store), settings.world_size)  # type: ignore[attr-defined]
    # Ranks that had no place in the runs before are here long before the others.
    files.set(f"here/{rank}", "")
    files.wait([f"here/{each}" for each in range(settings.world_size)], AHEAD)
    device, backend = torch.device("cpu"), "gloo"
    gc.collect()  # what runs before left, so that none counts it
    if settings.device == "cuda":
        share_gpu(rank)
        torch.cuda.empty_cache()
        device, backend = torch.device("cuda", 0), "nccl"
    dist.init_process_group(
        backend,
        store=files,
        rank=rank,
        world_size=settings.world_size,
        timeout=timeout,
    )
    mesh = make_train_mesh(settings, device, timeout)
    trainer = RankTrainer(
        settings, mesh, TrainingRecorder.of(settings, run="r", rank=rank, backend=backend)
    )
    told: list[Event] = []
    error = ""
    try:
        trainer.run("r", told.append)
    except SerriedError as ended:  # such as an overflow, which every rank sees
        error = str(ended)
    # gloo connects late: a rank that closed its port would be missed inside a barrier itself.
    files.set(f"done/{rank}", "")
    files.wait([f"done/{each}" for each in range(settings.world_size)], timeout)
    dist.destroy_process_group()
    started = told[0]
    assert isinstance(started, Started)
    steps = [event for event in told if isinstance(event, StepDone)]
    return Ran(started.ranks, steps, error, tuple(told))
