"""What runs on each host: packs what lies in its folders, bounded, as a tar on standard output.

This file is sent to a host's python3 on standard input, so it needs Python 3.8 and nothing else: it
imports nothing of serried's, which no host has to have installed. The last member says what was
packed; a stream without it was cut off.

    python3 - MOST_FILE_MB MOST_ALL_MB FOLDER… < packing.py > host.tar

Of a file that is longer than the bound its end is packed, for that is where trouble stands; of a
host that holds more than the bound the newest files, guards' first.
"""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import IO, Any, Dict, Iterator, List, NamedTuple, Tuple  # noqa: UP035  of Python 3.8

LAST = "packed.json"
OURS = (".guard", ".stacks", ".failed", ".neighbours", ".json", ".spans", ".names", ".traffic")
MOST_FILES = 20_000
SHOWN = (
    ("kernel.log", ("dmesg", "--time-format", "iso")),
    ("nvidia-smi.txt", ("nvidia-smi", "-q", "-d", "ECC,PAGE_RETIREMENT,TEMPERATURE,PERFORMANCE")),
)
"""What a host itself says, where it has the command and lets this user ask."""


class Lying(NamedTuple):
    """Says where a file lies, what it is called in the tar, and how long and old it is."""

    path: Path
    name: str
    size: int
    time: float


def lying(folders: List[str]) -> Iterator[Lying]:  # noqa: UP006
    """Yields the files in folders, without hidden ones and what is no file."""
    for number, folder in enumerate(folders):
        top = Path(folder).expanduser().resolve()
        base = top.name or "root"
        base = base if len(folders) == 1 else f"{number}-{base}"
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            try:
                if path.name.startswith(".") or not path.is_file():
                    continue
                status = path.stat()
            except OSError:
                continue
            name = str(Path(base) / path.relative_to(top)) if path != top else base
            yield Lying(path, name, status.st_size, status.st_mtime)


def pack(most_file: int, most_all: int, folders: List[str], stream: IO[bytes]) -> None:  # noqa: UP006
    """Writes the tar to ``stream``."""
    packed: List[Dict[str, Any]] = []  # noqa: UP006
    left, total = 0, 0
    files = sorted(lying(folders), key=lambda each: (not each.name.endswith(OURS), -each.time))
    with tarfile.open(fileobj=stream, mode="w|") as tar:
        for each in files:
            kept = min(each.size, most_file)
            if total + kept > most_all or len(packed) == MOST_FILES:
                left += 1
                continue
            try:
                with each.path.open("rb") as file:
                    file.seek(each.size - kept)
                    data = file.read(kept)
            except OSError as error:
                packed.append({"name": each.name, "error": error.strerror})
                continue
            add(tar, each.name, data, each.time)
            total += len(data)
            packed.append({"name": each.name, "bytes": len(data), "of": each.size})
        for name, command in SHOWN:
            data = printed(command)[-most_file:]
            if data:
                add(tar, name, data, 0)
                packed.append({"name": name, "bytes": len(data), "of": len(data)})
        missing = [each for each in folders if not Path(each).expanduser().exists()]
        told = {"host": socket.gethostname(), "files": packed, "left_out": left}
        told["missing"] = missing
        add(tar, LAST, json.dumps(told).encode(), 0)


def add(tar: tarfile.TarFile, name: str, data: bytes, time: float) -> None:
    """Adds one member."""
    member = tarfile.TarInfo(name)
    member.size, member.mtime = len(data), int(time)
    tar.addfile(member, io.BytesIO(data))


def printed(command: Tuple[str, ...]) -> bytes:  # noqa: UP006
    """Returns what a command prints, nothing where it cannot be had."""
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return b""
    return done.stdout


if __name__ == "__main__":
    os.nice(10)
    pack(
        int(float(sys.argv[1]) * 2**20),
        int(float(sys.argv[2]) * 2**20),
        sys.argv[3:],
        sys.stdout.buffer,
    )
