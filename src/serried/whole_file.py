"""Whole file: what is written under another name first and takes its place only when complete."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from serried.errors import InputError


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Opens ``path`` for bytes; it is there, new, only once the block ends without an error.

    Raises InputError when it cannot be written.
    """
    with whole_path(path) as part, part.open("wb") as file:
        yield file


@contextmanager
def whole_path(path: Path) -> Iterator[Path]:
    """Gives a path for others to write to; what is there then takes the place of ``path``.

    It has the mode of any new file, also where a library made its own for the owner alone.
    Raises InputError when it cannot be written.
    """
    # Not with_name, which raises a ValueError for a path without a name, such as "/".
    part = path.parent / f".{path.name}.{os.getpid()}.part"
    try:
        part.touch()
        mode = stat.S_IMODE(part.stat().st_mode)  # as the umask says, which only setting it tells
        yield part
        part.chmod(mode)
        part.replace(path)
    except OSError as error:
        raise InputError(
            "{path} cannot be written: {reason}", path=path, reason=error.strerror
        ) from error
    finally:
        with suppress(OSError):  # its folder may be none, or gone: the error above says so
            part.unlink()


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Gives an empty folder; it takes the place of ``path`` once the block ends without an error.

    What stood at ``path`` until then goes only after that. Raises InputError when it cannot
    be written.
    """
    place = Path(os.path.abspath(path))  # noqa: PTH100  resolve() would follow a link at its end
    part = place.with_name(f".{place.name}.{os.getpid()}.part")
    old = place.with_name(f".{place.name}.{os.getpid()}.old")
    try:
        part.mkdir(parents=True)
        yield part
        if place.exists():
            place.rename(old)
        part.rename(place)
    except OSError as error:
        if old.exists() and not place.exists():
            old.rename(place)
        raise InputError(
            "{path} cannot be written: {reason}", path=path, reason=error.strerror or error
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
