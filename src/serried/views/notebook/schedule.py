"""A schedule as a notebook draws it: a row a rank of the pipeline, a box an action."""

from __future__ import annotations

import numpy as np

from serried.mesh import Layout
from serried.pipeline.measured import MeasuredSchedule
from serried.views.notebook.drawn import Drawn
from serried.views.schedule.svg import MOST_BOXES, schedule_svg
from serried.views.schedule.text import headline, number_lines
from serried.views.sentences import tell

WIDTH = 960


def schedule_drawn(
    measured: MeasuredSchedule, layout: Layout | None = None, lang: str = "en"
) -> Drawn:
    """Returns what is drawn; with a layout, a row stands for all ranks of its place in a pipeline.

    A schedule of more boxes than can be drawn is told in words.
    """
    schedule = measured.schedule
    lines = number_lines(measured, lang=lang)
    has_picture = len(schedule.code) <= MOST_BOXES
    if not has_picture:
        more = tell(
            "{count:,} actions are too many for a picture here; serried serve draws any number",
            lang,
            count=len(schedule.code),
        )
        lines.append(more)
    return Drawn(
        headline(measured, lang=lang),
        schedule_svg(measured.simulation, width=WIDTH) if has_picture else "",
        tuple(lines),
        ranks_of_places(layout, schedule.num_ranks),
    )


def ranks_of_places(layout: Layout | None, places: int) -> tuple[tuple[int, ...], ...]:
    """Returns the ranks at each place of a pipeline: the place itself, where no layout says.

    >>> from serried.api import layout
    >>> ranks_of_places(layout(world_size=8, tp=2, pp=2), 2)
    ((0, 1, 2, 3), (4, 5, 6, 7))
    """
    if layout is None or layout.mesh.sizes.get("pp", 1) != places:
        return tuple((place,) for place in range(places))
    place_of = np.array(
        [layout.coordinates(rank).get("pp", -1) for rank in range(layout.world_size)]
    )
    return tuple(tuple(np.flatnonzero(place_of == place).tolist()) for place in range(places))
