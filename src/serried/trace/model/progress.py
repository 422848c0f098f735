"""Progress: what is said of long work while it goes on, to whoever listens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from serried.finding import Sentence

Listener = Callable[[Sentence], None]
"""Hears a sentence as each piece of long work begins."""

LARGE_BYTES = 32 * 2**20
"""Files that hold more take long enough to read that it is worth saying."""
LARGE_SPANS = 200_000
"""So many spans take long enough to measure that it is worth saying."""


def unheard(_: Sentence) -> None:
    """Listens to nothing."""


def size_bytes(place: Path) -> int:
    """Returns how much a file, or the files in a folder and in the folders in it, hold."""
    if place.is_file():
        return place.stat().st_size
    files = [*place.glob("*"), *place.glob("*/*")] if place.is_dir() else []
    return sum(file.stat().st_size for file in files if file.is_file())
