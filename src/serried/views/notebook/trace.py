"""A run as a notebook draws it: one step of it, a row a rank, and what its statistics tell."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE, ActionKind, Spans
from serried.trace.measure.analysis import analyse
from serried.trace.measure.statistics import Statistics
from serried.trace.model.trace import Trace
from serried.units import duration_text
from serried.views.colours import ACTIONS
from serried.views.drawing import PALE, Drawing, DrawnArea, DrawnWords
from serried.views.notebook.drawn import Drawn
from serried.views.sentences import tell
from serried.views.trace.page import stats_parts

MOST_BOXES = 6000
"""Spans that are drawn; the first ranks whose spans are no more."""
WIDTH, LEFT, ROW, BOX, TOP = 960, 70, 18, 15, 24


def trace_drawn(trace: Trace, lang: str = "en") -> Drawn:
    """Returns what is drawn of a run: the step in the middle of those that are complete."""
    found = analyse(trace)
    parts = stats_parts(trace, found, lang=lang, has_more=False)
    headline = parts[0] if isinstance(parts[0], str) else trace.run
    step = _step(trace, found.statistics)
    if step is None:
        return Drawn(headline, "", tuple(parts[1:]))
    spans = trace.spans.where(trace.spans.step == step)
    ranks = _ranks_drawn(spans)
    below = [*parts[1:]]
    if len(ranks) < len(trace.ranks):
        told = tell(
            "the first {shown:,} of {count:,} ranks are drawn; serried serve shows all",
            lang,
            shown=len(ranks),
            count=len(trace.ranks),
        )
        below.insert(0, told)
    return Drawn(
        headline,
        _picture(spans, ranks, step, lang).svg(),
        tuple(below),
        tuple((rank,) for rank in ranks),
    )


def _step(trace: Trace, stats: Statistics) -> int | None:
    """Returns a step that is like the others: past the warm-up, in the middle; None of none."""
    steps = [each.step for each in stats.steps[stats.num_warm_up :] or stats.steps]
    if steps:
        return steps[len(steps) // 2]
    return int(trace.spans.step.max()) if len(trace.spans) else None


def _ranks_drawn(spans: Spans) -> list[int]:
    ranks, counts = np.unique(spans.rank, return_counts=True)
    kept = int(np.searchsorted(np.cumsum(counts), MOST_BOXES, side="right"))
    return [int(rank) for rank in ranks[: max(1, kept)]]


def _picture(spans: Spans, ranks: list[int], step: int, lang: str) -> Drawing:
    begin, end = int(spans.start_ns.min()), int(spans.end_ns.max())
    scale = (WIDTH - LEFT - 8) / max(1, end - begin)
    title = tell("step {step}, {length}", lang, step=step, length=duration_text(end - begin))
    drawing = Drawing(WIDTH, TOP + ROW * len(ranks) + 34, title)
    drawing.add(DrawnWords(LEFT, 15, title, 12))
    order = _computing_last(spans)
    for row, rank in enumerate(ranks):
        y = TOP + ROW * row
        drawing.add(
            DrawnWords(LEFT - 8, y + 11, f"rank {rank}", 11, "end"),
            DrawnArea(LEFT, y, WIDTH - LEFT - 8, BOX, PALE, row=row),
        )
        for number in order[spans.rank[order] == rank].tolist():
            span = spans[number]
            drawing.add(
                DrawnArea(
                    LEFT + (span.start_ns - begin) * scale,
                    y,
                    max(0.3, span.duration_ns * scale),
                    BOX,
                    ACTIONS[span.action.kind],
                    row=row,
                    told=f"{span.action}, {duration_text(span.duration_ns)}",
                )
            )
    _legend(drawing, spans)
    return drawing


def _computing_last(spans: Spans) -> NDArray[np.int64]:
    """Returns the places of spans, those of computing last, so that they are drawn above others."""
    is_computing = np.isin(spans.kind, [kind.value for kind in COMPUTE])
    return np.argsort(is_computing, kind="stable")


def _legend(drawing: Drawing, spans: Spans) -> None:
    x, y = float(LEFT), drawing.height - 20
    for number in np.unique(spans.kind).tolist():
        kind = ActionKind(number)
        drawing.add(
            DrawnArea(x, y, 12, 12, ACTIONS[kind], edge=True),
            DrawnWords(x + 17, y + 10, kind.name, 11),
        )
        x += 36 + 8 * len(kind.name)
