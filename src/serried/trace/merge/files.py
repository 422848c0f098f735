"""Rank files: where the recordings of a run lie, in folders of this machine or behind a URL.

    runs/first                      a folder of this machine
    s3://bucket/runs/first          through fsspec, with what it needs for that protocol
    memory://runs/first

Only names, sizes and bytes are asked for, so that any of fsspec's filesystems will do.
"""

from __future__ import annotations

import fnmatch
import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from serried import user_file
from serried.errors import EnvironmentProblem, InputError, SerriedError, listed
from serried.finding import Sentence, said
from serried.limits import NAMES_BYTES
from serried.trace.model.record import NAMES_SUFFIX
from serried.trace.model.traffic import SUFFIX as TRAFFIC_SUFFIX

PATTERN = "rank-*.spans"
RUN_MARK = ".serried-run"
"""A file that ``serried train`` leaves in the folder of a run before its ranks write there."""


@dataclass(frozen=True)
class Url:
    """Names a folder that fsspec reads by its address."""

    text: str

    def __str__(self) -> str:
        return self.text.rstrip("/")


Folder = Path | Url


@dataclass(frozen=True)
class RankFile:
    """Describes one recording: its address, how long it is, and what lies beside it."""

    folder: Folder
    name: str
    num_bytes: int
    has_names: bool
    has_traffic: bool = False

    def __str__(self) -> str:
        return str(_in(self.folder, self.name))

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Opens it for reading; raises InputError where it, or a part of it, cannot be read."""
        with _read(_in(self.folder, self.name)) as file:
            yield file

    @property
    def traffic_name(self) -> str:
        """Where it is told what its collectives moved."""
        return str(_in(self.folder, _traffic_of(self.name)))

    @contextmanager
    def opened_traffic(self) -> Iterator[BinaryIO | None]:
        """Opens what is told of its collectives, as ``open`` does; None where nothing is."""
        if not self.has_traffic:
            yield None
            return
        with _read(_in(self.folder, _traffic_of(self.name))) as file:
            yield file

    def names_text(self) -> str:
        """Returns the text beside it that names the spans of its user, none without one."""
        if not self.has_names:
            return ""
        return read_text(
            self.folder, _names_of(self.name), NAMES_BYTES.most, said("the names of spans")
        )


def place_of(text: str) -> Folder:
    """Returns the folder or URL that a user named.

    >>> place_of("s3://bucket/run")
    Url(text='s3://bucket/run')
    """
    return Url(text) if "://" in text else Path(text)


def names_in_folder(folder: Folder) -> dict[str, int]:
    """Returns the files of ``folder`` with their sizes, by name.

    Raises InputError where it is not there, is a file, or cannot be read.
    """
    if isinstance(folder, Url):
        with _spoken_for(folder):
            return _listed_remotely(folder)
    try:
        with os.scandir(folder) as entries:
            # A pipe or a link to nothing is no file, and is not asked for its size.
            found = {each.name: each.stat().st_size for each in entries if each.is_file()}
    except FileNotFoundError as error:
        raise _not_there(folder) from error
    except NotADirectoryError as error:
        raise InputError(
            "{folder} is a file; give the folder that holds the rank-*.spans files", folder=folder
        ) from error
    except OSError as error:
        raise _unreadable(folder, error) from error
    return dict(sorted(found.items()))


def require_readable(folder: Folder) -> None:
    """Raises InputError for a folder of this machine that is there and may not be read.

    So it does for a device or a named pipe, which has no end.
    """
    if isinstance(folder, Url):
        return
    try:
        with os.scandir(folder):
            return
    except FileNotFoundError:
        return
    except NotADirectoryError:
        with user_file.opened(folder):
            return
    except OSError as error:
        raise _unreadable(folder, error) from error


def rank_files(folder: Folder) -> list[RankFile]:
    """Returns the recordings in ``folder``, by rank.

    Raises InputError as ``names_in_folder`` does, and where there are none.
    """
    names = names_in_folder(folder)
    found = [
        RankFile(folder, name, size, _names_of(name) in names, _traffic_of(name) in names)
        for name, size in names.items()
        if fnmatch.fnmatch(name, PATTERN)
    ]
    if found:
        return found
    # Often the folder above was given: then those that hold recordings can be named.
    below = sorted(
        {path.parent for path in folder.glob(f"*/{PATTERN}")} if isinstance(folder, Path) else ()
    )
    if below:
        raise InputError(
            "{folder} itself holds no rank-*.spans files; give the folders in it that do: {below}",
            folder=folder,
            below=listed(below),
        )
    raise InputError(
        "{folder} holds no rank-*.spans files; give the folder that --trace-dir named",
        folder=folder,
    )


def read_text(folder: Folder, name: str, limit_bytes: int, what: Sentence) -> str:
    """Returns a small file of ``folder`` as text, whatever is wrong in it.

    Raises InputError for one of more than ``limit_bytes``; ``what`` says in a word what it is.
    """
    with _read(_in(folder, name)) as file:
        data = file.read(limit_bytes + 1)
    user_file.require_size(len(data), limit_bytes, _in(folder, name), what)
    return data.decode("utf-8", "replace")


def _names_of(name: str) -> str:
    return name.removesuffix(".spans") + NAMES_SUFFIX


def _traffic_of(name: str) -> str:
    return name.removesuffix(".spans") + TRAFFIC_SUFFIX


def _in(folder: Folder, name: str) -> Folder:
    return Url(f"{folder}/{name}") if isinstance(folder, Url) else folder / name


@contextmanager
def _read(place: Folder) -> Iterator[BinaryIO]:
    if isinstance(place, Url):
        with _spoken_for(place), _fsspec().open(place.text, "rb") as file:
            yield file
        return
    try:
        with place.open("rb") as file:
            yield file
    except OSError as error:
        raise InputError(
            "{path} cannot be read: {reason}", path=place, reason=error.strerror
        ) from error


# ----------------------------------------------------------------------- behind a URL


def _fsspec() -> Any:
    try:
        return importlib.import_module("fsspec")
    except ImportError as error:
        raise EnvironmentProblem(
            "a URL is read through fsspec; pip install 'serried[remote]' brings it"
        ) from error


@contextmanager
def _spoken_for(url: Url) -> Iterator[None]:
    """Says in one sentence what a filesystem raised: each has errors of its own."""
    try:
        yield
    except SerriedError:
        raise
    except FileNotFoundError as error:
        raise _not_there(url) from error
    except ImportError as error:
        raise EnvironmentProblem(
            "{folder} needs a package that is not installed: {reason}", folder=url, reason=error
        ) from error
    except Exception as error:
        raise _unreadable(url, error) from error


def _listed_remotely(url: Url) -> dict[str, int]:
    filesystem, root = _fsspec().core.url_to_fs(url.text)
    found = filesystem.ls(root, detail=True)
    files = {}
    for each in found:
        if each["type"] == "file":
            name = str(each["name"]).rstrip("/").rpartition("/")[2]
            # A listing over HTTP has no sizes.
            size = filesystem.size(each["name"]) if each["size"] is None else each["size"]
            files[name] = int(size or 0)
    return dict(sorted(files.items()))


def _not_there(folder: Folder) -> InputError:
    return InputError(
        "{folder} is not there; give the folder that --trace-dir named", folder=folder
    )


def _unreadable(folder: Folder, error: Exception) -> InputError:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return InputError("{folder} cannot be read: {reason}", folder=folder, reason=reason)
