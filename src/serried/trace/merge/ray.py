"""Merge on Ray: the same pieces of work as tasks, on this machine or on a cluster.

    this process   plans, checks, writes the store
        │  surveys, samples, counts, nodes          results, bytes of Parquet
        └──> Ray's workers read the recordings ────────────┘

Workers read the folders by the same names, so these lie on a shared file system or behind a
URL; the store is written here. ``RAY_ADDRESS`` names a cluster; without it Ray starts here.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from serried.errors import EnvironmentProblem
from serried.trace.merge.files import Folder
from serried.trace.merge.store import Merged, merge_store

Item = TypeVar("Item")
Result = TypeVar("Result")

_IN_FLIGHT_A_CORE = 2


def merge_store_on_ray(folders: Sequence[Folder], path: Path) -> Merged:
    """Merges as ``store.merge_store`` does, its work done by Ray, to the same bytes.

    A Ray that runs in this process already is used and left running. Raises EnvironmentProblem
    where Ray is not installed or cannot be reached.
    """
    ray = _ray()
    is_mine = not ray.is_initialized()
    if is_mine:
        _start(ray)
    try:
        return merge_store(folders, path, _as_tasks, writes_here=False)
    finally:
        if is_mine:
            ray.shutdown()


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise EnvironmentProblem(
            "--engine ray needs Ray; pip install 'serried[ray]' brings it"
        ) from error


def _start(ray: Any) -> None:
    try:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        raise EnvironmentProblem(
            "Ray cannot be reached at {address}: {reason}",
            address=os.environ.get("RAY_ADDRESS", "this machine"),
            reason=str(error).partition("\n")[0],
        ) from error


def _as_tasks(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Yields what ``work`` makes of each item, in order; a few tasks a core are under way."""
    ray = _ray()
    task = ray.remote(_from_folder)
    most = max(1, int(ray.cluster_resources().get("CPU", 1))) * _IN_FLIGHT_A_CORE
    waiting: deque[Any] = deque()
    # The oldest is waited for: results come in order, and no more than `most` are held at once.
    for item in items:
        if len(waiting) == most:
            yield _result(ray, waiting.popleft())
        waiting.append(task.remote(Path.cwd(), work, item))
    while waiting:
        yield _result(ray, waiting.popleft())


def _from_folder(folder: Path, work: Callable[[Item], Result], item: Item) -> Result:
    """Does ``work`` from ``folder``, so that folders given as relative are found."""
    with contextlib.suppress(OSError):
        os.chdir(folder)
    return work(item)


def _result(ray: Any, reference: Any) -> Any:
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
