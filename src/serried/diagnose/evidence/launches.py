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
from dataclasses import dataclass, field, replace
from pathlib import Path

from serried.errors import listed
from serried.finding import Sentence, said
from serried.user_file import opened

SAME_TIME_S = 2.0
"""Launches whose files end closer than this were copied, and their times tell no order. Nor do
those of launches that ran at once, as several jobs of one node do."""
BETWEEN_S = 15.0
"""Folders between which nothing was written for as long are of two launches."""
PEEKED = 1 << 14
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
        *earlier, last = sorted(launches, key=lambda each: (each.end, each.name))
        before = max(each.end for each in earlier)
        if before > last.begin or last.end - before < SAME_TIME_S:
            notes.append(_unordered(place, launches))
            continue
        left_out.update(file for each in earlier for file in each.files)
        notes.append(_ordered(place, last, earlier))
    return LastLaunch(tuple(each for each in files if each not in left_out), tuple(notes))


@dataclass
class _Launch:
    """Collects the files of one launch, the ranks that speak in them, and when it was, in s."""

    name: str
    files: list[Path]
    begin: float
    end: float
    ranks: set[int] = field(default_factory=set)

    def may_hold(self, other: _Launch) -> bool:
        """Tells whether both may be one: of other ranks, and of no other time."""
        apart = max(self.begin, other.begin) - min(self.end, other.end)
        return self.ranks.isdisjoint(other.ranks) and apart < BETWEEN_S

    def add(self, other: _Launch) -> None:
        """Takes the files of another folder in."""
        self.name = min(self.name, other.name)
        self.files += other.files
        self.ranks |= other.ranks
        self.begin, self.end = min(self.begin, other.begin), max(self.end, other.end)


def _of_torchrun(files: Sequence[Path]) -> list[list[_Launch]]:
    """Returns the launches that each folder of logs holds."""
    runs: dict[Path, dict[Path, list[Path]]] = defaultdict(lambda: defaultdict(list))
    for file in files:
        for above in file.parents:
            if _ATTEMPT.fullmatch(above.name) and _OF_RUN.fullmatch(above.parent.name):
                runs[above.parent.parent][above.parent].append(file)
                break
    return [_launches(held) for held in runs.values()]


def _launches(runs: Mapping[Path, list[Path]]) -> list[_Launch]:
    """Joins the folders that are nodes of one launch."""
    by_id: dict[str, list[_Launch]] = defaultdict(list)
    for node, files in runs.items():
        if found := _OF_RUN.fullmatch(node.name):
            end = max(map(_written, files))
            by_id[found["id"]].append(_Launch(node.name, files, min(_written(node), end), end))
    return [launch for nodes in by_id.values() for launch in _joined(nodes)]


def _joined(nodes: list[_Launch]) -> list[_Launch]:
    """Joins folders of one id: those in which different ranks speak, written at the same time.

    A folder joins the launch that ended nearest to it, of those that it may be of.
    """
    if len(nodes) < 2:
        return nodes
    for node in nodes:
        node.ranks = _speakers(node.files)
    launches: list[_Launch] = []
    # Folders in which most ranks speak come first: they part the launches, and the quiet ones
    # then join one of these.
    for node in sorted(nodes, key=lambda each: (-len(each.ranks), each.end)):
        free = [launch for launch in launches if launch.may_hold(node)]
        if free:
            _, at = min((abs(launch.end - node.end), at) for at, launch in enumerate(free))
            free[at].add(node)
        else:
            launches.append(node)
    return launches


def _of_slurm(files: Sequence[Path]) -> list[list[_Launch]]:
    """Returns the jobs of which each folder holds what Slurm kept; their begin is not known."""
    jobs: dict[Path, dict[str, _Launch]] = defaultdict(dict)
    for file in files:
        if found := _OF_JOB.fullmatch(file.name):
            name, end = f"slurm-{found['id']}", _written(file)
            one = _Launch(name, [file], end, end)
            if name in jobs[file.parent]:
                jobs[file.parent][name].add(one)
            else:
                jobs[file.parent][name] = one
    # The first of its files may have been written last long after another job's end.
    return [[replace(each, begin=each.end) for each in held.values()] for held in jobs.values()]


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


def _ordered(place: Path, last: _Launch, earlier: Sequence[_Launch]) -> Sentence:
    return said(
        "{place} holds {count} launches: this is of {last}, written last; to read another, give "
        "its own path: {others}",
        place=place.name or str(place),
        count=len(earlier) + 1,
        last=last.name,
        others=listed(sorted(each.name for each in earlier), limit=4),
    )


def _unordered(place: Path, launches: Sequence[_Launch]) -> Sentence:
    return said(
        "{place} holds {count} launches, and by the times of their files none is the last; all "
        "were read, as if they were one: give the path of one of {names}",
        place=place.name or str(place),
        count=len(launches),
        names=listed(sorted(each.name for each in launches), limit=4),
    )
