"""Paddle's worker logs: the jobs that its static-graph executor timed, one line each, in steps.

    I1020 09:15:07.265326 22317 standalone_executor.cc:217] Profiler Info: Job (3), type = forward,
        micro_batch_id = 2, job_start_time = 1697793307213.760986, job_end_time = 1697793307254.0061

Times are milliseconds since 1970 with six decimals, taken on the compute stream. A new step
begins when the job that began the file (``default`` apart) comes again with microbatch 0; the
line ``Schedule Profiler start at step S and end at step E`` says which step is the first, for
logs without it that of another device. Lines are found by a pattern without a leading wildcard,
so a log of any length and noise is read in linear time.

Source: paddlepaddle 3.3.1, standalone_executor.cc and
distributed/auto_parallel/static/profiler_helper_static.py (whose own pattern loses
``backward(chunk0)`` and takes seconds for a megabyte of long lines).
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from serried.errors import InputError
from serried.finding import Finding, said
from serried.trace.formats.paddle.folder import (
    copied_machines,
    device_numbers,
    log_folders,
    logs_in,
)
from serried.trace.formats.two_runs import of_two_runs

_JOB = re.compile(
    rb"Profiler Info: Job \((?P<number>\d{1,9})\), type = (?P<type>[^,\n]{1,64}), "
    rb"micro_batch_id = (?P<microbatch>\d{1,9}), "
    rb"job_start_time = (?P<start>\d{1,16}\.\d{1,9}), job_end_time = (?P<end>\d{1,16}\.\d{1,9})"
    rb"|Schedule Profiler start at step (?P<first>\d{1,9}) and end at step (?P<last>\d{1,9})"
)
_OUTSIDE_A_STEP = "default"
"""The type of jobs that begin no step."""


@dataclass(frozen=True)
class TimedJob:
    """Times one job: what the executor calls it, and when it ran by its machine's clock."""

    type: str
    number: int
    """The executor's own count, a job index or a microbatch by version; not to rely on."""
    microbatch: int
    step: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class DeviceLog:
    """Holds what one ``workerlog.N`` gave: its machine's name, its device, its jobs in order."""

    machine: str
    device: int
    jobs: tuple[TimedJob, ...]
    first_step: int | None
    """The step that its heading begins with; None for a log without one."""


@dataclass(frozen=True)
class PaddleLogs:
    """Holds the logs of a job by machine and device, and what is to be said of them."""

    folder: Path
    devices: tuple[DeviceLog, ...]
    findings: tuple[Finding, ...]
    places: tuple[tuple[str, int], ...]
    """Machine and device of every log there should be, in order: those of missing logs too."""

    @property
    def machines(self) -> tuple[str, ...]:
        """Names the machines in order; one without a name where the logs lie in the folder."""
        return tuple(dict.fromkeys(each.machine for each in self.devices))


def read_paddle_logs(
    folder: Path, devices: tuple[int, ...] | None = None, *, multi_machine: bool | None = None
) -> PaddleLogs:
    """Reads the worker logs of ``folder``, or of the ``machine*`` folders in it.

    ``devices`` are those to read, all by default; a device without a log is reported, not
    fatal. ``multi_machine`` says where the logs lie; by default the folder is looked at.

    Raises InputError when there is no log, or none that holds a timed job.
    """
    folders = log_folders(folder, multi_machine)
    paths = {name: logs_in(place) for name, place in folders.items()}
    there = {device for logs in paths.values() for device in logs}
    if not devices and not there:
        raise _no_log(folder)
    wanted = devices or device_numbers(there)
    copies = copied_machines(paths)
    findings = [_copied(folders[name], folders[other]) for name, other in copies.items()]
    # A place whose log is missing stays in the list, for ranks are counted over it.
    places = [(name, each) for name in paths if name not in copies for each in wanted]
    found: list[DeviceLog] = []
    for machine, device in places:
        if device not in paths[machine]:
            findings.append(_missing(folders[machine], device))
            continue
        log, said_of_it = _read(paths[machine][device], machine, device)
        found.append(log)
        findings += said_of_it
    if not any(each.jobs for each in found):
        raise InputError(
            "the worker logs of {folder} hold no timed job; run with "
            "pipeline.job_schedule_profiler_start and _stop set, which prints a line "
            "'Profiler Info: Job …' for each",
            folder=folder,
        )
    findings += [_empty(each, folders) for each in found if not each.jobs]
    return PaddleLogs(folder, _numbered(found), tuple(findings), tuple(places))


def _numbered(logs: Sequence[DeviceLog]) -> tuple[DeviceLog, ...]:
    """Returns the logs with steps counted from where another's heading says, if theirs does not."""
    # A log without a heading counted its steps from 0.
    first = next((log.first_step for log in logs if log.first_step is not None), 0)
    return tuple(
        log
        if log.first_step is not None or not first
        else replace(log, jobs=tuple(replace(job, step=first + job.step) for job in log.jobs))
        for log in logs
    )


# ----------------------------------------------------------------------- one file


class _Steps:
    """Counts the steps of one file: a new one begins when its first job comes again.

    paddle.distributed.launch appends to the log that is there, so two runs come one after the
    other under headings that are alike. Each profiles no more steps than the heading says; where
    fewer come, the second may be the first one resumed.
    """

    def __init__(self) -> None:
        self.step = 0
        self.first: int | None = None
        self.second_run: tuple[int, int, int] | None = None
        """The heading that a second run begins with: its place, its first step, its end."""
        self._window: tuple[bytes, ...] = ()
        self._opener: str | None = None
        self._has_begun = False
        self._last_heading: int | None = None
        self._is_heading = False

    def enter(self, window: tuple[bytes, ...], place: int) -> None:
        """Takes the line at ``place`` that says which steps are profiled.

        Repeated ones change no number.
        """
        if window != self._window:
            self.step, self._window = int(window[0]), window
            self.first = self.step if self.first is None else self.first
            self._opener, self._has_begun, self._last_heading = None, False, None
        # The same heading again, behind jobs, may begin a second run; two in a row are one heading
        # that was printed twice.
        elif self._has_begun and not self._is_heading:
            self._last_heading = place
        self._is_heading = True

    def place(self, kind: str, microbatch: int) -> int:
        """Returns the step that the next job, of ``kind``, belongs to."""
        # The first job behind a heading, `default` apart, opens every step; its first coming is of
        # the step that is counted already.
        if self._opener is None and kind != _OUTSIDE_A_STEP:
            self._opener = kind
        self._is_heading = False
        if kind == self._opener and microbatch == 0:
            self.step += self._has_begun
            self._has_begun = True
            self._look_for_a_second_run()
        return self.step

    def _look_for_a_second_run(self) -> None:
        if self.second_run is None and self._last_heading is not None:
            first, end = map(int, self._window)
            if first < end <= self.step:
                self.second_run = (self._last_heading, first, end)


def _read(path: Path, machine: str, device: int) -> tuple[DeviceLog, list[Finding]]:
    """Returns one log, and what is to be said of it."""
    jobs: list[TimedJob] = []
    left_out = 0
    steps = _Steps()
    for match in _matches(path):
        if match["first"] is not None:
            steps.enter((match["first"], match["last"]), match.start())
            continue
        kind = match["type"].decode("utf-8", "replace").strip()
        microbatch = int(match["microbatch"])
        step = steps.place(kind, microbatch)
        start, end = _nanoseconds(match["start"]), _nanoseconds(match["end"])
        # A job of communication alone is not timed: it has 0, or times left over from another.
        if start == 0 or end < start:
            left_out += 1
        else:
            jobs.append(TimedJob(kind, int(match["number"]), microbatch, step, start, end))
    findings = [_untimed(path, left_out)] if left_out else []
    findings += [_appended(path, *steps.second_run)] if steps.second_run else []
    return DeviceLog(machine, device, tuple(jobs), steps.first), findings


def _matches(path: Path) -> Iterator[re.Match[bytes]]:
    """Yields the lines that matter; the file is mapped, not read whole."""
    try:
        with path.open("rb") as file:
            if not path.stat().st_size:
                return
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
                yield from _JOB.finditer(text)
    except OSError as error:
        raise InputError(
            "{path} cannot be read: {reason}", path=path, reason=error.strerror
        ) from error


def _nanoseconds(milliseconds: bytes) -> int:
    """Returns a time of the log in nanoseconds, exactly.

    >>> _nanoseconds(b"1697793307213.760986")
    1697793307213760986
    """
    whole, part = milliseconds.split(b".")
    return int(whole + part[:6].ljust(6, b"0"))


# ----------------------------------------------------------------------- what is said


def _no_log(folder: Path) -> InputError:
    return InputError(
        "{folder} holds no workerlog.N file; give the folder that paddle.distributed.launch "
        "wrote as --log_dir",
        folder=folder,
    )


def _missing(folder: Path, device: int) -> Finding:
    evidence = said("{folder} holds no workerlog.{device}", folder=folder, device=device)
    return Finding("missing", (evidence,))


def _copied(folder: Path, other: Path) -> Finding:
    evidence = said("{path} holds the same as {other}; counted once", path=folder, other=other)
    return Finding("copied", (evidence,))


def _untimed(path: Path, count: int) -> Finding:
    evidence = said(
        "{path} holds {count} jobs without a usable time (Paddle does not time jobs of "
        "communication alone); they are left out",
        path=path,
        count=count,
    )
    return Finding("untimed", (evidence,))


def _appended(path: Path, place: int, first: int, stop: int) -> Finding:
    evidence = said(
        "{path} holds two runs, or one that was started again: in line {line} 'start at step "
        "{first} and end at step {stop}' comes again, and the file holds more steps than "
        "those; they are numbered on",
        path=path,
        line=_line_at(path, place),
        first=first,
        stop=stop,
    )
    return of_two_runs(evidence)


def _line_at(path: Path, place: int) -> int:
    """Returns which line, counted from 1, the byte at ``place`` stands in."""
    line = 1
    with path.open("rb") as file:
        while place > 0 and (piece := file.read(min(place, 1 << 20))):
            line += piece.count(b"\n")
            place -= len(piece)
    return line


def _empty(log: DeviceLog, places: dict[str, Path]) -> Finding:
    path = places[log.machine] / f"workerlog.{log.device}"
    evidence = said("{path} holds no timed job", path=path)
    return Finding("missing", (evidence,))
