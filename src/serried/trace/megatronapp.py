"""MegatronApp's aggregated timeline: Chrome events of forwards and backwards by chunk.

    {"name": "forward", "ph": "E", "ts": 9316, "pid": 1,
     "args": {"iteration": 10, "microbatch": 0, "model_chunk": 0, "pp_rank": 1}}

``pid`` is the rank; an event pair's numbers stand on its end. Stage = chunk x pp + pp_rank.
Every rank's iteration begins at 0 in these files (their alignment is switched off), so clocks
of ranks can be off by as much as their iterations began apart.

Source: OpenSQZ/MegatronApp 99c64da, scripts/aggregate.py and profiling/.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from serried.errors import InputError
from serried.span import ActionKind
from serried.trace.event_file import Event, EventFile, nanoseconds, whole
from serried.trace.foreign import (
    Row,
    foreign_trace,
    one_after_another,
    pipelines,
    spans_of,
    with_peers,
)
from serried.trace.merged import Trace

_KINDS = {"forward": ActionKind.F, "backward": ActionKind.B}


def is_megatronapp(file: EventFile) -> bool:
    """Tells whether ``file`` was written by MegatronApp."""
    return any("model_chunk" in _arguments(each) for each in file.events)


def megatronapp_trace(files: Sequence[EventFile], sizes: Mapping[str, int] | None = None) -> Trace:
    """Returns the Trace of MegatronApp's timeline; several files are parts of one run.

    Raises InputError when no pair of events is a forward or a backward.
    """
    found = [each for file in files for each in _computations(file)]
    if not found:
        raise InputError("{path} holds no forward and no backward", path=files[0].path)
    num_stages = 1 + max(pp_rank for *_, pp_rank, _chunk in found)
    rows = [
        Row(rank, chunk * num_stages + pp_rank, kind, microbatch, step, start, end)
        for rank, kind, microbatch, step, start, end, pp_rank, chunk in found
    ]
    world_size = 1 + max(row.rank for row in rows)
    layout = pipelines(rows, world_size, sizes)
    spans = one_after_another(spans_of(with_peers(rows, layout)))
    return foreign_trace(files[0].path.stem, layout, {"": range(world_size)}, spans)


Computation = tuple[int, ActionKind, int, int, int, int, int, int]
"""Rank, kind, microbatch, step, start, end, pp_rank, chunk."""


def _computations(file: EventFile) -> list[Computation]:
    begun: dict[tuple[int, str, ActionKind], list[int]] = {}
    found: list[Computation] = []
    for event in file.events:
        kind, at = _KINDS.get(str(event.get("name"))), nanoseconds(event.get("ts"))
        rank = whole(event.get("pid"))
        if kind is None or at is None or rank is None or rank < 0:
            continue
        key = (rank, str(event.get("tid")), kind)
        if event.get("ph") == "B":
            begun.setdefault(key, []).append(at)
        elif event.get("ph") == "E" and begun.get(key):
            start = begun[key].pop()
            numbers = [
                whole(_arguments(event).get(name))
                for name in ("microbatch", "iteration", "pp_rank", "model_chunk")
            ]
            microbatch, step, pp_rank, chunk = (-1 if each is None else each for each in numbers)
            if at >= start and min(microbatch, pp_rank, chunk) >= 0:
                found.append((rank, kind, microbatch, max(step, 0), start, at, pp_rank, chunk))
    return found


def _arguments(event: Event) -> Event:
    arguments = event.get("args")
    return arguments if isinstance(arguments, dict) else {}
