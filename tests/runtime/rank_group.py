"""Starts real ranks that run a test's function, and returns what each of them answers."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch.distributed as dist

from serried.runtime.worker import leave

PATIENCE_S = 60


def run_ranks(
    answer: Callable[..., Any], world_size: int, folder: Path, *given: Any
) -> list[dict[str, Any]]:
    """Calls ``answer(*given)`` on every rank, all joined over gloo; it yields names and values.

    Returns each rank's names and values. A rank's error ends the test with its words.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["serried.runtime.preload"])
    pipes = [context.Pipe(duplex=False) for _ in range(world_size)]
    ranks = [
        context.Process(
            target=_run, args=(rank, world_size, str(folder / "store"), far, answer, given)
        )
        for rank, (_, far) in enumerate(pipes)
    ]
    try:
        for process, (_, far) in zip(ranks, pipes, strict=True):
            process.start()
            far.close()
        answers = [near.recv() for near, _ in pipes]
    finally:
        for process in ranks:
            process.kill()
            process.join()
    for rank, each in enumerate(answers):
        if isinstance(each, BaseException):
            raise AssertionError(f"rank {rank} failed") from each
    return answers


def _run(
    rank: int,
    world_size: int,
    store: str,
    channel: Connection,
    answer: Callable[..., Any],
    given: tuple[Any, ...],
) -> None:
    try:
        dist.init_process_group(
            "gloo",
            store=dist.FileStore(store, world_size),  # type: ignore[attr-defined]
            rank=rank,
            world_size=world_size,
            timeout=timedelta(seconds=PATIENCE_S),
        )
        channel.send(dict(answer(*given)))
        dist.barrier()
    except BaseException as error:
        channel.send(error)
        leave(1)
    leave(0)
