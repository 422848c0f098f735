"""Which of a user's files are recordings of a run, and those read, whatever tool wrote them.

rank-00003.spans, a store, *.pftrace, *.parquet, *.sqlite    told by their names
workerlog.N                                                  Paddle's, where jobs are in it
*.json, *.json.gz                                            told by events near the start
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from serried.diagnose.steps.long_run import LongRun, is_long
from serried.errors import SerriedError
from serried.finding import Sentence, said
from serried.trace.formats.paddle.folder import holds_paddle_logs
from serried.trace.formats.reading import read_recording
from serried.trace.formats.straggler.table import is_straggler_table
from serried.trace.gpu.activity import GpuTrace
from serried.trace.merge.files import PATTERN
from serried.trace.model.record import NAMES_SUFFIX
from serried.trace.model.trace import Trace
from serried.trace.model.traffic import SUFFIX as TRAFFIC_SUFFIX
from serried.trace.store.folder import is_store

Recording = Trace | GpuTrace | LongRun

_BY_NAME = (".pftrace", ".perfetto-trace", ".sqlite")
_EVENTS = b'"traceEvents"'
_PHASE = b'"ph"'
_LOOKED_AT = 65_536


@dataclass(frozen=True)
class Recorded:
    """Holds the recordings among a user's files, which files they are, and what was odd."""

    recordings: tuple[Recording, ...] = ()
    files: frozenset[Path] = frozenset()
    notes: tuple[Sentence, ...] = ()


def recordings_in(places: Sequence[Path]) -> Recorded:
    """Returns the recordings that lie in files and folders, also in folders below them.

    One that cannot be read is told in a note: other evidence may lie beside it.
    """
    found, files, notes = list[Recording](), set[Path](), list[Sentence]()
    for run in dict.fromkeys(run for place in places for run in _runs(place)):
        try:
            found.append(_read(run))
        except SerriedError as error:
            notes.append(said("{path} was not read: {reason}", path=run[0], reason=error))
            continue
        for path in run:
            files.update(_files_of(path))
    return Recorded(tuple(found), frozenset(files), tuple(notes))


def _read(run: tuple[Path, ...]) -> Recording:
    """Returns a recording; one of serried's own that is long is only surveyed."""
    is_own = all(path.is_dir() and any(path.glob(PATTERN)) for path in run)
    return LongRun.of(run) if is_own and is_long(run) else read_recording(list(run))


def _files_of(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    elif is_store(path):
        yield from (each for each in path.rglob("*") if each.is_file())
    else:
        kinds = {".spans", NAMES_SUFFIX, TRAFFIC_SUFFIX}
        yield from (each for each in path.rglob("rank-*") if each.suffix in kinds)


def _runs(place: Path) -> Iterator[tuple[Path, ...]]:
    """Yields what makes one recording each: a folder, a file, or files of one folder."""
    if place.is_file():
        if _is_recording(place):
            yield (place,)
        elif place.match(PATTERN):
            yield (place.parent,)
        return
    if not place.is_dir():
        return
    if is_store(place):
        yield (place,)
        return
    if holds_paddle_logs(place):
        yield (place,)
        return
    folders = sorted({each.parent for each in place.rglob(PATTERN)})
    # The folders of a restart lie in the run's own, which takes them along.
    own = [each for each in folders if not {*each.parents} & {*folders}]
    if own:
        yield tuple(own)
    stores = [each.parent for each in place.rglob("_serried.json")]
    yield from ((each,) for each in sorted(stores))
    rest = [
        each
        for each in sorted(place.rglob("*"))
        if each.is_file() and not any(above in stores for above in each.parents)
    ]
    named = [each for each in rest if _is_recording(each)]
    events = [each for each in named if each.name.endswith((".json", ".json.gz"))]
    for folder in dict.fromkeys(each.parent for each in events):
        yield tuple(each for each in events if each.parent == folder)
    yield from ((each,) for each in named if each not in events)


def _is_recording(file: Path) -> bool:
    if file.name.endswith((".json", ".json.gz")):
        start = _start(file)
        return _EVENTS in start or (start.lstrip().startswith(b"[") and _PHASE in start)
    if file.suffix == ".parquet":
        return is_straggler_table(file)
    return file.suffix in _BY_NAME


def _start(file: Path) -> bytes:
    try:
        if file.suffix == ".gz":
            with gzip.open(file) as packed:
                return packed.read(_LOOKED_AT)
        with file.open("rb") as plain:
            return plain.read(_LOOKED_AT)
    except (OSError, EOFError, zlib.error):
        return b""
