"""Chrome JSON that serried itself wrote, read back as the trace that it was.

    {"ph": "X", "pid": 3, "ts": 12.345, "dur": 9.000, "name": "forward",        a span of rank 3
     "args": {"action": "2F5", "step": 1, "stage": 2, "microbatch": 5}}
     "args": {"action": "2ALL_REDUCE", "bytes": 4096, "group": "0, 1", "group_number": 0, …}
    "metadata": {"run": …, "job": …, "hosts": …, "clocks": …}                   all the rest

Tracks, arrows and colours are left out: they follow from the spans. What an operation waited for
(StragglerAnalysis' tables) is not in such a file; the store keeps it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from serried.action import ActionKind, Spans
from serried.errors import InputError, listed
from serried.trace.formats.event_file import Event, TraceEventFile, nanoseconds, whole
from serried.trace.formats.foreign import ForeignSpan, spans_of
from serried.trace.model.trace import Trace
from serried.trace.store.about import trace_of

_KIND = re.compile(r"-?\d*([A-Z][A-Z_]*)-?\d*")


def of_own(event: Event) -> bool:
    """Tells whether an event may be a span of serried's."""
    args = event.get("args")
    return event.get("ph") == "X" and isinstance(args, dict) and "action" in args and "step" in args


def is_own(file: TraceEventFile) -> bool:
    """Tells whether serried wrote ``file``, also one that ends before it says so."""
    about = file.about.get("metadata")
    is_whole = isinstance(about, dict) and {"run", "job", "hosts"} <= about.keys()
    return is_whole or (file.cut_off and any(map(of_own, file.events[:8])))


def own_trace(files: Sequence[TraceEventFile], sizes: Mapping[str, int] | None = None) -> Trace:
    """Returns the trace of the one file that a run was written into.

    Raises InputError for several files, for sizes, which it says itself, and for a damaged one.
    """
    if len(files) > 1:
        raise InputError(
            "{paths} each hold a whole run; give one of them",
            paths=listed((file.path for file in files), limit=3, last="and"),
        )
    file = files[0]
    if sizes:
        raise InputError(
            "{path} says its sizes itself; leave out --pp, --tp and --dp", path=file.path
        )
    if not isinstance(file.about.get("metadata"), dict):
        raise InputError(
            "{path} ends before it says which run it is of; merge the recordings again",
            path=file.path,
        )
    about = {
        "clocks": [],
        "warnings": [],
        "names": [],
        "waits_inside": False,
        "base_ns": file.about.get("baseTimeNanoseconds", 0),
        **file.about["metadata"],
    }
    try:
        names = {name: at for at, name in enumerate(about["names"])}
        rows = [row for event in file.events if (row := _row(event, names)) is not None]
        spans = spans_of(rows)
        present: list[int] = np.unique(spans.rank).tolist()
        told = {"ranks": present, **about, "num_spans": len(spans)}
        return trace_of(told, Spans(**spans.columns()))
    except (KeyError, TypeError, ValueError, AttributeError, UnicodeEncodeError) as error:
        raise InputError(
            "{path} is damaged: what it says of its run does not hold together", path=file.path
        ) from error


def _row(event: Event, names: Mapping[Any, int]) -> ForeignSpan | None:
    """Returns the span of an event; None for one that is damaged."""
    args = event["args"]
    match = _KIND.fullmatch(str(args["action"]))
    start, length = nanoseconds(event.get("ts")), nanoseconds(event.get("dur"))
    rank, step = whole(event.get("pid")), whole(args["step"])
    if match is None or match[1] not in ActionKind.__members__:
        return None
    if start is None or length is None or rank is None or step is None:
        return None
    kind = ActionKind[match[1]]
    stage, microbatch, peer, group = (
        _or_none(whole(args.get(key))) for key in ("stage", "microbatch", "peer", "group_number")
    )
    # Bytes may take more than the 32 bits of a count.
    found = args.get("bytes")
    size = found if isinstance(found, int) and 0 <= found < 2**62 else -1
    # A user's own span has the place of its name where others have their peer.
    if kind is ActionKind.SPAN and event.get("cat") == "named":
        peer = names.get(event.get("name"), -1)
    return ForeignSpan(
        rank, stage, kind, microbatch, step, start, start + length, peer, size, group
    )


def _or_none(number: int | None) -> int:
    return -1 if number is None else number
