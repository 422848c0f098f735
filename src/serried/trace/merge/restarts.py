"""Folders of later attempts, which a job that was started again leaves below its first.

runs/a              rank-00000.spans  rank-00001.spans  run-id
└── restart-1       rank-00000.spans  rank-00001.spans       of the same run: merged with it
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from serried import user_file
from serried.errors import InputError
from serried.trace.merge.files import PATTERN, Folder
from serried.trace.model.record import HEADER_BYTES, TracedJob, read_header

RESTARTS = "restart-*"


def with_restarts(folders: Sequence[Folder]) -> list[Folder]:
    """Returns ``folders``, each with those of later attempts below it that are of its run and job.

    A job that torchrun began again with fewer ranks is another one, whose ranks are others.
    """
    found: dict[Folder, None] = {}
    for folder in folders:
        found[folder] = None
        if isinstance(folder, Path):
            found |= dict.fromkeys(_restarts_of(folder))
    given = {folder.resolve() for folder in folders if isinstance(folder, Path)}
    return [
        each
        for each in found
        if each in folders or not isinstance(each, Path) or each.resolve() not in given
    ]


def _restarts_of(folder: Path) -> list[Path]:
    below = sorted({path.parent for path in folder.glob(f"{RESTARTS}/{PATTERN}")})
    whose = _whose(folder) if below else None
    return [each for each in below if whose is not None and _whose(each) == whose]


def _whose(folder: Path) -> tuple[str, TracedJob] | None:
    """Returns the run and the job of the first recording in ``folder`` that says them."""
    for path in sorted(folder.glob(PATTERN)):
        try:
            with user_file.opened(path) as file:
                header = read_header(path, file.read(HEADER_BYTES))
        except (OSError, InputError):
            continue  # what is wrong with it is said where it is read
        return header.run, header.job
    return None
