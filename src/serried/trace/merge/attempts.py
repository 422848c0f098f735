"""Attempts: which recordings of each rank count, where one rank has several.

    rank 3   a/rank-00003.spans   steps 0 1 2 3 4 5        killed in step 5
             b/rank-00003.spans           3 4 5 6 7        begun again at step 3
    kept                          0 1 2 │ 3 4 5 6 7

A copy of a recording counts once. A rank that was restarted keeps, of the earlier attempt,
what came before the step that the later one began with: the steps that led to the last. An
attempt on another machine has another clock, and is left out.

A job that was started again leaves the folders of later attempts below its first:

    runs/a              rank-00000.spans  rank-00001.spans  run-id
    └── restart-1       rank-00000.spans  rank-00001.spans      of the same run: merged with it
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from serried import user_file
from serried.errors import InputError
from serried.finding import Finding
from serried.trace.merge import findings as merge_findings
from serried.trace.merge.files import PATTERN, Folder
from serried.trace.merge.survey import Survey, Unusable, survey
from serried.trace.model.record import HEADER_BYTES, TracedJob, read_header

RESTARTS = "restart-*"


class Attempts(NamedTuple):
    """Holds the recordings that count, by rank and time, and what was left out."""

    kept: tuple[Survey, ...]
    findings: tuple[Finding, ...]

    @property
    def last(self) -> dict[int, Survey]:
        """The last recording of every rank."""
        return {each.header.rank: each for each in self.kept}


def attempts_of(surveys: Iterable[Survey]) -> Attempts:
    """Returns what counts of ``surveys``, all of one run.

    Raises InputError where a rank was recorded twice at the same time.
    """
    by_rank: dict[int, list[Survey]] = {}
    for each in surveys:
        by_rank.setdefault(each.header.rank, []).append(each)
    kept: list[Survey] = []
    findings: list[Finding] = []
    for rank in sorted(by_rank):
        originals, copies = _originals(by_rank[rank])
        attempts, restarts = _in_turn(originals)
        kept += attempts
        findings += copies + restarts
    return Attempts(tuple(kept), tuple(findings))


def _originals(found: list[Survey]) -> tuple[list[Survey], list[Finding]]:
    """Returns each recording once, the longest of its copies, by the time that it began."""
    originals: list[Survey] = []
    copies = []
    # Copies have one header. The longest comes first and stays: another may have been taken
    # while the rank still wrote.
    by_start = sorted(
        found, key=lambda each: (each.header.wall_ns, -each.num_records, str(each.file))
    )
    for each in by_start:
        original = next((one for one in originals if one.header == each.header), None)
        if original is None:
            originals.append(each)
        else:
            copies.append(merge_findings.copied(each.header.rank, original.file, each.file))
    return originals, copies


def _in_turn(found: list[Survey]) -> tuple[list[Survey], list[Finding]]:
    """Returns one rank's attempts, each cut where the next begins, and what is said of them."""
    *earlier, last = found
    kept, findings = [last], []
    step = last.first_step
    for each in reversed(earlier):
        after, rank = kept[0], last.header.rank
        # By the wall clock, for a machine that was booted anew has another monotonic one. What
        # still ran when the next began was no earlier attempt.
        if _wall_ns(each, each.last_ns) > _wall_ns(after, after.first_ns):
            raise InputError(
                "rank {rank} stands twice, in {first} and {second}; give only one of them",
                rank=rank,
                first=each.file,
                second=after.file,
            )
        if (each.header.host, each.header.boot) != (last.header.host, last.header.boot):
            findings.append(
                merge_findings.moved(rank, each.file, after.file, host=after.header.host)
            )
            continue
        is_cut = step is not None and each.last_step is not None and each.last_step >= step
        findings.append(
            merge_findings.restarted(rank, each.file, after.file, step if is_cut else None)
        )
        kept.insert(0, _before(each, step) if is_cut and step is not None else each)
        # Of the next earlier attempt only what precedes every later one counts.
        step = min((each for each in (step, each.first_step) if each is not None), default=None)
    return kept, findings[::-1]


def _before(attempt: Survey, step: int) -> Survey:
    again = survey(attempt.file, before_step=step)
    if isinstance(again, Unusable):
        raise InputError("{path} changed while it was read; merge again", path=attempt.file)
    return again


def _wall_ns(attempt: Survey, monotonic_ns: int) -> int:
    return monotonic_ns + attempt.header.wall_ns - attempt.header.monotonic_ns


# ----------------------------------------------------------------------- folders of attempts


def with_restarts(folders: Sequence[Folder]) -> list[Folder]:
    """Returns ``folders``, each with those of later attempts below it that are of its run and job.

    A job that torchrun began again with fewer ranks is another one, whose ranks are others.
    """
    found: dict[Folder, None] = {}
    for folder in folders:
        found[folder] = None
        if isinstance(folder, Path):
            found |= dict.fromkeys(_restarts_of(folder))
    # restart-1 may have been given as well, in other words (./a/restart-1): it counts once.
    given = {folder.resolve() for folder in folders if isinstance(folder, Path)}
    return [
        each
        for each in found
        if each in folders or not isinstance(each, Path) or each.resolve() not in given
    ]


def _restarts_of(folder: Path) -> list[Path]:
    below = sorted({path.parent for path in folder.glob(f"{RESTARTS}/{PATTERN}")})
    # Headers are read only where there is something below: most folders hold no restart.
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
