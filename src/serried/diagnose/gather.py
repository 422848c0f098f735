"""Reads whatever a user has of a job that hung, failed or was slow."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from serried.diagnose.evidence.attempt import earlier_files, is_of_attempt, parted
from serried.diagnose.evidence.launches import last_launch
from serried.diagnose.evidence.log_file import TOLD_EVERY, LogFile, file_speaker
from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.numbers import is_of_one_launcher, numbered_by_launchers
from serried.diagnose.evidence.quote import Numbering, Quote
from serried.diagnose.evidence.records.runs import of_other_runs
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.source_lines import SourceLines
from serried.diagnose.evidence.stacks.in_logs import KIND as IN_LOG
from serried.diagnose.evidence.stacks.in_logs import StacksInLog, is_by_python
from serried.diagnose.evidence.stacks.stack import ThreadStack
from serried.diagnose.evidence.text.reader import text_signs
from serried.diagnose.gathered import Evidence
from serried.diagnose.job_files import JobFiles
from serried.diagnose.job_state.given import GivenGroups
from serried.diagnose.job_state.left_behind import LeftBehind
from serried.diagnose.job_state.recorded import recorded_state
from serried.diagnose.job_state.standing import standing_state
from serried.diagnose.job_state.state import JobState
from serried.diagnose.steps.going_on import GoingOn
from serried.diagnose.steps.long_run import LongRun
from serried.diagnose.steps.of_lines import StepLines
from serried.diagnose.steps.recording import Recorded, recordings_in
from serried.diagnose.steps.standing import never_closed, stands
from serried.errors import listed
from serried.finding import Sentence, said
from serried.trace.merge.files import PATTERN
from serried.trace.model.progress import Listener, unheard
from serried.trace.model.trace import Trace

MOST_STARTS = 8
"""Earlier starts of a job of which it is told how they ended."""
MOST_OF_A_NODE = 16
"""Ranks that one node may have, for a job of so few to be taken to run on one."""


def gather(
    places: Sequence[Path], hear: Listener = unheard, given: GivenGroups | None = None
) -> Evidence:
    """Returns the evidence that lies in files and folders, each recognised by what it holds.

    ``hear`` is told of long reading as it goes on; ``given`` are the job's groups, where they are
    not among the files. Raises InputError for a place that is not there or cannot be read.
    """
    recorded = recordings_in(places)
    files, left_out = _of_last_run(places, recorded)
    read = _Reading(earlier_files(files))
    for file, name in _names(files).items():
        read.take(file, name, hear)
    job, notes = read.job, [*read.notes, *_empty(read.empty)]
    last, gone = parted(read.told, read.earlier, job.left.earlier_pids)
    last = named_by_process(last, job.left.rank_of_pid)
    gone = {n: named_by_process(signs, job.left.rank_of_pid) for n, signs in gone.items()}
    signs = numbered_globally(last, given or job.left.given)
    notes += _take_stacks(job.left, signs, read.going_on)
    if job.left.is_empty:
        state = _of_recordings(recorded, signs)
    else:
        job.left.texts = read.code.texts
        job.left.given = given or job.left.given
        state, odd = standing_state(job.left, signs)
        notes += odd
    if not signs:  # which would tell how its processes ended
        notes += _never_closed(recorded)
    return Evidence(
        tuple(signs),
        state,
        earlier=tuple(_of_earlier(job.left.before, gone)),
        recordings=recorded.recordings,
        step_lines=read.steps,
        going_on=read.going_on,
        sources=tuple(map(str, [*files, *sorted(recorded.files)])),
        num_lines=read.num_lines,
        notes=(*left_out, *recorded.notes, *job.notes, *notes),
    )


def _of_last_run(places: Sequence[Path], recorded: Recorded) -> tuple[list[Path], list[Sentence]]:
    """Returns the files that are read as logs or the like, of the last run, and notes on others."""
    found = [last_launch(place, files_of(place)) for place in places]
    files = [file for each in found for file in each.files if file not in recorded.files]
    others = of_other_runs(files)
    notes = [note for each in found for note in each.notes]
    return [file for file in files if file not in others.files], [*notes, *others.notes]


@dataclass
class _Reading:
    """Takes files one by one, and holds what they tell."""

    earlier: frozenset[Path]
    """Files of earlier starts of the job."""
    job: JobFiles = field(default_factory=JobFiles)
    told: dict[Path, list[Sign]] = field(default_factory=dict)
    """What each log tells."""
    code: SourceLines = field(default_factory=SourceLines)
    steps: StepLines = field(default_factory=StepLines)
    going_on: GoingOn = field(default_factory=GoingOn)
    num_lines: int = 0
    num_bytes: int = 0
    notes: list[Sentence] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)

    def take(self, file: Path, name: str, hear: Listener) -> None:
        """Takes a file in as what it is; what is none of a job's other files is read as a log."""
        if self.job.take(file, name):
            return
        is_last = file not in self.earlier
        log = LogFile(file, name, hear, (self.steps.hear, self.going_on.hear) if is_last else ())
        heard = _Heard(self.code)
        heard_of = list(text_signs(heard.lines(log)))
        self.told[file] = [*_own_log(log), *heard_of, *heard.stacks.signs()]
        self.notes += _restarts(name, self.told[file])
        self.num_lines += log.num_lines
        self._count(log.num_bytes, hear)
        self.notes += (odd := _odd(log))
        if not (log.num_bytes or odd or is_of_attempt(file)):
            self.empty.append(name)

    def _count(self, num_bytes: int, hear: Listener) -> None:
        """Counts what logs hold, and says so where many of them are as long as one long log."""
        before, self.num_bytes = self.num_bytes, self.num_bytes + num_bytes
        if num_bytes < TOLD_EVERY and self.num_bytes // TOLD_EVERY > before // TOLD_EVERY:
            gigabytes, count = self.num_bytes / 1e9, len(self.told)
            hear(
                said(
                    "{gigabytes:.1f} GB of {count} logs are read", gigabytes=gigabytes, count=count
                )
            )


def _of_earlier(
    before: Mapping[int, LeftBehind], gone: Mapping[int, Sequence[Sign]]
) -> Iterator[Evidence]:
    """Yields what each earlier start of a job left: its signs, and its guards' files."""
    for number in sorted({*before, *gone})[-MOST_STARTS:]:
        signs, left = gone.get(number, ()), before.get(number)
        yield Evidence(tuple(signs), standing_state(left, signs)[0] if left else None)


def _of_recordings(recorded: Recorded, signs: Sequence[Sign]) -> JobState | None:
    """Returns where ranks stand of which serried's recording alone tells, and only if they do."""
    files = [file for file in recorded.files if file.match(PATTERN)]
    if len(recorded.recordings) != 1 or not files:
        return None
    [found] = recorded.recordings
    conditions = stands(files, signs) if isinstance(found, Trace | LongRun) else None
    if conditions is None:
        return None
    if isinstance(found, LongRun):
        trace, ended = found.ending()
        return recorded_state(trace, conditions, ended)
    return recorded_state(found, conditions) if isinstance(found, Trace) else None


def _never_closed(recorded: Recorded) -> list[Sentence]:
    files = [file for file in recorded.files if file.match(PATTERN)]
    if len(recorded.recordings) != 1 or not files:
        return []
    [found] = recorded.recordings
    trace = found.run.trace if isinstance(found, LongRun) else found
    return never_closed(trace, files) if isinstance(trace, Trace) else []


def numbered_globally(signs: list[Sign], given: GivenGroups | None) -> list[Sign]:
    """Returns signs with ranks of the whole job where the numbers of one node are the same.

    That is so where a launcher says so and speaks of one node, or where as many local ranks speak
    as the job has ranks: it runs on one node.
    """
    signs = numbered_by_launchers(signs)
    local = {s.speaker.rank for s in signs if s.speaker.numbering is Numbering.LOCAL}
    if not local or not (is_of_one_launcher(signs) or _is_of_one_node(signs, local, given)):
        return signs
    return [
        replace(sign, speaker=replace(sign.speaker, numbering=Numbering.GLOBAL))
        if sign.speaker.numbering is Numbering.LOCAL
        else sign
        for sign in signs
    ]


def _is_of_one_node(
    signs: Sequence[Sign], local: set[int | None], given: GivenGroups | None
) -> bool:
    if given is None or given.world_size > MOST_OF_A_NODE:
        return False
    if any(rank is not None and rank >= given.world_size for rank in local):
        return False
    return all(
        sign.facts.get("local_rank") in (None, sign.speaker.global_rank)
        for sign in signs
        if sign.kind in ("first_failure", "other_failure")
    )


def named_by_process(signs: list[Sign], rank_of_pid: Mapping[int, int]) -> list[Sign]:
    """Returns signs with the rank of each process of which a guard wrote down whose it is."""
    return [
        replace(sign, speaker=replace(sign.speaker, rank=rank, numbering=Numbering.GLOBAL))
        if sign.speaker.pid is not None
        and (rank := rank_of_pid.get(sign.speaker.pid)) is not None
        and sign.speaker.global_rank is None
        else sign
        for sign in signs
    ]


def _ranks_of_processes(signs: Sequence[Sign]) -> dict[int | None, int]:
    """Returns the ranks of processes that lines name by both, of one host and without doubt."""
    told: dict[int, set[int]] = defaultdict(set)
    for sign in signs:
        if sign.speaker.pid is not None and sign.speaker.global_rank is not None:
            told[sign.speaker.pid].add(sign.speaker.global_rank)
    hosts = {sign.speaker.host for sign in signs if sign.speaker.host}
    return {pid: min(ranks) for pid, ranks in told.items() if len(ranks) == 1 and len(hosts) < 2}


def _take_stacks(left: LeftBehind, signs: Sequence[Sign], going_on: GoingOn) -> list[Sentence]:
    """Takes stacks that logs hold of ranks of which no file does, unless their job went on then.

    Returns which files hold stacks that somebody took, of ranks that nothing tells.
    """
    unknown, of_process = set[str](), _ranks_of_processes(signs)
    for sign in signs:
        stack, rank = sign.facts.get("stack"), sign.speaker.global_rank
        rank = of_process.get(sign.speaker.pid) if rank is None else rank
        if sign.kind != IN_LOG or not isinstance(stack, ThreadStack):
            continue
        if going_on.has_passed(sign.quote.source, sign.quote.line):
            continue
        if rank is not None:
            left.stacks.setdefault(rank, stack)
        elif not is_by_python(sign.quote.text):
            unknown.add(sign.quote.source)
    return [
        said(
            "{name} holds the stacks of a process, and nothing tells its rank: put them into a "
            "file named after it, as stack_rank_3.txt",
            name=name,
        )
        for name in sorted(unknown)
    ]


def _own_log(log: LogFile) -> Iterator[Sign]:
    """Yields that a log of one rank is there, whatever it tells."""
    speaker = file_speaker(str(log.path))
    if log.num_lines and speaker.rank is not None:
        yield Sign("own_log", Quote(log.name, 1, ""), speaker)


class _Heard:
    """Listens to the lines of one log for code in tracebacks, and for stacks."""

    def __init__(self, code: SourceLines) -> None:
        self.stacks = StacksInLog()
        self._code = code

    def lines(self, log: LogFile) -> Iterator[LogLine]:
        for line in log.lines():
            self._code.read(line)
            self.stacks.read(line)
            yield line


def _names(files: Sequence[Path]) -> dict[Path, str]:
    """Returns for each file the shortest end of its path that no other file has.

    The folders that tell its rank, or the start of the job that it is of, are part of it.
    """
    found: dict[Path, str] = {}
    ends = {file: _least_parts(file) for file in files}
    while ends:
        names = {file: "/".join(file.parts[-count:]) for file, count in ends.items()}
        times = Counter((*found.values(), *names.values()))
        found |= {
            file: name
            for file, name in names.items()
            if times[name] == 1 or ends[file] >= len(file.parts)
        }
        ends = {file: count + 1 for file, count in ends.items() if file not in found}
    return found


def _least_parts(file: Path) -> int:
    return 3 if is_of_attempt(file) else 1 + ("rank" in file.parent.name)


def files_of(place: Path) -> list[Path]:
    """Returns the files of a place; of a folder not those that are hidden, such as half written.

    Links to folders are followed; a folder that several ways lead to is read once.
    """
    if not place.is_dir():
        return [place]
    seen, found = set[Path](), list[Path]()
    for above, folders, names in os.walk(place, followlinks=True):
        real = Path(above).resolve()
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders.sort(key=lambda name: (Path(above, name).is_symlink(), name))
        found += [Path(above, name) for name in names if not name.startswith(".")]
    return sorted(each for each in found if each.is_file())


def _restarts(name: str, signs: Sequence[Sign]) -> list[Sentence]:
    """Returns that a job was started anew in the middle of a log; its ranks may be others then."""
    lines = sorted({sign.quote.line for sign in signs if sign.kind == "restarted"})
    if not lines:
        return []
    return [
        said(
            "{name} holds {count} starts of the job, the last from line {line} on: what stands "
            "before that is of an earlier start, where numbers of ranks may have meant others",
            name=name,
            count=len(lines) + 1,
            line=lines[-1],
        )
    ]


def _empty(names: Sequence[str]) -> list[Sentence]:
    if len(names) < 2:
        return [said("{name} is empty", name=name) for name in names]
    return [
        said("{count} files are empty: {names}", count=len(names), names=listed(names, limit=4))
    ]


def _odd(log: LogFile) -> list[Sentence]:
    if log.is_sealed:
        return [
            said(
                "{name} is packed by zstd, which Python unpacks from 3.14 on; unpack it (zstd -d) "
                "and give what comes out",
                name=log.name,
            )
        ]
    if log.is_archive:
        return [
            said(
                "{name} is an archive; unpack it (unzip, tar -xf) and give the folder",
                name=log.name,
            )
        ]
    if log.is_binary:
        return [said("{name} holds no text, so it was not read as a log", name=log.name)]
    if log.is_damaged:
        return [
            said("{name} breaks off within its packing; what came before was read", name=log.name)
        ]
    return []
