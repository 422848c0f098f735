"""A place made ready to be read: what it is, and the files and folders that its reader takes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from serried.trace.model.progress import size_bytes
from serried.views.web.opening.folder import Recognised
from serried.views.web.opening.kinds import TABS, Kind
from serried.views.web.opening.staged import staged


@dataclass(frozen=True)
class Prepared:
    """Says what is read, and how much that is."""

    kind: Kind
    places: tuple[Path, ...]
    size_bytes: int


def prepared(place: Path, found: Recognised, folder: Callable[[], Path]) -> Prepared:
    """Returns what is to be read of ``place``, which was ``found`` to be something.

    ``folder`` makes an empty folder.
    """
    if not found.names:
        return Prepared(found.kind, (place,), size_bytes(place))
    files = [place / name if place.is_dir() else place for name in found.names]
    size = sum(path.stat().st_size for path in files)
    return Prepared(found.kind, tuple(_places(place, found, files, folder)), size)


def _places(
    place: Path, found: Recognised, files: list[Path], folder: Callable[[], Path]
) -> list[Path]:
    if found.kind in (Kind.LAUNCH, Kind.HOSTFILE):
        return files
    if TABS[found.kind] == "run":
        return staged(place, found, folder)
    if found.kind is Kind.MODEL and files[0].suffix != ".json":
        # A plan tells a model's file from its name by how it ends.
        target = folder() / f"{files[0].stem}.json"
        target.symlink_to(files[0].resolve())
        return [target]
    # A diagnosis takes whatever lies there, for one file tells what another means.
    is_evidence = found.kind in (Kind.DUMP, Kind.STACKS, Kind.LOG)
    return [_folder_of(files, place, found)] if is_evidence and len(files) > 1 else files[:1]


def _folder_of(files: Sequence[Path], place: Path, found: Recognised) -> Path:
    """Returns the folder to diagnose: of a place that holds mostly else, the one of evidence."""
    is_mostly_else = len(found.left) > len(files)
    return Path(os.path.commonpath([path.parent for path in files])) if is_mostly_else else place
