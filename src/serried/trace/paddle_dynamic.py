"""Paddle's dynamic-graph records: pipeline stages timed with the device synchronised.

    profile_record_tmp_file_for_rank_0    {"name": "F0", "cat": "pipeline timeline", "ph": "B",
    pipeline_profile.json (all joined)     "pid": 0, "tid": 1, "ts": 1700000000000, …}

``tid`` is the stage plus one; names are ``F3`` and ``B3``, with virtual stages ``F3_VP1``.
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

from serried.errors import InputError
from serried.span import ActionKind
from serried.trace.event_file import Event, EventFile, whole
from serried.trace.foreign import Row, foreign_trace, pipelines, spans_of, with_peers
from serried.trace.merge import Trace

RECORDS = "profile_record_tmp_file_for_rank_*"
"""The name of a rank's own file, one JSON object a line."""

_CATEGORIES = ("pipeline timeline", "virtual pipeline timeline")
_NAME = re.compile(r"([FB])(\d{1,9})(?:_VP(\d{1,4}))?")


def is_paddle_dynamic(file: EventFile) -> bool:
    """Tells whether ``file`` holds Paddle's dynamic-graph records."""
    return any(each.get("cat") in _CATEGORIES for each in file.events)


def read_records(path: Path) -> EventFile:
    """Reads a rank's own file; lines that are no record are left out."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise InputError(
            "{path} cannot be read: {reason}", path=path, reason=error.strerror
        ) from error
    events = [event for line in lines if (event := _record(line)) is not None]
    return EventFile(path, events, {}, cut_off=False)


def _record(line: str) -> Event | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def paddle_dynamic_trace(
    files: Sequence[EventFile], sizes: Mapping[str, int] | None = None
) -> Trace:
    """Returns the Trace of the records; a stage is a rank.

    Raises InputError when no pair of records is a forward or a backward.
    """
    found = [pair for file in files for pair in _pairs(file)]
    if not found:
        raise InputError("{path} holds no forward and no backward", path=files[0].path)
    num_stages = 1 + max(stage for stage, *_ in found)
    rows = []
    seen: dict[tuple[int, ActionKind, int, int], int] = {}
    for stage, kind, microbatch, chunk, start, end in sorted(found, key=lambda each: each[4]):
        step = seen.get((stage, kind, microbatch, chunk), 0)
        seen[stage, kind, microbatch, chunk] = step + 1
        rows.append(Row(stage, chunk * num_stages + stage, kind, microbatch, step, start, end))
    layout = pipelines(rows, num_stages, sizes)
    spans = spans_of(with_peers(rows, layout))
    run = files[0].path.resolve().parent.name
    return foreign_trace(run, layout, {"": range(num_stages)}, spans)


def _pairs(file: EventFile) -> list[tuple[int, ActionKind, int, int, int, int]]:
    """Returns stage, kind, microbatch, chunk, start and end of each begin with its end."""
    begun: dict[tuple[int, str], int] = {}
    found = []
    for event in file.events:
        match = _NAME.fullmatch(str(event.get("name")))
        thread, at = whole(event.get("tid")), event.get("ts")
        if not match or thread is None or thread < 1 or not isinstance(at, int):
            continue
        if abs(at) > 9e12:
            continue
        at_ns = at * 1_000_000
        key = (thread, match[0])
        if event.get("ph") == "B":
            begun[key] = at_ns
        elif event.get("ph") == "E" and begun.get(key, at_ns + 1) <= at_ns:
            kind = ActionKind.F if match[1] == "F" else ActionKind.B
            numbers = int(match[2]), int(match[3] or 0)
            found.append((thread - 1, kind, *numbers, begun.pop(key), at_ns))
    return found
