"""Run: what all recordings say together, checked to be of one run, and how to read each.

    rank-00000.spans  host a   monotonic + offset a ─┐
    rank-00001.spans  host a   monotonic + offset a ─┼─> wall time ─> minus the first start
    rank-00002.spans  host b   monotonic + offset b ─┘

Ranks of one host share a clock and are never shifted against each other. The offset of a
host is the median of (wall - monotonic) over its ranks' headers, so that one rank that was
held up between reading its two clocks moves nothing. Between hosts the error is that of
their wall clocks (NTP: some hundred microseconds to milliseconds).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from serried.errors import InputError, listed
from serried.finding import Finding
from serried.trace.merge import findings as merge_findings
from serried.trace.merge.attempts import RESTARTS, Attempts, attempts_of, with_restarts
from serried.trace.merge.files import PATTERN, Folder, RankFile, rank_files
from serried.trace.merge.job import is_one_job, job_of
from serried.trace.merge.part import Part, no_spans
from serried.trace.merge.survey import StepCounts, Survey, Unusable, survey
from serried.trace.model.span_groups import SpanGroup
from serried.trace.model.trace import Host, Trace, layout_of

_COUNTS_AT_ONCE = 64

Engine = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]
"""What does a piece of work for each item, side by side, and yields the results in order."""


@dataclass(frozen=True, eq=False)
class SurveyedRun:
    """Holds a run whose recordings were surveyed and not yet read."""

    trace: Trace
    """All but its spans, which it holds none of."""
    parts: tuple[Part, ...]
    """By rank and time."""
    num_spans: int
    windows: tuple[tuple[int, int], ...]
    """From the first start to the last end on every host, before the hosts are aligned."""
    counts: StepCounts


def gathered(folders: Sequence[Folder], engine: Engine) -> SurveyedRun:
    """Returns the run that the recordings in ``folders`` are of, and in those of its restarts.

    Raises InputError when a folder is not there or holds no recording, when two runs are
    mixed, when a rank was recorded twice at the same time, and when no file holds a complete
    span.
    """
    folders = with_restarts(folders)
    files = [file for folder in dict.fromkeys(folders) for file in rank_files(folder)]
    found, counts = _surveyed(files, engine)
    surveys = [each for each in found if isinstance(each, Survey)]
    # This comes before attempts: the ranks of another run would look like restarts of this one.
    _require_one_run(surveys)
    attempts = attempts_of(surveys)
    if not any(each.num_spans for each in attempts.kept):
        raise InputError(
            "{files} hold no complete span: the ranks stopped before they recorded one",
            files=listed(files, limit=3),
        )
    unusable = [each for each in found if isinstance(each, Unusable)]
    left_out = [
        *_unusable_findings(unusable),
        *attempts.findings,
        *_further_attempts(folders),
    ]
    return _run(attempts, counts, left_out)


def _surveyed(
    files: Sequence[RankFile], engine: Engine
) -> tuple[list[Survey | Unusable], StepCounts]:
    """Returns a survey of every file, and their counts of steps added up as they come."""
    found: list[Survey | Unusable] = []
    counts = [StepCounts.joined([])]
    for each in engine(survey, files):
        if isinstance(each, Survey):
            counts.append(each.counts)
            # The counts are added up and let go (all surveys share one in their place), or
            # thousands of ranks would hold as many tables of steps.
            found.append(replace(each, counts=counts[0]))
            counts = [StepCounts.joined(counts)] if len(counts) > _COUNTS_AT_ONCE else counts
        else:
            found.append(each)
    return found, StepCounts.joined(counts)


def _run(attempts: Attempts, counts: StepCounts, left_out: Sequence[Finding]) -> SurveyedRun:
    header = attempts.kept[0].header
    job = job_of(attempts.kept)
    hosts = _hosts(attempts.kept)
    host_of = {rank: number for number, host in enumerate(hosts) for rank in host.ranks}
    offset = {rank: hosts[number].offset_ns for rank, number in host_of.items()}
    # A file that has no span says nothing of when the run began and ended.
    spoken = [each for each in attempts.kept if each.num_spans]
    base_ns = min(each.first_ns + offset[each.header.rank] for each in spoken)
    names = tuple(dict.fromkeys(name for each in attempts.kept for name in each.names))
    groups = tuple(dict.fromkeys(group for each in attempts.kept for group in each.groups))
    numbers = {group: number for number, group in enumerate(groups)}
    layout, failure = layout_of(job)
    ranks = tuple(sorted(host_of))
    trace = Trace(
        run=header.run,
        job=job,
        spans=no_spans(),
        base_ns=base_ns,
        hosts=hosts,
        ranks=ranks,
        torn=tuple(rank for rank, each in sorted(attempts.last.items()) if each.torn),
        missing=tuple(sorted(set(range(job.world_size)) - set(ranks))),
        warnings=(),
        layout=layout,
        names=names,
        groups=groups,
    )
    return SurveyedRun(
        trace=trace.with_warnings(*_findings(trace, attempts, left_out, failure)),
        parts=tuple(
            _part(
                each, host_of[each.header.rank], offset[each.header.rank] - base_ns, names, numbers
            )
            for each in attempts.kept
        ),
        num_spans=sum(each.num_spans for each in spoken),
        windows=_windows(hosts, spoken, base_ns),
        counts=counts,
    )


def _windows(
    hosts: tuple[Host, ...], surveys: Sequence[Survey], base_ns: int
) -> tuple[tuple[int, int], ...]:
    """Returns each host's first start and last end; the whole run's for one without spans."""
    host_of = {rank: number for number, host in enumerate(hosts) for rank in host.ranks}
    of_host: dict[int, list[Survey]] = {}
    for each in surveys:
        of_host.setdefault(host_of[each.header.rank], []).append(each)
    ends = []
    for number, host in enumerate(hosts):
        mine = of_host.get(number, [])
        firsts, lasts = [each.first_ns for each in mine], [each.last_ns for each in mine]
        moved = host.offset_ns - base_ns
        # A host without a span waits for the whole run's window, which is known only below.
        ends.append((min(firsts) + moved, max(lasts) + moved) if mine else None)
    known = [each for each in ends if each]
    whole = min(first for first, _ in known), max(last for _, last in known)
    return tuple(each or whole for each in ends)


def _part(
    each: Survey,
    host: int,
    offset_ns: int,
    names: tuple[str, ...],
    numbers: Mapping[SpanGroup, int],
) -> Part:
    place = {name: number for number, name in enumerate(names)}
    return Part(
        file=each.file,
        rank=each.header.rank,
        host=host,
        offset_ns=offset_ns,
        num_records=each.num_records,
        num_spans=each.num_spans,
        before_step=each.before_step,
        names=np.array([*(place[name] for name in each.names), -1], dtype=np.int32),
        shelves=each.shelves,
        backwards=each.backwards,
        groups={group: numbers[group] for group in each.groups},
    )


def _hosts(surveys: Sequence[Survey]) -> tuple[Host, ...]:
    """Returns the machines, by their first rank; two of one name differ in their boot id."""
    headers: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for each in surveys:
        header = each.header
        pair = (header.rank, header.wall_ns - header.monotonic_ns)
        headers.setdefault((header.host, header.boot), []).append(pair)
    return tuple(
        Host(
            name,
            tuple(dict.fromkeys(rank for rank, _ in pairs)),
            _median([offset for _, offset in pairs]),
        )
        for (name, _), pairs in headers.items()
    )


def _median(values: list[int]) -> int:
    """Returns the lower median: a value that was measured, exact where a mean would round."""
    return sorted(values)[(len(values) - 1) // 2]


# ----------------------------------------------------------------------- what is said


def _require_one_run(surveys: Sequence[Survey]) -> None:
    for each in surveys:
        first = surveys[0]
        if each.header.run != first.header.run:
            raise InputError(
                "two runs are mixed: {first_path} is of run {first_run}, {path} of run {run}; "
                "merge each run from a folder of its own",
                first_path=first.file,
                first_run=first.header.run,
                path=each.file,
                run=each.header.run,
            )
        if not is_one_job(each.header.job, first.header.job):
            raise InputError(
                "{first_path} and {path} are of one run ({run}) but describe two jobs; "
                "record each job into a folder of its own",
                first_path=first.file,
                path=each.file,
                run=each.header.run,
            )
        if not 0 <= each.header.rank < each.header.job.world_size:
            raise InputError(
                "{path} is of rank {rank}, outside its job's {world} ranks; it is not usable",
                path=each.file,
                rank=each.header.rank,
                world=each.header.job.world_size,
            )


def _findings(
    trace: Trace, attempts: Attempts, left_out: Sequence[Finding], failure: Finding | None
) -> Iterator[Finding]:
    for each in attempts.kept:
        if each.lost:
            yield merge_findings.lost(each.header.rank, each.lost, each.num_spans)
    for rank in trace.torn:
        # How a rank's last attempt ended is what counts: every earlier one was cut short.
        last = attempts.last[rank]
        yield merge_findings.torn(rank, last.file, last.num_spans)
    yield from left_out
    if trace.missing:
        yield merge_findings.missing(trace.missing, trace.job.world_size)
    if failure:
        yield failure


def _unusable_findings(unusable: Sequence[Unusable]) -> Iterator[Finding]:
    for each in sorted(unusable, key=lambda each: str(each.file)):
        say = merge_findings.foreign if each.is_foreign else merge_findings.cut_in_header
        yield say(each.file)


def _further_attempts(folders: Sequence[Folder]) -> Iterator[Finding]:
    """Yields what folders of later attempts hold that are of another run and were not given."""
    given = {folder.resolve() for folder in folders if isinstance(folder, Path)}
    for folder in sorted({each for each in folders if isinstance(each, Path)}):
        # Restarts of this run are among `folders` already; what else lies below is of another.
        below = {path.parent for path in folder.glob(f"{RESTARTS}/{PATTERN}")}
        if further := sorted(each for each in below if each.resolve() not in given):
            yield merge_findings.further_attempts(folder, further)
