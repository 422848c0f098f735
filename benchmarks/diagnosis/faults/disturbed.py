"""What goes wrong inside one rank: it sleeps, dies, is stopped, fails, or waits for a disk."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset


def disturb(kind: str, place: Path) -> None:
    """Does what ``kind`` says to the process that calls it; nothing for kinds of other places.

    ``place`` is a folder for what never answers.
    """
    if kind == "sleep":
        time.sleep(1000)
    elif kind == "kill -9":
        os.kill(os.getpid(), signal.SIGKILL)
    elif kind == "SIGSTOP":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif kind == "exception":
        raise ValueError("labels hold 50304, and the vocabulary has 50304 words")
    elif kind == "stuck loader":
        next(iter(DataLoader(_Shards(_never(place)), num_workers=1)))
    elif kind == "stuck checkpoint":
        torch.save({"weights": torch.zeros(16)}, _never(place))
    elif kind == "GPU out of memory":
        torch.empty(1 << 42, dtype=torch.uint8, device="cuda")
    elif kind == "device assert":
        torch.zeros(4, device="cuda")[torch.full((1,), 50304, device="cuda")].sum().item()


class _Shards(Dataset[bytes]):
    """Reads its items from a file system that never answers."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __len__(self) -> int:
        return 10_000

    def __getitem__(self, index: int) -> bytes:
        return self._file.read_bytes()


def _never(place: Path) -> Path:
    """Returns a file whose other end nobody opens, so that to open it never ends."""
    place.mkdir(exist_ok=True)
    file = place / f"never-{os.getpid()}"
    os.mkfifo(file)
    return file
