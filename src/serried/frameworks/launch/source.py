"""The text of a launch file: taken in only when it is text of a size that a person writes."""

from __future__ import annotations

from math import ceil
from pathlib import Path

from serried.errors import InputError

LIMIT_BYTES = 1024 * 1024
"""Launch files are a few kilobytes, hostfiles of 10,000 nodes some 300; more is something else."""


def text_of(data: bytes, name: str) -> str:
    """Returns ``data`` as text with plain line ends; raises InputError when it is no text."""
    check_size(len(data), name)
    text = data.decode("utf-8-sig", errors="replace")
    if "\x00" in text or text.count("\ufffd") > len(text) // 100:
        raise InputError(
            "{file} is not text, so it is no launch file; give a script or a YAML, JSON, "
            "TOML or Python config",
            file=name,
        )
    return text.replace("\r\n", "\n").replace("\r", "\n")


def check_size(size_bytes: int, name: str) -> None:
    """Raises InputError when a file is larger than any launch file."""
    if size_bytes > LIMIT_BYTES:
        raise InputError(
            "{file} holds {size} MB; launch files are a few kilobytes, so serried reads at most "
            "{limit} MB",
            file=name,
            size=ceil(size_bytes / 1024**2),
            limit=LIMIT_BYTES // 1024**2,
        )


def text_at(path: Path) -> str:
    """Returns the text of the file at ``path``; raises InputError when it cannot be read."""
    try:
        check_size(path.stat().st_size, path.name)
        return text_of(path.read_bytes(), path.name)
    except OSError as error:
        raise InputError(
            "{file} cannot be read: {reason}", file=path, reason=error.strerror
        ) from error
