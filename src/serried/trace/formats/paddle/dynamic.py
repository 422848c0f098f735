"""Paddle's dynamic-graph records: pipeline stages timed with the device synchronised.

    profile_record_tmp_file_for_rank_0    {"name": "F0", "cat": "pipeline timeline", "ph": "B",
    pipeline_profile.json (all joined)     "pid": 0, "tid": 1, "ts": 1700000000000, …}

``tid`` is the stage plus one; names are ``F3`` and ``B3``, with virtual stages ``F3_VP1``. A
rank's number stands in its file's name alone. In the joined file ranks follow one another by
name (0, 1, 10, 2 …), and a new one begins where the stage changes or time goes back.
Times are whole **milliseconds** though the format means microseconds, so nothing shorter can
be seen; and every stamp waited for the device, which takes away what would have overlapped.

Source: paddlepaddle 3.3.1, distributed/fleet/meta_parallel/pipeline_parallel.py and
profiler_helper.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from serried.action import ActionKind
from serried.errors import InputError, listed
from serried.limits import RECORD_LINE, TENSOR_RANKS
from serried.mesh import Layout
from serried.trace.formats.event_file import Event, TraceEventFile, whole
from serried.trace.formats.foreign import ForeignSpan, foreign_trace, spans_of, with_peers
from serried.trace.model.admission import require_within
from serried.trace.model.laid_out import laid_out
from serried.trace.model.recorded_order import pipeline_ranks
from serried.trace.model.trace import Trace
from serried.user_file import opened

RECORDS = "profile_record_tmp_file_for_rank_*"
"""The name of a rank's own file, one JSON object a line."""

_CATEGORIES = ("pipeline timeline", "virtual pipeline timeline")
_RANK = re.compile(r"profile_record_tmp_file_for_rank_(\d{1,7})")
# "F3", and "B3_VP1" of the second virtual stage.
_NAME = re.compile(r"([FB])(\d{1,9})(?:_VP(\d{1,4}))?")


def of_paddle_dynamic(event: Event) -> bool:
    """Tells whether an event is a record of Paddle's dynamic graph."""
    return event.get("cat") in _CATEGORIES


def is_paddle_dynamic(file: TraceEventFile) -> bool:
    """Tells whether ``file`` holds Paddle's dynamic-graph records."""
    return any(map(of_paddle_dynamic, file.events))


def read_records(path: Path) -> TraceEventFile:
    """Reads a rank's own file; lines that are no record are left out."""
    with opened(path) as file:
        lines = iter(lambda: file.readline(RECORD_LINE.most), b"")
        events = [event for line in lines if (event := _record(line)) is not None]
    return TraceEventFile(path, events, {}, cut_off=False)


def _record(line: bytes) -> Event | None:
    try:
        event = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def paddle_dynamic_trace(
    files: Sequence[TraceEventFile], sizes: Mapping[str, int] | None = None
) -> Trace:
    """Returns the Trace of the records; ``sizes`` say how ranks stand, else their stages do.

    Raises InputError when no pair of records is a forward or a backward, when two files are of
    one rank, and when the stages do not stand as Paddle places them.
    """
    found = {rank: _pairs(events) for rank, events in _ranked(files).items()}
    stages = {rank: pairs[0][0] for rank, pairs in found.items() if pairs}
    if not stages:
        raise InputError("{path} holds no forward and no backward", path=files[0].path)
    layout = _layout(stages, sizes)
    num_stages = layout.sizes.get("pp", 1)
    rows = []
    for rank, pairs in found.items():
        seen: dict[tuple[ActionKind, int, int], int] = {}
        for stage, kind, microbatch, chunk, start, end in sorted(pairs, key=lambda each: each[4]):
            # Records name no step: the second F3 of a chunk is of the second step.
            step = seen.get((kind, microbatch, chunk), 0)
            seen[kind, microbatch, chunk] = step + 1
            rows.append(
                ForeignSpan(rank, chunk * num_stages + stage, kind, microbatch, step, start, end)
            )
    spans = spans_of(with_peers(rows, layout))
    run = files[0].path.resolve().parent.name
    machines = {"": range(layout.world_size)}
    return foreign_trace(run, layout, machines, spans, resolution_ns=1_000_000)


def _ranked(files: Sequence[TraceEventFile]) -> dict[int, list[Event]]:
    """Returns the events of every rank: by the files' names, or the parts of a joined file."""
    named = {each.path: _RANK.fullmatch(each.path.name) for each in files}
    ranked: dict[int, list[Event]] = {}
    for file in files:
        match = named[file.path]
        parts = [file.events] if match else _parts(file.events)
        # The files were joined by name, so the parts are those of ranks 0, 1, 10, 2 …
        numbers = [int(match[1])] if match else sorted(range(len(parts)), key=str)
        for rank, part in zip(numbers, parts, strict=True):
            if rank in ranked:
                raise InputError(
                    "rank {rank} stands twice, the second time in {path}; give the files of one "
                    "run, or the one that they were joined into",
                    rank=rank,
                    path=file.path,
                )
            ranked[rank] = part
    return ranked


def _parts(events: Sequence[Event]) -> list[list[Event]]:
    """Returns a joined file's events by rank, in the order in which they stand."""
    parts: list[list[Event]] = []
    before: tuple[object, int] | None = None
    for event in events:
        thread, at = event.get("tid"), event.get("ts")
        if not isinstance(at, int):
            continue
        # One rank's records have one thread and ascend in time. Two neighbours of one stage are
        # told apart by this: the second begins earlier than the first ended.
        if before is None or before[0] != thread or at < before[1]:
            parts.append([])
        before = thread, at
        parts[-1].append(event)
    return parts


def _layout(stages: Mapping[int, int], sizes: Mapping[str, int] | None) -> Layout:
    """Returns how ranks stand: by ``sizes``, else by their stages, as Paddle places them.

    In Paddle's order tensor parallel ranks are neighbours, then come stages, then replicas.
    """
    world_size = 1 + max(stages)
    require_within("rank", world_size - 1)
    if not sizes:
        pp = 1 + max(stages.values())
        most = min(world_size, TENSOR_RANKS.most)
        rank, stage = np.array([*stages.items()], dtype=np.int64).T
        # The least tp that puts every rank seen at its stage. Where none does it is 1, and the
        # check below names a rank that stands elsewhere.
        tp = next((tp for tp in range(1, most + 1) if (rank // tp % pp == stage).all()), 1)
        # The last ranks may lack their files: the world is filled up to whole replicas.
        world_size = -(-world_size // (pp * tp)) * pp * tp
        sizes = {"tp": tp, "pp": pp, "dp": world_size // (pp * tp)}
    layout = laid_out("paddle", world_size, sizes)
    place = {rank: at for row in pipeline_ranks(layout, world_size) for at, rank in enumerate(row)}
    wrong = next((rank for rank, stage in stages.items() if place[rank] != stage), None)
    if wrong is not None:
        raise InputError(
            "rank {rank} ran stage {stage} and not {place}, its stage in {sizes}; give the sizes "
            "that ran, by --tp, --pp and --dp",
            rank=wrong,
            stage=stages[wrong],
            place=place[wrong],
            sizes=listed(f"{axis} {size}" for axis, size in sizes.items()),
        )
    return layout


def _pairs(events: Sequence[Event]) -> list[tuple[int, ActionKind, int, int, int, int]]:
    """Returns stage, kind, microbatch, chunk, start and end of each begin with its end."""
    begun: dict[tuple[int, str], int] = {}
    found = []
    for event in events:
        match = _NAME.fullmatch(str(event.get("name")))
        thread, at = whole(event.get("tid")), event.get("ts")
        if not match or thread is None or thread < 1 or not isinstance(at, int):
            continue
        # In nanoseconds it would not fit 64 bits, which end at 9.2e12 milliseconds.
        if abs(at) > 9e12:
            continue
        at_ns = at * 1_000_000
        key = (thread, match[0])
        if event.get("ph") == "B":
            begun[key] = at_ns
        # An end without a begin is of no pair: what stands in for its begin is later than it.
        elif event.get("ph") == "E" and begun.get(key, at_ns + 1) <= at_ns:
            kind = ActionKind.F if match[1] == "F" else ActionKind.B
            numbers = int(match[2]), int(match[3] or 0)
            found.append((thread - 1, kind, *numbers, begun.pop(key), at_ns))
    return found
