"""Merging: the files of many ranks become one Trace, on one clock, checked to be one run.

    rank-00000.spans  host a   monotonic + offset a ─┐
    rank-00001.spans  host a   monotonic + offset a ─┼─> wall time ─> minus the first start
    rank-00002.spans  host b   monotonic + offset b ─┘

Ranks of one host share a clock and are never shifted against each other. The offset of a
host is the median of (wall - monotonic) over its ranks' headers, so that one rank that was
held up between reading its two clocks moves nothing. Between hosts the error is that of
their wall clocks (NTP: some hundred microseconds to milliseconds).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from serried import frameworks
from serried.errors import InputError, listed
from serried.finding import Finding, said
from serried.frameworks import Sizes
from serried.mesh import Layout, Placement
from serried.span import ActionKind, Spans
from serried.trace.record import HEADER_BYTES, Job, Recording, read_recording
from serried.trace.replay import Replay

PATTERN = "rank-*.spans"


@dataclass(frozen=True)
class Host:
    """Is one machine of a run: its name, the ranks it held, and where its clock stands."""

    name: str
    ranks: tuple[int, ...]
    offset_ns: int
    """What turns its CLOCK_MONOTONIC into wall time."""


@dataclass(frozen=True)
class HostClock:
    """Says how one host's clock was brought onto the first host's."""

    host: str
    source: str
    """``own`` for the first host, else ``pings``, ``messages``, ``order`` or several joined by +,
    and ``wall`` where nothing ties it to the others."""
    offset_ns: float
    """What was added in the middle of the trace, beyond the hosts' wall clocks."""
    drift: float
    """How much faster the first host's clock ran, per unit."""
    uncertainty_ns: float | None
    """How far it may still be off anywhere in the trace; None where that is not known."""


@dataclass(frozen=True, eq=False)
class Trace:
    """Holds one run's spans on one clock, and all that is known of how they came about.

    Times start near 0; ``base_ns`` is the wall time of 0, in nanoseconds since 1970.
    """

    run: str
    job: Job
    spans: Spans
    base_ns: int
    hosts: tuple[Host, ...]
    ranks: tuple[int, ...]
    """The ranks whose files were read, ascending."""
    torn: tuple[int, ...]
    """Ranks whose file has no proper end."""
    missing: tuple[int, ...]
    """Ranks of the world without a file."""
    warnings: tuple[Finding, ...]
    layout: Layout | None
    """The run's groups, where its framework can make them again."""
    clocks: tuple[HostClock, ...] = ()
    """How the clocks of its hosts were aligned (``align``); none where that was not done."""
    waits_inside: bool = False
    """Whether a computation's span begins with the wait for its input."""
    replay: Replay | None = None
    """Its operations with what they wait for, where its writer said more than spans hold."""
    names: tuple[str, ...] = ()
    """What its user called spans of kind SPAN, whose peer is a place in it."""

    def with_warnings(self, *findings: Finding) -> Trace:
        """Returns the same trace with more to be said of it."""
        return replace(self, warnings=(*self.warnings, *findings))

    @property
    def placement(self) -> Placement:
        """Which node each rank is on, as the job was laid out."""
        return Placement(self.job.world_size, self.job.gpus_per_node)

    @property
    def is_emulated(self) -> bool:
        """Whether fixed times stood for the computation."""
        return self.job.compute != "real"


def merge(folders: Sequence[Path]) -> Trace:
    """Reads every rank's file in ``folders`` and returns them as one Trace.

    Raises InputError when a folder is not there or holds no recording, when two runs are
    mixed, when a rank stands twice, and when no file holds a complete span.
    """
    paths = [path for folder in dict.fromkeys(map(Path, folders)) for path in _files(folder)]
    begun = [path for path in paths if path.stat().st_size >= HEADER_BYTES]
    recordings = {path: read_recording(path) for path in begun}
    if not any(len(each.spans) for each in recordings.values()):
        raise InputError(
            "{files} hold no complete span: the ranks stopped before they recorded one",
            files=listed(paths, limit=3),
        )
    _require_one_run(recordings)
    _require_each_rank_once(recordings)
    return _trace(recordings, stubs=[path for path in paths if path not in recordings])


def _trace(recordings: dict[Path, Recording], stubs: list[Path]) -> Trace:
    header = next(iter(recordings.values())).header
    names, recordings = _with_common_names(recordings)
    hosts = _hosts(list(recordings.values()))
    spans, base_ns = _on_one_clock(list(recordings.values()), hosts)
    ranks = tuple(sorted(each.header.rank for each in recordings.values()))
    torn = {each.header.rank: path for path, each in recordings.items() if each.torn}
    missing = tuple(sorted(set(range(header.job.world_size)) - set(ranks)))
    layout, failure = layout_of(header.job)
    warnings = [
        *(_torn_finding(rank, path, len(recordings[path].spans)) for rank, path in torn.items()),
        *(_stub_finding(path) for path in stubs),
        *([_missing_finding(missing, header.job.world_size)] if missing else []),
        *([failure] if failure else []),
    ]
    return Trace(
        run=header.run,
        job=header.job,
        spans=spans,
        base_ns=base_ns,
        hosts=hosts,
        ranks=ranks,
        torn=tuple(sorted(torn)),
        missing=missing,
        warnings=tuple(warnings),
        layout=layout,
        names=names,
    )


# ----------------------------------------------------------------------- what is given


def _files(folder: Path) -> list[Path]:
    """Returns the recordings in ``folder``, by rank; raises InputError where there are none."""
    if not folder.exists():
        raise InputError(
            "{folder} is not there; give the folder that --trace-dir named", folder=folder
        )
    if not folder.is_dir():
        raise InputError(
            "{folder} is a file; give the folder that holds the rank-*.spans files", folder=folder
        )
    found = sorted(folder.glob(PATTERN))
    if found:
        return found
    if below := sorted({path.parent for path in folder.glob(f"*/{PATTERN}")}):
        raise InputError(
            "{folder} itself holds no rank-*.spans files; give the folders in it that do: {below}",
            folder=folder,
            below=listed(below),
        )
    raise InputError(
        "{folder} holds no rank-*.spans files; give the folder that --trace-dir named",
        folder=folder,
    )


def _require_one_run(recordings: dict[Path, Recording]) -> None:
    (first_path, first), *others = recordings.items()
    for path, each in others:
        if each.header.run != first.header.run:
            raise InputError(
                "two runs are mixed: {first_path} is of run {first_run}, {path} of run {run}; "
                "merge each run from a folder of its own",
                first_path=first_path,
                first_run=first.header.run,
                path=path,
                run=each.header.run,
            )
        if each.header.job != first.header.job:
            raise InputError(
                "{first_path} and {path} are of one run ({run}) but describe two jobs; "
                "record each job into a folder of its own",
                first_path=first_path,
                path=path,
                run=each.header.run,
            )


def _require_each_rank_once(recordings: dict[Path, Recording]) -> None:
    seen: dict[int, Path] = {}
    for path, each in recordings.items():
        rank, world = each.header.rank, each.header.job.world_size
        if rank in seen:
            raise InputError(
                "rank {rank} stands twice, in {first} and {second}; give only one of them",
                rank=rank,
                first=seen[rank],
                second=path,
            )
        if not 0 <= rank < world:
            raise InputError(
                "{path} is of rank {rank}, outside its job's {world} ranks; it is not usable",
                path=path,
                rank=rank,
                world=world,
            )
        seen[rank] = path


# ----------------------------------------------------------------------- one clock


def _hosts(recordings: list[Recording]) -> tuple[Host, ...]:
    """Returns the machines, by their first rank; two of one name differ in their boot id."""
    headers: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for each in sorted(recordings, key=lambda each: each.header.rank):
        header = each.header
        pair = (header.rank, header.wall_ns - header.monotonic_ns)
        headers.setdefault((header.host, header.boot), []).append(pair)
    return tuple(
        Host(name, tuple(rank for rank, _ in pairs), _median([offset for _, offset in pairs]))
        for (name, _), pairs in headers.items()
    )


def _median(values: list[int]) -> int:
    """Returns the lower median: a value that was measured, exact where a mean would round."""
    return sorted(values)[(len(values) - 1) // 2]


def _with_common_names(
    recordings: dict[Path, Recording],
) -> tuple[tuple[str, ...], dict[Path, Recording]]:
    """Returns the names of all ranks, and the recordings numbered by their places in them.

    A span whose name was lost keeps none.
    """
    names = tuple(dict.fromkeys(name for each in recordings.values() for name in each.names))
    if not names:
        return (), recordings
    place = {name: number for number, name in enumerate(names)}
    common = {}
    for path, each in recordings.items():
        # The last entry, which -1 and numbers past the end lead to, stands for no name.
        places = np.array([*(place[name] for name in each.names), -1], dtype=np.int32)
        own = np.where(each.spans.peer < len(each.names), each.spans.peer, -1)
        is_named = each.spans.kind == ActionKind.SPAN
        peer = np.where(is_named, places[np.maximum(own, -1)], each.spans.peer)
        common[path] = replace(each, spans=replace(each.spans, peer=peer.astype(np.int32)))
    return names, common


def _on_one_clock(recordings: list[Recording], hosts: tuple[Host, ...]) -> tuple[Spans, int]:
    """Returns the spans of all ranks in wall time less the first start, and that start."""
    offset = {rank: host.offset_ns for host in hosts for rank in host.ranks}
    shifted = [each.spans.shifted(offset[each.header.rank]) for each in recordings]
    whole = Spans.joined(shifted)
    base_ns = int(np.min(whole.start_ns))
    return whole.shifted(-base_ns), base_ns


# ----------------------------------------------------------------------- what is said


def layout_of(job: Job) -> tuple[Layout | None, Finding | None]:
    """Returns a run's layout made again, or says why that cannot be."""
    asked = {each.name for each in fields(Sizes)} - {"world_size", "order", "options"}
    # Axes that a user named say their sizes themselves.
    named = {} if "axes" in job.options else job.sizes
    sizes = {name: size for name, size in named.items() if name in asked}
    try:
        whole = Sizes(job.world_size, **sizes, order=job.order or None, options=job.options)
        return frameworks.layout(job.framework, whole), None
    except InputError as error:
        reason = said("the run's groups cannot be made again: {reason}", reason=error)
        return None, Finding("layout", (reason,))


def _torn_finding(rank: int, path: Path, count: int) -> Finding:
    evidence = said(
        "{path} has no proper end: rank {rank} was killed or still runs; "
        "its {count} complete spans are kept",
        path=path,
        rank=rank,
        count=count,
    )
    return Finding("torn", (evidence,), (rank,), cure=said("if it runs, merge again later"))


def _stub_finding(path: Path) -> Finding:
    evidence = said(
        "{path} ends within its header: its rank stopped before it recorded a span", path=path
    )
    return Finding("torn", (evidence,))


def _missing_finding(missing: tuple[int, ...], world_size: int) -> Finding:
    evidence = said(
        "{count} of {world} ranks have no file here: {ranks}",
        count=len(missing),
        world=world_size,
        ranks=listed(missing),
    )
    cure = said("give the folders of all nodes at once")
    return Finding("missing", (evidence,), missing, cure=cure)
