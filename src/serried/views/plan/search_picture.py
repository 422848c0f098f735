"""A search as a picture: every layout by its step and its memory, those that none beats joined.

memory │            · ·  ·
  card │┄┄┄┄┄┄┄┄┄┄┄·┄┄┄·┄┄┄┄┄┄
       │  o  · ··  · ·
       │   \\_o  · · ··  ·          o  none is better in both
       │      \\____o   ·
       └──────────────────── step
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from serried.plan.search.cloud import cloud_of
from serried.plan.search.search import SearchResult
from serried.units import duration_text, memory_text
from serried.views.drawing import RULE, Drawing, DrawnArea, DrawnLine, DrawnWords
from serried.views.plan.search_text import layout_name, search_verdict
from serried.views.sentences import tell
from serried.views.table import folds

WIDTH, HEIGHT = 960, 520
LEFT, RIGHT, TOP, BOTTOM = 84, 28, 84, 60
DOT, FRONT = "#9cc3e6", "#c4570f"


def search_picture(found: SearchResult, *, lang: str = "en", only_front: bool = False) -> Drawing:
    """Returns the picture; where nothing fits, its words alone.

    ``only_front`` leaves out what another beats in both, and draws the front from end to end.
    """
    verdict = search_verdict(found, lang=lang)
    drawing = Drawing(WIDTH, HEIGHT, verdict[0])
    for number, line in enumerate([*folds(verdict[0], 120)][:2]):
        drawing.add(DrawnWords(20, 28 + 20 * number, line, 14, is_strong=number == 0))
    if not found.pareto:
        return drawing
    step, used = _front(found) if only_front else _kept(found)
    first, last = float(step.min()), float(step.max())
    card = found.pareto[0].card
    wide, tall = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x_of(seconds: float) -> float:
        return LEFT + wide * (seconds - first) / max(last - first, 1e-9)

    def y_of(held: float) -> float:
        return TOP + tall * (1 - held / card)

    if not only_front:
        for seconds, held in zip(step.tolist(), used.tolist(), strict=True):
            drawing.add(DrawnArea(x_of(seconds) - 1.5, y_of(held) - 1.5, 3, 3, DOT))
    front = [each for each in found.pareto if each.step_s <= last]
    for left, right in pairwise(front):
        ends = [(x_of(each.step_s), y_of(each.in_use)) for each in (left, right)]
        drawing.add(DrawnLine(ends[0], ends[1], FRONT))
    for each in front:
        drawing.add(DrawnArea(x_of(each.step_s) - 3, y_of(each.in_use) - 3, 6, 6, FRONT))
    best = front[0]
    drawing.add(DrawnWords(x_of(best.step_s) + 8, y_of(best.in_use) - 6, layout_name(best.request)))
    _axes(drawing, first, last, card, lang)
    return drawing


def _front(found: SearchResult) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns step and memory of what none beats in both."""
    ends = [(each.step_s, each.in_use) for each in found.pareto]
    step, used = np.array(ends, np.float64).T
    return step, used


def _kept(found: SearchResult) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns step and memory of all that fits and is not far too slow."""
    cloud = cloud_of(found)
    return cloud.step, cloud.in_use


def _axes(drawing: Drawing, first: float, last: float, card: float, lang: str) -> None:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    drawing.add(DrawnLine((LEFT, bottom), (right, bottom), RULE))
    drawing.add(DrawnLine((LEFT, TOP), (right, TOP), RULE, is_dashed=True))
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = bottom - (bottom - TOP) * share
        drawing.add(DrawnWords(10, y + 4, memory_text(round(card * share))))
        x = LEFT + (right - LEFT) * share
        seconds = first + (last - first) * share
        drawing.add(DrawnWords(x - 20, bottom + 20, duration_text(seconds * 1e9)))
    label = tell("step, across; memory of the fullest GPU, up to what a card holds", lang)
    drawing.add(DrawnWords(LEFT, bottom + 44, label))
