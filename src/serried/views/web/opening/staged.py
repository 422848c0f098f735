"""Files under the names that their readers know: links in a folder, whatever a user called them.

    my trace.txt (events)          0-my trace.json -> …/my trace.txt
    a, b (recordings of serried)   rank-00000.spans -> …/a      rank-00001.spans -> …/b

Where all files have such names already, the place itself is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from serried.errors import InputError
from serried.trace.model.record import HEADER_BYTES, MAGIC
from serried.user_file import opened
from serried.views.web.opening.folder import Recognised
from serried.views.web.opening.kinds import Kind
from serried.views.web.opening.sample import GZIP

_SPANS = re.compile(r"rank-\d+\.spans")
_LOG = re.compile(r"workerlog\.\d+")
_RECORDS = re.compile(r"profile_record_tmp_file_for_rank_\d+")
_NUMBER = re.compile(r"\d+")
_RANK = re.compile(rb'"rank": ?(\d{1,9})')

SUFFIXES: Mapping[Kind, tuple[str, ...]] = {
    Kind.EVENTS: (".json", ".json.gz"),
    Kind.PERFETTO: (".pftrace", ".perfetto-trace"),
    Kind.NSIGHT: (".sqlite", ".sqlite3", ".db"),
    Kind.PARQUET: (".parquet",),
}
"""How files end by which their reader knows them; the first is given where none is there."""
BY_NUMBER: Mapping[Kind, tuple[re.Pattern[str], str]] = {
    Kind.PADDLE_LOG: (_LOG, "workerlog.{number}"),
    Kind.PADDLE_RECORDS: (_RECORDS, "profile_record_tmp_file_for_rank_{number}"),
}
"""How files are called that a number tells apart, and how they are called anew."""
_BY_FOLDER = (Kind.RECORDING, Kind.PADDLE_LOG)
Named = dict[str, str]
"""Names that readers know, by the names that a user gave."""


def staged(place: Path, found: Recognised, folder: Callable[[], Path]) -> list[Path]:
    """Returns what to read: ``place``, folders in it, or a new folder of links with known names.

    ``folder`` makes an empty folder where one is needed. Several runs that lie in folders of one
    place are several places to read.
    """
    if found.kind in (Kind.STORE, Kind.RECORDING) and place.is_dir():
        runs = _runs(found)
        if runs is not None:
            return [place / each for each in runs]
    names = known_names(place, found)
    is_known = all(PurePosixPath(old).name == PurePosixPath(new).name for old, new in names.items())
    # What is read by its folder is linked into one of its own where a file of it is wanted alone.
    if is_known and not (place.is_file() and found.kind in _BY_FOLDER):
        return [place]
    made = folder()
    for old, new in names.items():
        source = place / old if place.is_dir() else place.with_name(old)
        target = made / new
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(source.resolve())
    return [target] if place.is_file() and found.kind in SUFFIXES else [made]


def known_names(place: Path, found: Recognised) -> Named:
    """Returns for each file that is read the name by which its reader knows it."""
    if found.kind is Kind.RECORDING:
        return _rank_names(place, found.names)
    if found.kind in BY_NUMBER:
        return _numbered(found.names, *BY_NUMBER[found.kind])
    if found.kind in SUFFIXES:
        return _suffixed(place, found.names, SUFFIXES[found.kind])
    return {name: name for name in found.names}


def _runs(found: Recognised) -> list[PurePosixPath] | None:
    """Returns the folders of runs; None where a recording has a name that is not known."""
    paths = [PurePosixPath(name) for name in found.names]
    if found.kind is Kind.STORE:
        tops = [path.parent for path in paths if path.name == "_serried.json"]
        return tops or None
    spans = {path.parent for path in paths if _SPANS.fullmatch(path.name)}
    return sorted(spans) if spans else None


def _rank_names(place: Path, names: Sequence[str]) -> Named:
    """Names recordings by the rank that their header says, and what lies beside them alike."""
    found: Named = {}
    for name in names:
        path = place / name if place.is_dir() else place
        rank = _rank_in(path)
        if rank is None:
            continue
        stem = PurePosixPath(name).with_suffix("")
        found[name] = f"rank-{rank:05d}.spans"
        for beside in (".names", ".traffic"):
            is_there = place.is_file() and place.with_suffix(beside).is_file()
            if is_there or f"{stem}{beside}" in names:
                found[f"{stem}{beside}"] = f"rank-{rank:05d}{beside}"
    return found | {name: name for name in names if name.endswith("plan.json")}


def _rank_in(path: Path) -> int | None:
    """Returns the rank that a recording's header says, None for what is no recording."""
    try:
        with opened(path) as file:
            head = file.read(HEADER_BYTES)
    except InputError:
        return None
    if not head.startswith(MAGIC):
        return None
    said = _RANK.search(head)
    return int(said[1]) if said else 0


def _numbered(names: Sequence[str], known: re.Pattern[str], form: str) -> Named:
    """Keeps the names that are known; others are numbered by the last number in them, or in turn.

    Folders stay, for they stand for machines.
    """
    found: Named = {}
    for place, name in enumerate(names):
        path = PurePosixPath(name)
        if known.fullmatch(path.name):
            found[name] = name
            continue
        numbers = _NUMBER.findall(path.name)
        new = str(path.with_name(form.format(number=int(numbers[-1]) if numbers else place)))
        taken = new in found.values()
        found[name] = str(path.with_name(form.format(number=place))) if taken else new
    return found


def _suffixed(place: Path, names: Sequence[str], suffixes: Sequence[str]) -> Named:
    found: Named = {}
    for number, name in enumerate(names):
        path = PurePosixPath(name)
        suffix = _suffix(place / name if place.is_dir() else place, suffixes)
        is_known = path.name.endswith(suffix if suffix == ".json.gz" else tuple(suffixes))
        is_flat = len(path.parts) == 1
        own = path.name if is_known else f"{path.stem}{suffix}"
        found[name] = own if is_flat and is_known else f"{number}-{own}"
    return found


def _suffix(path: Path, suffixes: Sequence[str]) -> str:
    with opened(path) as file:
        packed = file.read(2) == GZIP
    return suffixes[1] if packed and suffixes[0] == ".json" else suffixes[0]
