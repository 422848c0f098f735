"""A file system of a few pages, for what becomes of a recording when it is full."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PAGE = 4096


@contextmanager
def small_disk(place: Path, size: int) -> Iterator[Path]:
    """Mounts a file system of ``size`` bytes; skips the test where mounting is not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    place.mkdir(exist_ok=True)
    target = os.fsencode(place)
    if libc.mount(b"tmpfs", target, b"tmpfs", 0, f"size={size}".encode()):
        pytest.skip(f"no file system can be mounted here: {os.strerror(ctypes.get_errno())}")
    try:
        yield place
    finally:
        libc.umount2(target, 2)  # MNT_DETACH: a file may still be open
