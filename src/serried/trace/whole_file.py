"""Whole file: what is written under another name first and takes its place only when complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from serried.errors import InputError


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Opens ``path`` for bytes; it is there, new, only once the block ends without an error.

    Raises InputError when it cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    except OSError as error:
        raise InputError(
            "{path} cannot be written: {reason}", path=path, reason=error.strerror
        ) from error
    finally:
        part.unlink(missing_ok=True)
