"""Collecting: every host's tar unpacked into a folder of its own, moved into place when whole.

    evidence/
    ├── manifest.json     hosts, files with their sizes, what was cut or left out, who failed
    ├── node0/run/rank-00000.guard …
    └── node1/run/rank-00008.guard …

A host that does not answer, or whose stream breaks off, is named in the manifest; what others sent
is there all the same.
"""

from __future__ import annotations

import io
import json
import os
import re
import select
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from serried.diagnose.collect import packing
from serried.diagnose.collect.transport import Source
from serried.errors import EnvironmentProblem, InputError
from serried.finding import Sentence, said

MANIFEST = "manifest.json"
SCHEMA = "serried.collection/1"
AT_A_TIME = 16
PATIENCE_S = 120.0
"""How long nothing may come from a host, such as one whose file system hangs."""
_PROGRAM = Path(packing.__file__)


@dataclass(frozen=True)
class Collected:
    """Holds what came of one host."""

    host: str
    name: str
    """The folder in which it lies; that of a host whose name another has too has a number."""
    files: tuple[dict[str, Any], ...] = ()
    left_out: int = 0
    problem: Sentence | None = None
    missing: tuple[str, ...] = ()
    """The folders that it does not have."""

    @property
    def size_bytes(self) -> int:
        """How much was brought."""
        return sum(int(each.get("bytes", 0)) for each in self.files)

    @property
    def cut(self) -> tuple[str, ...]:
        """The names of files of which only the end was brought."""
        return tuple(e["name"] for e in self.files if e.get("bytes", 0) < e.get("of", 0))


@dataclass(frozen=True)
class Collection:
    """Holds what came of all hosts, in the order in which they were asked."""

    folder: Path
    hosts: tuple[Collected, ...] = field(default=())

    @property
    def failed(self) -> tuple[Collected, ...]:
        """The hosts of which nothing came."""
        return tuple(each for each in self.hosts if each.problem)


def collect(
    sources: Sequence[Source],
    folder: Path,
    told: Callable[[Collected], None] = lambda _: None,
) -> Collection:
    """Brings what lies on hosts into ``folder``; ``told`` hears of each as it came.

    What an earlier call brought of a host is replaced, by what came whole. Raises InputError
    where the folder cannot be written, EnvironmentProblem where a command is not installed.
    """
    for program in {source.command[0] for source in sources}:
        if shutil.which(program) is None:
            raise EnvironmentProblem("{program} is not installed here", program=program)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            "folder {path} cannot be made: {reason}", path=folder, reason=error.strerror
        ) from error
    names = _names([source.host for source in sources])

    def one(source: Source, name: str) -> Collected:
        found = _collected(source, folder, name)
        told(found)
        return found

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        found = Collection(folder, tuple(pool.map(one, sources, names)))
    _write_manifest(found)
    return found


def _names(hosts: Sequence[str]) -> list[str]:
    """Returns a folder's name for each host; no two alike.

    >>> _names(["node0", "10.0.0.7:22", "node0"])
    ['node0', '10.0.0.7-22', 'node0-2']
    """
    names: list[str] = []
    for host in hosts:
        plain = re.sub(r"[^A-Za-z0-9._-]", "-", host).strip(".") or "host"
        number = sum(each == plain or each.startswith(f"{plain}-") for each in names)
        names.append(plain if plain not in names else f"{plain}-{number + 1}")
    return names


def _collected(source: Source, folder: Path, name: str) -> Collected:
    part = folder / f".{name}.part"
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir()
        about = _unpacked(source, part)
        place = folder / name
        shutil.rmtree(place, ignore_errors=True)
        part.rename(place)
    except (OSError, tarfile.TarError, ValueError, subprocess.SubprocessError) as error:
        return Collected(source.host, name, problem=_why(error))
    finally:
        shutil.rmtree(part, ignore_errors=True)
        with suppress(OSError):
            _errors_of(part).unlink()
    missing = tuple(map(str, about.get("missing", ())))
    return Collected(
        source.host, name, tuple(about["files"]), int(about["left_out"]), None, missing
    )


def _unpacked(source: Source, part: Path) -> dict[str, Any]:
    """Unpacks a host's tar as it comes; raises ValueError where its last member is missing."""
    about: dict[str, Any] = {}
    with (
        _PROGRAM.open("rb") as program,
        _errors_of(part).open("w+b") as stderr,
        subprocess.Popen(
            source.command, stdin=program, stdout=subprocess.PIPE, stderr=stderr, bufsize=0
        ) as process,
    ):
        assert process.stdout is not None
        bytes_of = io.BufferedReader(_Patient(process.stdout.fileno()))
        try:
            with tarfile.open(fileobj=bytes_of, mode="r|") as tar:
                for member in tar:
                    stream = tar.extractfile(member) if member.isreg() else None
                    if stream is None:
                        continue
                    if member.name == packing.LAST:
                        about = json.loads(stream.read(64 << 20))
                        continue
                    place = _place(part, member.name)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    with place.open("xb") as file:
                        shutil.copyfileobj(stream, file)
                # What follows the end of a tar is padding.
                while bytes_of.read(1 << 16):
                    pass
        except tarfile.ReadError:
            about = {}
        except TimeoutError:
            process.kill()
            raise
        finally:
            with suppress(OSError):
                process.stdout.close()
            _ended(process)
        stderr.seek(0)
        words = stderr.read(4096).decode("utf-8", "replace").strip()
    if not isinstance(about.get("files"), list):
        raise ValueError(words.splitlines()[-1] if words else f"exit code {process.returncode}")
    return about


def _errors_of(part: Path) -> Path:
    return part.with_suffix(".errors")


class _Patient(io.RawIOBase):
    """Reads a pipe, and waits for what comes next only so long."""

    def __init__(self, pipe: int) -> None:
        super().__init__()
        self._pipe = pipe

    def readable(self) -> bool:
        """Returns True."""
        return True

    def readinto(self, into: Any, /) -> int:
        """Reads what is there; raises TimeoutError where nothing comes."""
        if not select.select([self._pipe], [], [], PATIENCE_S)[0]:
            raise TimeoutError(f"nothing came for {PATIENCE_S:g} s")
        return os.readv(self._pipe, [into])


def _ended(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()


def _place(part: Path, name: str) -> Path:
    """Returns where a member goes; raises ValueError for one that would lie elsewhere."""
    pieces = Path(name).parts
    if not pieces or Path(name).is_absolute() or ".." in pieces:
        raise ValueError(f"a file with the name {name!r}")
    return part.joinpath(*pieces)


def _why(error: Exception) -> Sentence:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return said("nothing whole came: {reason}", reason=reason)


def _write_manifest(collection: Collection) -> None:
    document = {
        "schema": SCHEMA,
        "collected": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "hosts": {
            each.name: {
                "host": each.host,
                "files": list(each.files),
                "left_out": each.left_out,
                "missing": list(each.missing),
                "problem": str(each.problem) if each.problem else None,
            }
            for each in collection.hosts
        },
    }
    part = collection.folder / f".{MANIFEST}.part"
    try:
        part.write_text(json.dumps(document, indent=1), encoding="utf-8")
        part.replace(collection.folder / MANIFEST)
    except OSError as error:
        raise InputError(
            "{path} cannot be written: {reason}",
            path=collection.folder / MANIFEST,
            reason=error.strerror,
        ) from error
