"""Starts real ranks that run a test's function, and returns what each of them answers.

cpu    gloo
cuda   NCCL; all ranks share the first GPU, each as if it were a host of its own
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

import pytest
import torch
import torch.distributed as dist

from serried.runtime.run.worker import leave

PATIENCE_S = 120
NEEDS_GPU = (
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
)
DEVICES = ("cpu", pytest.param("cuda", marks=NEEDS_GPU))
"""What ranks may run on, for tests that run on each."""
Test = TypeVar("Test", bound=Callable[..., None])


def needs_gpu(test: Test) -> Test:
    """Marks a test that runs on a GPU only."""
    for mark in NEEDS_GPU:
        test = mark(test)
    return test


def run_ranks(
    answer: Callable[..., Any], world_size: int, folder: Path, *given: Any, device: str = "cpu"
) -> list[dict[str, Any]]:
    """Calls ``answer(*given)`` on every rank, all joined; it yields names and values.

    On ``cuda`` tensors are made there unless the function asks otherwise. Returns each rank's
    names and values. A rank's error ends the test with its words.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["serried.runtime.run.preload"])
    pipes = [context.Pipe(duplex=False) for _ in range(world_size)]
    ranks = [
        context.Process(
            target=_run, args=(rank, world_size, str(folder / "store"), device, far, answer, given)
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
    device: str,
    channel: Connection,
    answer: Callable[..., Any],
    given: tuple[Any, ...],
) -> None:
    # A collection that takes a millisecond is recorded: tests would count it on a busy machine.
    gc.disable()
    try:
        if device == "cuda":
            share_gpu(rank)
            torch.set_default_device("cuda")
        dist.init_process_group(
            "nccl" if device == "cuda" else "gloo",
            store=dist.FileStore(store, world_size),  # type: ignore[attr-defined]
            rank=rank,
            world_size=world_size,
            timeout=timedelta(seconds=PATIENCE_S),
        )
        channel.send(dict(answer(*given)))
        dist.barrier()
    except BaseException as error:
        error.add_note(traceback.format_exc())  # a traceback does not travel by itself
        channel.send(error)
        leave(1)
    leave(0)


def share_gpu(rank: int) -> None:
    """Lets this rank use the first GPU: NCCL refuses two ranks of one host on it."""
    os.environ.update(NCCL_HOSTID=f"host{rank}", NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1")
    torch.cuda.set_device(0)
