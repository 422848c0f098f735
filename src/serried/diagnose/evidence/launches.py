"""Which files are of the last launch of a job, where a folder has kept those of several.

    logs/none_a1b2c3d4/attempt_0/3/stderr.log    launched on Monday, ran out of memory   ── left out
    logs/none_x_9y8z7w/attempt_0/3/stderr.log    launched today, hangs                   ── read
    slurm-4711.out   slurm-4712.out              the same, as Slurm names what it keeps

torchrun makes a folder for each launch, and for each node of it, named by the run's id and eight
letters; Slurm a file for each job. Folders of one id are nodes of one launch, unless one rank
speaks in both or one was made long after the other was written: then they are two launches, since
``none`` is the id where none was given.
(torch 2.13, torch/distributed/elastic/multiprocessing/api.py, DefaultLogsSpecs.)
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from serried.errors import listed
from serried.finding import Sentence, said
from serried.user_file import opened

SAME_TIME_S = 2.0
"""Launches whose files end closer than this were copied, and their times tell no order."""
BETWEEN_S = 15.0
"""Folders between which nothing was written for as long are of two launches."""
PEEKED = 1 << 16
"""Bytes at either end of a log that are looked through for the ranks that speak in it."""

_ATTEMPT = re.compile(r"attempt_\d{1,6}")
_OF_RUN = re.compile(r"(?P<id>.+)_[a-z0-9_]{8}")
_OF_JOB = re.compile(r"slurm-(?P<id>\d{1,12})(?:[_.+-].*)?\.(?:out|err|log)")
_RANK = re.compile(rb"\[rank(\d{1,7})\]")


@dataclass(frozen=True)
class LastLaunch:
    """Holds the files that are read of one folder, and what is said of those that are not."""

    files: tuple[Path, ...]
    notes: tuple[Sentence, ...] = ()


def last_launch(place: Path, files: Sequence[Path]) -> LastLaunch:
    """Returns the files of ``place`` without those of earlier launches.

    Where times do not tell which launch was the last, all are kept, and that is said.

    >>> last_launch(Path("."), [Path("train.log")]).notes
    ()
    """
    left_out = set[Path]()
    notes = list[Sentence]()
    for launches in (*_of_torchrun(files), *_of_slurm(files)):
        if len(launches) < 2:
            continue
        ends = {name: max(map(_written, held)) for name, held in launches.items()}
        *_, before, last = sorted(launches, key=lambda name: (ends[name], name))
        if ends[last] - ends[before] < SAME_TIME_S:
            notes.append(_unordered(place, launches))
            continue
        others = [name for name in launches if name != last]
        left_out.update(file for name in others for file in launches[name])
        notes.append(_ordered(place, last, others))
    return LastLaunch(tuple(each for each in files if each not in left_out), tuple(notes))


def _of_torchrun(files: Sequence[Path]) -> list[dict[str, list[Path]]]:
    """Returns the launches that each folder of logs holds, by the names of their folders."""
    runs: dict[Path, dict[Path, list[Path]]] = defaultdict(lambda: defaultdict(list))
    for file in files:
        for above in file.parents:
            if _ATTEMPT.fullmatch(above.name) and _OF_RUN.fullmatch(above.parent.name):
                runs[above.parent.parent][above.parent].append(file)
                break
    return [_launches(held) for held in runs.values()]


def _launches(runs: Mapping[Path, list[Path]]) -> dict[str, list[Path]]:
    """Joins the folders that are nodes of one launch."""
    by_id: dict[str, list[Path]] = defaultdict(list)
    for run in runs:
        if found := _OF_RUN.fullmatch(run.name):
            by_id[found["id"]].append(run)
    return {
        min(node.name for node in nodes): [file for node in nodes for file in runs[node]]
        for of_one_id in by_id.values()
        for nodes in _parted(of_one_id, runs)
    }


def _parted(nodes: Sequence[Path], runs: Mapping[Path, list[Path]]) -> list[list[Path]]:
    """Parts folders of one id into launches.

    Of one launch are folders in which different ranks speak, and which were written to at the
    same time. A folder joins the launch that ended nearest to it, of those that it may be of.
    """
    if len(nodes) < 2:
        return [list(nodes)]
    span = {node: _Span.of(node, runs[node]) for node in nodes}
    ranks = {node: _speakers(runs[node]) for node in nodes}
    launches: list[list[Path]] = []
    # Folders in which most ranks speak come first: they part the launches, and the quiet ones
    # then join one of these.
    for node in sorted(nodes, key=lambda each: (-len(ranks[each]), span[each].end)):
        near = {
            min(abs(span[node].end - span[other].end) for other in launch): launch
            for launch in launches
            if not any(ranks[node] & ranks[other] for other in launch)
            and any(span[node].meets(span[other]) for other in launch)
        }
        if near:
            near[min(near)].append(node)
        else:
            launches.append([node])
    return launches


@dataclass(frozen=True)
class _Span:
    """Holds when torchrun made a node's folder, and when a rank last wrote there, in seconds."""

    begin: float
    end: float

    @classmethod
    def of(cls, node: Path, files: Sequence[Path]) -> _Span:
        end = max(map(_written, files))
        return cls(min(_written(node), end), end)

    def meets(self, other: _Span) -> bool:
        apart = max(self.begin, other.begin) - min(self.end, other.end)
        return apart < BETWEEN_S


def _of_slurm(files: Sequence[Path]) -> list[dict[str, list[Path]]]:
    """Returns the jobs of which each folder holds what Slurm kept, by their names there."""
    jobs: dict[Path, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
    for file in files:
        if found := _OF_JOB.fullmatch(file.name):
            jobs[file.parent][f"slurm-{found['id']}"].append(file)
    return [dict(held) for held in jobs.values()]


def _speakers(files: Sequence[Path]) -> set[int]:
    """Returns the ranks that ``[rank3]:`` names at the ends of logs."""
    found = set[int]()
    for path in files:
        with opened(path) as file:
            head = file.read(PEEKED)
            file.seek(max(len(head), path.stat().st_size - PEEKED))
            found |= {int(each) for each in _RANK.findall(head + file.read(PEEKED))}
    return found


def _written(file: Path) -> float:
    return file.stat().st_mtime


def _ordered(place: Path, last: str, others: Sequence[str]) -> Sentence:
    return said(
        "{place} holds {count} launches: this is of {last}, written last; to read another, give "
        "its own path: {others}",
        place=place.name or str(place),
        count=len(others) + 1,
        last=last,
        others=listed(sorted(others), limit=4),
    )


def _unordered(place: Path, launches: Mapping[str, object]) -> Sentence:
    return said(
        "{place} holds {count} launches, and by the times of their files none is the last; all "
        "were read, as if they were one: give the path of one of {names}",
        place=place.name or str(place),
        count=len(launches),
        names=listed(sorted(launches), limit=4),
    )
