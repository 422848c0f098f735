"""Admission: the one door through which the spans of every reader come into a Trace.

    rows in any order    ──>  by rank, then start, then end; those alike stand as they did
    numbers of a file    ──>  checked: ranks of the world, known kinds, times that a clock can show

Whatever wrote a file, and in whatever order: behind the door the spans of a rank stand together
and in time, so that everything else may cut, search and count by place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from serried.action import ActionKind, Spans
from serried.errors import InputError
from serried.limits import TRACE_MOMENT, TRACE_RANKS, TRACE_STAGES, TRACE_STEPS

_MOST = {
    **dict.fromkeys(("rank", "peer"), TRACE_RANKS.most - 1),
    **dict.fromkeys(("stage", "microbatch"), TRACE_STAGES.most),
    "step": TRACE_STEPS.most,
    "size_bytes": 2**62,
    "group": 2**31 - 1,
    **dict.fromkeys(("start_ns", "end_ns"), TRACE_MOMENT.most),
}
"""The largest number of each column."""

_COUNTED = ("stage", "microbatch", "peer", "size_bytes", "group")
"""Columns that hold -1 for what a span has none of, and nothing below."""


def admitted(spans: Spans, world_size: int) -> Spans:
    """Returns ``spans``, of a job of ``world_size`` ranks, by rank, start and end.

    Raises InputError for a span that no job has, as ``require_sound`` does.
    """
    require_sound(spans, world_size)
    return spans.in_order()


def require_sound(spans: Spans, world_size: int) -> None:
    """Raises InputError for a span that no job of ``world_size`` ranks has, naming its rank."""
    if not len(spans):
        return
    rank, kind = spans.rank, spans.kind
    # The rank comes first, for every other sentence names it.
    if (row := _first((rank < 0) | (rank >= world_size))) is not None:
        raise InputError(
            "a span is of rank {rank}, outside the job's {world} ranks; a number in the files is "
            "damaged",
            rank=int(rank[row]),
            world=world_size,
        )
    if (row := _first(~_is_known(kind))) is not None:
        raise InputError(
            "a span of rank {rank} is of kind {kind}, which is none; a number in the files is "
            "damaged, or a newer serried wrote them",
            rank=int(rank[row]),
            kind=int(kind[row]),
        )
    for name in _COUNTED:
        column = getattr(spans, name)
        if (row := _first((column < -1) | (column > _MOST[name]))) is not None:
            raise InputError(
                "a span of rank {rank} has {name} {number}; a number in the files is damaged",
                rank=int(rank[row]),
                name=name,
                number=int(column[row]),
            )
    _require_times(spans)


def require_within(name: str, number: float) -> None:
    """Raises InputError where ``number`` is beyond the limit of the column ``name``."""
    most = _MOST.get(name, np.inf)
    if not number <= most:
        raise InputError(
            "{name} {number} is beyond {most}, the most that a trace can hold; a number in the "
            "files is damaged",
            name=name,
            number=f"{number:.0f}",
            most=most,
        )


def _require_times(spans: Spans) -> None:
    start, end = spans.start_ns, spans.end_ns
    require_within("start_ns", max(abs(int(start.min())), abs(int(start.max()))))
    require_within("end_ns", max(abs(int(end.min())), abs(int(end.max()))))
    if (row := _first(end < start)) is not None:
        raise InputError(
            "a span of rank {rank} ends {ns} ns before it begins; a number in the files is damaged",
            rank=int(spans.rank[row]),
            ns=int(start[row] - end[row]),
        )


def _first(is_wrong: NDArray[np.bool_]) -> int | None:
    row = int(is_wrong.argmax())
    return row if is_wrong[row] else None


_KNOWN = np.isin(np.arange(max(ActionKind) + 1), list(ActionKind))


def _is_known(kind: NDArray[np.int32]) -> NDArray[np.bool_]:
    inside = (kind >= 0) & (kind < len(_KNOWN))
    return np.asarray(inside & _KNOWN[np.where(inside, kind, 0)], dtype=np.bool_)
