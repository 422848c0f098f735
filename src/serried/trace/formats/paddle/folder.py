"""Where Paddle's worker logs lie: in a folder, or in the ``machine*`` folders of one.

    log/workerlog.0              logs/machine0/workerlog.0      machine2 comes before machine10,
    log/workerlog.1              logs/machine10/workerlog.0     whatever order they are listed in

``N`` counts a machine's devices, so a number that is left out is a device whose log is missing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from serried.errors import InputError
from serried.trace.formats.event_file import natural

_MACHINE = "machine"
_LOG = re.compile(r"workerlog\.(0|[1-9]\d{0,8})")
_MOST_DEVICES = 64
"""What a machine may hold; numbers further apart count no devices."""


def holds_paddle_logs(folder: Path) -> bool:
    """Tells whether ``folder``, or a ``machine*`` folder in it, holds a ``workerlog.N``."""
    return any(logs_in(place) for place in (folder, *_machines(folder).values()))


def is_worker_log(path: Path) -> bool:
    """Tells whether ``path`` is itself a ``workerlog.N``, one device's log of a folder of them."""
    return bool(_LOG.fullmatch(path.name)) and path.is_file()


def log_folders(folder: Path, multi_machine: bool | None) -> dict[str, Path]:
    """Returns the folders that hold logs, by the name of their machine.

    ``multi_machine`` says which; None looks. Raises InputError where there is no such folder.
    """
    if not folder.is_dir():
        raise InputError(
            "{folder} is not a folder; give the one that holds the workerlog.N files",
            folder=folder,
        )
    machines = _machines(folder)
    # Logs that lie in the folder itself win over machine* folders beside them.
    if multi_machine is None:
        multi_machine = not logs_in(folder) and bool(machines)
    if not multi_machine:
        return {"": folder}
    if not machines:
        raise InputError(
            "{folder} holds no folder whose name begins with machine; put each machine's "
            "worker logs into machine0, machine1 and so on",
            folder=folder,
        )
    return machines


def _machines(folder: Path) -> dict[str, Path]:
    """Returns the ``machine*`` folders by name, machine2 before machine10."""
    found = sorted(path for path in folder.glob(f"{_MACHINE}*") if path.is_dir())
    return {path.name: path for path in sorted(found, key=lambda path: natural(path.name))}


def logs_in(folder: Path) -> dict[int, Path]:
    """Returns the worker logs of one folder, by device."""
    # workerlog.0.bak and workerlog.01 begin alike, but are no device's.
    names = ((_LOG.fullmatch(path.name), path) for path in sorted(folder.glob("workerlog.*")))
    found = {int(match[1]): path for match, path in names if match and path.is_file()}
    return dict(sorted(found.items()))


def copied_machines(paths: Mapping[str, Mapping[int, Path]]) -> dict[str, str]:
    """Returns the machines whose logs are, byte for byte, those of one before, and that one."""
    by_sizes: dict[tuple[tuple[int, int], ...], list[str]] = {}
    for name, logs in paths.items():
        try:
            sizes = tuple((device, path.stat().st_size) for device, path in logs.items())
        except OSError:
            continue  # the reader of the log says why it cannot be read
        if any(size for _, size in sizes):
            by_sizes.setdefault(sizes, []).append(name)
    # Only those of equal sizes are read, each once: machines may be many.
    kept: dict[bytes, str] = {}
    found: dict[str, str] = {}
    for name in (name for names in by_sizes.values() if len(names) > 1 for name in names):
        if (digest := _digest(paths[name])) is None:
            continue
        if (twin := kept.setdefault(digest, name)) != name:
            found[name] = twin
    return {name: found[name] for name in paths if name in found}


def _digest(logs: Mapping[int, Path]) -> bytes | None:
    """Returns what logs that hold the same have alike; None where one cannot be read."""
    digest = hashlib.blake2b()
    try:
        for device, path in logs.items():
            # Device and size come first, so that no bytes can pass from one log to the next unseen.
            digest.update(f"{device} {path.stat().st_size} ".encode())
            with path.open("rb") as file:
                while piece := file.read(1 << 20):
                    digest.update(piece)
    except OSError:
        return None
    return digest.digest()


def device_numbers(there: set[int]) -> list[int]:
    """Returns the devices that there are logs of, and those between them, whose logs lack."""
    first, last = min(there), max(there)
    is_count = last - first < _MOST_DEVICES
    return list(range(first, last + 1)) if is_count else sorted(there)
