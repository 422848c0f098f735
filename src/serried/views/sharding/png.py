"""What ranks share as a PNG: the bars of the SVG, with ranks' numbers and the letters P, G, O."""

from __future__ import annotations

from serried.mesh import Layout
from serried.plan.model_states import ModelStates
from serried.plan.precision import Precision
from serried.views.colours import STATES as COLOURS
from serried.views.pixels import Pixels, encoded, fill, page_of, write
from serried.views.sharding.bars import RankBars, bars_rows
from serried.views.sharding.svg import (
    BAR,
    CELL,
    GAP,
    LETTERS,
    MARGIN,
    ROW,
    TALL,
    TOP,
    bar_part,
    bar_place,
    picture_size,
)


def sharding_png(layout: Layout, states: ModelStates | None, precision: Precision) -> bytes:
    """Returns the picture; of ranks left out their number stands, such as +56."""
    rows = bars_rows(layout, precision, states)
    page = page_of(*picture_size(rows))
    for number, row in enumerate(rows):
        y, x = TOP + ROW * number, MARGIN
        for each in row.ranks:
            if each.count:
                write(page, f"+{each.count}", x + CELL / 2, y + TALL / 2)
            else:
                _draw(page, each, x, y)
            x += CELL
    return encoded(page)


def _draw(page: Pixels, each: RankBars, x: float, y: float) -> None:
    write(page, str(each.rank), x + CELL / 2, y + TALL + 30)
    left = x + (CELL - 3 * BAR - 2 * GAP) / 2
    for bar in each.bars:
        top, height = bar_place(bar)
        start, filled = bar_part(bar)
        bottom = y + top + height
        fill(page, left - 0.5, y + top - 0.5, left + BAR + 0.5, bottom + 0.5, "#8d98a6")
        fill(page, left, y + top, left + BAR, bottom, "#f1f3f5")
        fill(page, left, y + start, left + BAR, y + start + filled, COLOURS[bar.state])
        write(page, LETTERS[bar.state], left + BAR / 2, y + TALL + 14)
        left += BAR + GAP
