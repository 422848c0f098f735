"""A plan as a picture: a bar of memory for each place in the pipeline, and one of a step's time.

80 GiB ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄  card            step ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇
         ▇    ▆    ▅    ▅                           matrices  attention  tp  bubble  dp
         0    1    2    3      stage
"""

from __future__ import annotations

from collections.abc import Iterator

from serried.plan.job_plan import JobPlan
from serried.plan.memory.rank_memory import PlannedMemory
from serried.units import duration_text, memory_text
from serried.views.drawing import RULE, Drawing, DrawnArea, DrawnLine, DrawnWords
from serried.views.plan.text import fit_verdict, job_line, time_verdict
from serried.views.plan.words import COLOURS, MEMORY, TIME, memory_word, time_word
from serried.views.sentences import say
from serried.views.table import folds

WIDTH, LEFT, RIGHT = 960, 76, 220
"""Width of the picture, and the room for figures on the left and names on the right."""
TOP, TALL, BAR, LEGEND = 112, 300, 26, 16
"""Where bars of memory begin, how tall the card is, and the height of the bar of time."""
MOST_BARS = 64
"""Places of a pipeline that have bars of their own."""


def plan_picture(plan: JobPlan, *, lang: str = "en") -> Drawing:
    """Returns the picture; of more places than it has room for the fullest are drawn."""
    places = _drawn(plan)
    known = [name for name in MEMORY if any(each.bytes_of(name) for each in places)]
    parts = [name for name in TIME if plan.parts.get(name, 0.0) > 0.002 * plan.step_s]
    low = TOP + TALL + 40
    height = low + BAR + 44 + LEGEND * -(-len(parts) // 3)
    drawing = Drawing(WIDTH, height, say(fit_verdict(plan), lang))
    _heading(drawing, plan, lang)
    _memory(drawing, plan, places, known, lang)
    _time(drawing, plan, parts, low, lang)
    return drawing


def _drawn(plan: JobPlan) -> list[PlannedMemory]:
    places = list(plan.memory.of_ranks)
    if len(places) <= MOST_BARS:
        return places
    fullest = sorted(places, key=lambda each: -each.total)[:MOST_BARS]
    return sorted(fullest, key=lambda each: each.pp_rank)


def _heading(drawing: Drawing, plan: JobPlan, lang: str) -> None:
    rows = [(line, True) for line in _folded(say(fit_verdict(plan), lang), 14)[:2]]
    rows += [(line, False) for line in _folded(say(time_verdict(plan), lang), 12)[:1]]
    rows += [(line, False) for line in _folded(say(job_line(plan), lang), 12)[:1]]
    for number, (line, is_strong) in enumerate(rows):
        size = 14 if is_strong else 12
        drawing.add(DrawnWords(20, 26 + 20 * number, line, size, is_strong=is_strong))


def _folded(text: str, size: int) -> list[str]:
    return list(folds(text, int((WIDTH - 40) / (0.54 * size))))


def _memory(
    drawing: Drawing, plan: JobPlan, places: list[PlannedMemory], known: list[str], lang: str
) -> None:
    card = places[0].card_bytes
    most = max(card, *(each.total for each in places))
    bottom, scale = TOP + TALL, TALL / most
    room = (WIDTH - LEFT - RIGHT) / len(places)
    for number, each in enumerate(places):
        x, y = LEFT + room * number, float(bottom)
        for name in known:
            size = each.bytes_of(name) * scale
            if size:
                y -= size
                wide = room * 0.8
                colour = COLOURS[name]
                drawing.add(DrawnArea(x + room * 0.1, y, wide, size, colour, row=each.pp_rank))
        middle = x + room / 2
        if room >= 20:
            drawing.add(
                DrawnWords(middle, bottom + 16, "+".join(map(str, each.stages)), 11, "middle")
            )
        if room >= 52:
            drawing.add(DrawnWords(middle, y - 4, memory_text(each.total), 11, "middle"))
    drawing.add(DrawnWords(LEFT - 8, bottom + 16, "stage", 11, "end"))
    line, right = bottom - card * scale, WIDTH - RIGHT
    drawing.add(
        DrawnLine((LEFT, bottom), (right, bottom), RULE),
        DrawnLine((LEFT, line), (right, line), "#b3243b", is_dashed=True),
        DrawnWords(LEFT - 8, line + 4, memory_text(card), 11, "end"),
    )
    for number, name in enumerate(reversed(known)):
        word = say(memory_word(name), lang)
        drawing.add(*_key(right + 16, TOP + LEGEND * number, name, word, name))


def _time(drawing: Drawing, plan: JobPlan, parts: list[str], top: float, lang: str) -> None:
    x, scale = 20.0, (WIDTH - 40) / plan.step_s
    for name in parts:
        wide = plan.parts[name] * scale
        drawing.add(DrawnArea(x, top, wide, BAR, COLOURS.get(name, COLOURS["fixed"])))
        x += wide
    for number, name in enumerate(parts):
        row, column = divmod(number, 3)
        seconds = plan.parts[name]
        told = f"{duration_text(seconds * 1e9)}, {seconds / plan.step_s:.1%}"
        word = f"{say(time_word(name), lang)} {told}"
        drawing.add(*_key(20 + 310 * column, top + BAR + 14 + LEGEND * row, name, word, name))


def _key(x: float, y: float, name: str, word: str, short: str) -> Iterator[DrawnArea | DrawnWords]:
    yield DrawnArea(x, y, 10, 10, COLOURS.get(name, COLOURS["fixed"]))
    yield DrawnWords(x + 16, y + 9, word, 11, short=short)
