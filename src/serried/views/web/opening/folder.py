"""What several files are together: those of a folder, or of one drop, as one thing to open.

    rank-*.spans, .names, train.sh           the recording of a run; the script is left aside
    dump_rank_0, rank_0.log, layout.json     what a job left behind, for a diagnosis

The first kind of ``ORDER`` that is among them says what they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath

from serried.errors import InputError
from serried.limits import FOLDER_NAMES, SAMPLED_FILES
from serried.user_file import opened
from serried.views.web.opening.kinds import TABS, Kind, Tab
from serried.views.web.opening.recognise import kind_of
from serried.views.web.opening.sample import Sample, sample_of

ORDER = (
    *(Kind.STORE, Kind.RECORDING, Kind.PADDLE_LOG, Kind.PADDLE_RECORDS),
    *(Kind.EVENTS, Kind.NSIGHT, Kind.PERFETTO),
    *(Kind.DUMP, Kind.STACKS, Kind.LOG, Kind.PARQUET),
    *(Kind.CHECK, Kind.DIAGNOSIS, Kind.PLAN, Kind.LAUNCH, Kind.HOSTFILE),
    *(Kind.MODEL, Kind.GROUPS),
)
"""Kinds, the most telling first: a job's folder holds its script and config beside its records."""

COMPANIONS: dict[Kind, frozenset[Kind]] = {
    Kind.STORE: frozenset((Kind.PARQUET, Kind.BESIDE)),
    Kind.RECORDING: frozenset((Kind.BESIDE,)),
    Kind.DUMP: frozenset((Kind.STACKS, Kind.LOG, Kind.GROUPS, Kind.BESIDE, Kind.RECORDING)),
    Kind.STACKS: frozenset((Kind.LOG, Kind.GROUPS, Kind.BESIDE)),
    Kind.LOG: frozenset((Kind.GROUPS, Kind.BESIDE)),
    Kind.LAUNCH: frozenset((Kind.HOSTFILE, Kind.MODEL)),
}
"""Kinds that are read with another, where they lie beside it."""


@dataclass(frozen=True)
class Recognised:
    """Says what files are together, and which of them are read."""

    kind: Kind
    names: tuple[str, ...]
    """The files that are read, by the names of their samples; none where the place is said to be
    of this kind, and so is read whole."""
    left: tuple[str, ...] = ()
    """The files that are not."""

    @property
    def tab(self) -> Tab:
        """The tab that shows them."""
        return TABS[self.kind]


def together(samples: Sequence[Sample], called: object) -> Recognised:
    """Returns what files are together; ``called`` is what holds them.

    Raises InputError for a single file as ``kind_of`` does, and where none of several can be
    opened.

    >>> script = Sample("run.sh", 18, b"#!/bin/bash" + b"#" * 7)
    >>> spans = Sample("rank-00000.spans", 4096, b"serried\\x01\\x20\\x00")
    >>> together([script, spans], "run").names
    ('rank-00000.spans',)
    """
    if len(samples) == 1:
        kind = kind_of(samples[0])
        if kind in TABS:
            return Recognised(kind, (samples[0].name,))
        raise InputError(
            "{file} tells nothing by itself; open the folder that it lies in", file=samples[0].name
        )
    found = {sample.name: _kind(sample) for sample in samples}
    first = next((kind for kind in ORDER if kind in found.values()), None)
    if first is None:
        raise (
            InputError(
                "{folder} holds no file that serried opens among its {count}",
                folder=called,
                count=len(samples),
            )
            if samples
            else InputError("{folder} holds no files", folder=called)
        )
    taken = {first, *COMPANIONS.get(first, ())}
    return Recognised(
        first,
        tuple(name for name, kind in found.items() if kind in taken),
        tuple(name for name, kind in found.items() if kind not in taken),
    )


def recognised(place: Path) -> Recognised:
    """Returns what a file, or a folder with the files in it, is; raises InputError as ``together``.

    The names are paths below ``place``, or its own where it is a file.
    """
    if not place.exists():
        raise InputError("{path} is not there", path=place)
    if not place.is_dir():
        return together([sample_of(place)], place.name)
    paths = list(files_in(place))
    samples = []
    for path in _spread(paths):
        try:
            samples.append(sample_of(path, path.relative_to(place).as_posix()))
        except InputError:
            continue  # what may not be read is none of what is opened
    found = together(samples, str(place))
    if len(paths) == len(samples):
        return found
    # Of very many files those count that are called as the ones that were looked at.
    endings = {_ending(name) for name in found.names}
    names = [path.relative_to(place).as_posix() for path in paths]
    return replace(found, names=tuple(name for name in names if _ending(name) in endings))


def recognised_as(place: Path, kind: Kind | None) -> Recognised:
    """Returns what a place is, which is said to be of a kind; None leaves it to be recognised.

    Raises InputError for what serried does not open.
    """
    if not place.exists():
        raise InputError("{path} is not there", path=place)
    if kind in (None, Kind.RECORDING) and awaits_ranks(place):
        return Recognised(Kind.RECORDING, ())
    if kind is None:
        return recognised(place)
    if kind is Kind.RECORDING:
        try:
            recognised(place)
        except InputError:
            # Its reader says better what it lacks of a trace.
            from serried.trace.formats.reading import read_recording

            read_recording([place])
    return Recognised(kind, ())


def awaits_ranks(place: Path) -> bool:
    """Tells whether a place is the folder of a run whose ranks have recorded no span yet.

    It is a run's by the mark that ``serried train`` leaves there, or by records that ranks began.
    """
    if not place.is_dir():
        return False
    # A server listens before it imports what reads records.
    from serried.trace.merge.files import PATTERN, RUN_MARK

    records = [*place.glob(PATTERN)]
    is_run = bool(records) or ((place / RUN_MARK).exists() and not any(files_in(place)))
    return is_run and not any(map(_has_span, records))


def _has_span(record: Path) -> bool:
    from serried.trace.model.record import HEADER_BYTES, MAGIC, RECORD_BYTES

    try:
        with opened(record) as file:
            head = file.read(HEADER_BYTES)
            is_other = head != b"" and not head.startswith(MAGIC)
            return is_other or any(file.read(RECORD_BYTES))
    except InputError:
        return True  # its reader says what is wrong with it


def files_in(folder: Path) -> Iterator[Path]:
    """Yields the files of a folder and of those in it, by name, without hidden ones."""
    found = (path for path in folder.rglob("*") if not path.name.startswith("."))
    for path in sorted(islice(found, FOLDER_NAMES.most)):
        if path.is_file():
            yield path


def _spread(paths: Sequence[Path]) -> Sequence[Path]:
    """Returns the files that are looked at: all, or of very many some from first to last."""
    step = -(-len(paths) // SAMPLED_FILES.most) or 1
    return paths[::step]


def _ending(name: str) -> str:
    return PurePosixPath(name).suffix


def _kind(sample: Sample) -> Kind | None:
    try:
        return kind_of(sample, is_alone=False)
    except InputError:
        return None
