"""Words of traces that several texts share, untranslated, and names cut to fit a line."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from rich.cells import cell_len

from serried.trace.measure.verdict import host_of
from serried.trace.model.trace import Trace
from serried.views.sentences import tell

WIDTH = 100
"""Columns of a terminal that every answer is written for."""

CAUSES = {
    "warm_up": "warm-up",
    "exchange": "exchange",
    "late_peer": "late peer",
    "transfer": "transfer",
    "send": "send",
    "reduce": "reduce",
    "other": "nothing recorded",
    "cool_down": "cool-down",
}
"""What causes of idle time are called."""
OF_A_STEP = {
    "warm_up": "before the first computation",
    "cool_down": "after the last computation",
}
"""What some causes are called where there is no pipeline to fill and to drain."""
LONGER = {
    "forward": "forward",
    "backward": "backward",
    "weight": "weight gradient",
    "optimizer": "optimizer",
    "data": "loading data",
    "before": "before its first span",
    "gaps": "between its spans",
}
"""What a slow rank spends more time on."""
_HOST_CELLS = 16
_NAME_CELLS = 60
_STAGES = 3


def unmeasured(trace: Trace, lang: str) -> str:
    """Returns why there is no share of idle time."""
    if trace.has_computations:
        return tell(
            "bubble: not measured, for no step was finished by every rank"
            if trace.has_pipeline
            else "idle time: not measured, for no step was finished by every rank",
            lang,
        )
    return tell(
        "bubble: not measured, for no forward or backward was recorded"
        if trace.has_pipeline
        else "idle time: not measured, for no forward or backward was recorded",
        lang,
    )


def host_text(trace: Trace, rank: int) -> str:
    """Returns the name of a rank's host, cut where it is long; its node where it has no name."""
    name = host_of(trace, rank) or f"node {trace.placement.node(rank)}"
    return cut(name, _HOST_CELLS)


def cut(text: str, cells: int = _NAME_CELLS) -> str:
    """Returns ``text`` in as many cells at most, an ellipsis for what is cut off.

    >>> cut("gpu-a3-highgpu-8g-000017.internal", 20)
    'gpu-a3-highgpu-8g-0…'
    """
    if cell_len(text) <= cells:
        return text
    while cell_len(text) >= cells:
        text = text[:-1]
    return f"{text}…"


def stages_text(stages: Sequence[int]) -> str:
    """Returns stages of one rank: all of a few, the first of many.

    >>> stages_text([3]), stages_text([0, 4, 8, 12, 16])
    ('3', '0 4 8 …')
    """
    shown = [*map(str, stages[:_STAGES]), *(["…"] if len(stages) > _STAGES else [])]
    return " ".join(shown)


def look_into(places: Sequence[object]) -> str:
    """Returns the command that opens the timeline of what lies in ``places``; none is ``DIR``.

    >>> look_into(["runs/a"]), look_into(["node0", "node1"])
    ('serried serve runs/a', 'serried trace merge node0 node1 -o run.store')
    """
    # The page takes several places for several runs; folders of one are merged into a store first.
    return f"serried serve {given(places)}" if len(places) < 2 else merging(places)


def merging(places: Sequence[object]) -> str:
    """Returns the command that makes one store of ``places``."""
    return f"serried trace merge {given(places)} -o run.store"


def given(places: Sequence[object]) -> str:
    """Returns places as words of a command, ``DIR`` for none."""
    return shlex.join(map(str, places)) or "DIR"


def next_line(
    command: Callable[[Sequence[object]], str], places: Sequence[object], lang: str
) -> str:
    """Returns what to run next on ``places``, or on DIR where a line has no room."""
    line = tell("next: {command}", lang, command=command(places))
    if cell_len(line) <= WIDTH:
        return line
    short = ["DIR"] * min(len(places), 2)
    return tell("next: {command}", lang, command=command(short))
