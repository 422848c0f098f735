"""Paddle's two timeline files, written from the worker logs as its own script would mean to.

    pipeline_profile.json            tracks GPU0, GPU1(machine:1), Step: names as thread ids
    pipeline_profile_perfetto.json   the same events, numbered threads and their names

Events, names, categories, colours and times are the script's (paddlepaddle 3.3.1,
profiler_helper_static.py), so what reads its files reads these. Different on purpose:

* jobs such as ``backward(chunk0)`` are kept, and they and ``backward1`` take the colour of
  their kind;
* jobs that intersect stand on tracks of their own: as begin and end of one track they would
  come out with wrong lengths;
* a machine is called what its folder is called, and ``--devices 2,3`` names threads GPU:2, GPU:3.
"""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from serried.trace.formats.paddle.log import DeviceLog, PaddleLogs, TimedJob
from serried.trace.formats.paddle.trace import action_of
from serried.whole_file import whole_file

CHROME, PERFETTO = "pipeline_profile.json", "pipeline_profile_perfetto.json"
"""The names that Paddle's script gives its two files."""

_COLOURS = {
    "forward": "thread_state_running",
    "backward": "rail_idle",
    "optimizer": "rail_response",
    "default": "thread_state_unknown",
}
_STEP_THREAD = 2333
_LEFT_OUT = frozenset({"recv_forward", "send_backward"})
"""What the script leaves out; ``recv_forward0`` of virtual stages it keeps."""
_MESSAGES = ("recv_", "send_")
_OUTSIDE_A_STEP = "default"
_NEVER = 2**63

Event = dict[str, Any]


def write_paddle_timelines(logs: PaddleLogs, folder: Path) -> tuple[Path, Path]:
    """Writes both files into ``folder``, each whole or not at all, and returns their paths.

    Raises InputError when they cannot be written.
    """
    tracks = _tracks(logs)

    def chrome() -> Iterator[Event]:
        """Yields all events; a long log has millions, so they are made anew for each file."""
        for name, jobs in tracks:
            yield from _events(jobs, name)
        yield from _step_events(logs)

    # The script numbers Step 2333 and then the devices, machine by machine.
    threads = {
        name: _STEP_THREAD + 1 + at for at, name in enumerate(_numbered_tracks(logs, tracks))
    }
    threads["Step"] = _STEP_THREAD
    numbered = ({**event, "tid": threads[event["tid"]]} for event in chrome())
    names = [_thread_name(_STEP_THREAD, "STEP")]
    names += [_thread_name(threads[name], _titled(name)) for name in threads if name != "Step"]
    return (
        _write(folder / CHROME, chrome()),
        _write(folder / PERFETTO, chain(numbered, names)),
    )


# ----------------------------------------------------------------------- tracks


def num_left_out(logs: PaddleLogs) -> int:
    """Returns how many jobs the timelines leave out, as the script does."""
    return sum(job.type in _LEFT_OUT for log in logs.devices for job in log.jobs)


def _shown(log: DeviceLog) -> Iterator[TimedJob]:
    return (job for job in log.jobs if job.type not in _LEFT_OUT)


def _tracks(logs: PaddleLogs) -> list[tuple[str, list[TimedJob]]]:
    """Returns the tracks by name: every device's own first, in order, then the further ones."""
    own: list[tuple[str, list[TimedJob]]] = []
    further: list[tuple[str, list[TimedJob]]] = []
    labels = _labels(logs)
    for log in logs.devices:
        name = _track_name(log, labels)
        lanes = _lanes(list(_shown(log))) or [[]]
        messages: list[TimedJob] = []
        if len(lanes) > 1:  # computations first: a wait for a message may lie around them
            messages = [job for job in _shown(log) if job.type.startswith(_MESSAGES)]
            lanes = _lanes([job for job in _shown(log) if not job.type.startswith(_MESSAGES)])
        own.append((name, lanes[0] if lanes else []))
        further += [(f"{name} ({n})", lane) for n, lane in enumerate(lanes[1:], 2)]
        further += [(f"{name}{_beside(n)}", lane) for n, lane in enumerate(_lanes(messages))]
    return [*own, *further]


def _numbered_tracks(logs: PaddleLogs, tracks: Sequence[tuple[str, list[TimedJob]]]) -> list[str]:
    """Returns the names of tracks in the order of their numbers: machines, then devices."""
    labels = _labels(logs)
    machines = {name: number for number, name in enumerate(logs.machines)}
    devices = sorted(logs.devices, key=lambda log: (machines[log.machine], log.device))
    own = [_track_name(log, labels) for log in devices]
    return [*own, *(name for name, _ in tracks[len(own) :])]


def _beside(lane: int) -> str:
    return f" messages ({lane + 1})" if lane else " messages"


def _lanes(jobs: Sequence[TimedJob]) -> list[list[TimedJob]]:
    """Returns ``jobs`` on as few lanes as keep those of one lane from intersecting.

    >>> a, b = TimedJob("forward", 0, 0, 0, 0, 10), TimedJob("forward", 1, 1, 0, 5, 15)
    >>> [len(lane) for lane in _lanes([a, b])]
    [1, 1]
    """
    lanes: list[list[TimedJob]] = []
    free_at: list[tuple[int, int]] = []
    for job in sorted(jobs, key=lambda job: (job.start_ns, job.end_ns)):
        # The lane that is free first is asked: where it is still busy, all are.
        if free_at and free_at[0][0] <= job.start_ns:
            lane = heapq.heappop(free_at)[1]
        else:
            lane = len(lanes)
            lanes.append([])
        lanes[lane].append(job)
        heapq.heappush(free_at, (job.end_ns, lane))
    return sorted(lanes, key=len, reverse=True)


def _labels(logs: PaddleLogs) -> dict[str, str]:
    """Returns the name of each machine without the word machine, where that tells them apart."""
    # machine0 is shown as 0. Beside machine_0, which would be 0 too, both keep their whole names.
    short = {name: re.sub(r"^machine[_-]?", "", name) or name for name in logs.machines}
    return short if len(set(short.values())) == len(short) else {name: name for name in short}


def _track_name(log: DeviceLog, labels: Mapping[str, str]) -> str:
    """Returns what the script calls a device: ``GPU0`` or ``GPU0(machine:1)``."""
    machine = f"(machine:{labels[log.machine]})" if log.machine else ""
    return f"GPU{log.device}{machine}"


def _titled(track: str) -> str:
    """Returns a track's name as the script shows it in Perfetto: ``GPU:0``."""
    return re.sub(r"^GPU", "GPU:", track)


# ----------------------------------------------------------------------- events


def _events(jobs: Sequence[TimedJob], track: str) -> Iterator[Event]:
    for job in jobs:
        named = {"name": f"{job.type}_{job.number}", "cat": job.type}
        colour = _COLOURS.get(_plain(job.type))
        coloured = {"cname": colour} if colour else {}
        for phase, at_ns in (("B", job.start_ns), ("E", job.end_ns)):
            place = {"ph": phase, "ts": at_ns / 1000, "pid": 0, "tid": track}
            yield {**named, **place, **coloured}


def _plain(type_: str) -> str:
    """Returns the kind of a job type: ``backward`` for ``backward(chunk1)`` and ``backward0``."""
    return re.sub(r"(_[bw])?\d*(\(chunk\d+\))?$", "", type_) if action_of(type_) else type_


def _step_events(logs: PaddleLogs) -> Iterator[Event]:
    """Yields a slice per step: from the first start that is of it to the last end of all.

    It begins after the step before. What of ``default`` comes before it is of none.
    """
    windows: dict[int, tuple[int, int]] = {}
    for log in logs.devices:
        for job in _shown(log):
            # A job outside every step may make a step longer but begins none: a step that has only
            # such jobs keeps _NEVER, and is dropped below.
            begins = _NEVER if job.type == _OUTSIDE_A_STEP else job.start_ns
            start, end = windows.get(job.step, (begins, job.end_ns))
            windows[job.step] = min(start, begins), max(end, job.end_ns)
    windows = {step: each for step, each in windows.items() if each[0] < _NEVER}
    before = 0
    for step, (start, end) in sorted(windows.items()):
        for phase, at_ns in (("B", max(start, before)), ("E", end)):
            event = {"name": f"step{step}", "cat": "step", "ph": phase, "ts": at_ns / 1000}
            yield {**event, "pid": 0, "tid": "Step", "cname": "thread_state_unknown"}
        before = end


def _thread_name(thread: int, name: str) -> Event:
    event = {"args": {"name": name}, "cat": "__metadata", "name": "thread_name", "ph": "M"}
    return {**event, "pid": 0, "tid": thread, "ts": 0}


def _write(path: Path, events: Iterable[Event]) -> Path:
    with whole_file(path) as file:
        file.write(b'{"traceEvents": [')
        file.writelines(
            f"{', ' if at else ''}{json.dumps(each)}".encode() for at, each in enumerate(events)
        )
        file.write(b"]}")
    return path
