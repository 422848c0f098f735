"""A simulated schedule as a PNG: the boxes of the SVG as pixels, with numbers of a small font."""

from __future__ import annotations

from serried.pipeline import Simulation
from serried.views.colours import ACTIONS
from serried.views.pixels import encoded, fill, page_of, write
from serried.views.schedule.svg import boxes


def schedule_png(simulation: Simulation, *, width: int = 1200) -> bytes:
    """Returns the picture; rows are ranks from 0, and the legend names kinds by their letters.

    Raises InputError where boxes would be too many to draw.
    """
    drawn = boxes(simulation, width)
    height = drawn.height + 30
    page = page_of(width, height)
    for rank in range(simulation.schedule.num_ranks):
        y = drawn.row(rank)
        fill(page, drawn.left, y, width - 10, y + drawn.box, "#f1f3f5")
        write(page, str(rank), drawn.left - 8 - 8 * len(str(rank)) / 2, y + drawn.box / 2)
    for box in drawn.boxes:
        y = drawn.row(box.rank)
        fill(page, box.x, y, box.x + box.width, y + drawn.box, "#16191d")
        fill(page, box.x + 0.5, y + 0.5, box.x + box.width, y + drawn.box - 0.5, ACTIONS[box.kind])
        if box.is_first:
            fill(page, box.x + 0.5, y + 1, box.x + box.width, y + 3, "#ffffff")
        # A digit is 4 units wide; a number that would not fit between the edges is left out.
        if box.width > 5 * len(str(box.microbatch)):
            write(page, str(box.microbatch), box.x + box.width / 2, y + drawn.box / 2 + 1)
    for place, kind in enumerate(drawn.kinds):
        x, y = drawn.left + 60 * place, drawn.height + 8
        fill(page, x, y, x + 14, y + 12, ACTIONS[kind])
        write(page, kind.name, x + 24, y + 6)
    return encoded(page)
