"""Starts processes that have torch loaded, and watches any by pidfd: no polling, no sleeping."""

from __future__ import annotations

import multiprocessing
import os
import select
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn

from serried.runtime.run.worker import leave

PATIENCE_S = 60
"""Far beyond what an exit takes; only a rank that never ends runs into it."""


def watch(pids: Iterable[int]) -> list[int]:
    """Returns a descriptor per living process; it stays with that process for good."""
    return [os.pidfd_open(pid) for pid in pids]


def all_ended(watched: list[int]) -> bool:
    """Waits until every watched process has ended; False when one does not."""
    poll = select.poll()
    left = set(watched)
    for descriptor in watched:
        poll.register(descriptor, select.POLLIN)
    while left:
        ready = poll.poll(PATIENCE_S * 1000)
        if not ready:
            return False
        for descriptor, _ in ready:
            poll.unregister(descriptor)
            left.discard(descriptor)
            os.close(descriptor)
    return True


def in_a_process(work: Callable[[Path], None], folder: Path) -> int | None:
    """Calls ``work(folder)`` in a process of its own, and returns its exit code.

    What it prints stands in files of the folder's name that end in ``.out`` and ``.err``.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["serried.runtime.run.preload"])
    process = context.Process(target=_work, args=(work, folder))
    process.start()
    process.join(PATIENCE_S)
    return process.exitcode


def _work(work: Callable[[Path], None], folder: Path) -> NoReturn:
    for suffix, descriptor in ((".out", 1), (".err", 2)):
        os.dup2(os.open(folder.with_suffix(suffix), os.O_WRONLY | os.O_CREAT), descriptor)
    work(folder)
    leave(0)
