"""The steps of a collective as a picture: ranks in rows, steps in columns, a move as an arrow.

          step 0       step 1                 between columns stand the blocks that a rank holds,
    0   ▮▯▯ ──┐      ▮▯▮ ──┐      ▮▮▮         filled as far as they hold contributions; an arrow
    1   ▯▮▯ ──┼─┐    ▮▮▯ ──┼─┐    ▮▮▮         has the colour of its block, dashed where the
    2   ▯▯▮ ──┘ └    ▯▮▮ ──┘ └    ▮▮▮         receiver keeps what comes instead of adding it

Of more than 32 ranks nodes are the rows, and an arrow is all that one node sends another. Of many
rows or steps the first and the last are drawn, with how many lie between.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from serried.collective.blocks import execute
from serried.collective.price import LinkClass
from serried.collective.step import CollectiveStep
from serried.plan.collective_price import PricedCollective
from serried.units import duration_text, memory_text
from serried.views.collective.text import blocks_text, link_text, verdict_lines
from serried.views.colours import hue_colour
from serried.views.drawing import INK, PALE, RULE, Drawing, DrawnArea, DrawnLine, DrawnWords
from serried.views.sentences import tell

MOST_RANKS = 32
"""Ranks that have a row each; of more, nodes have."""
MOST_NODES = 24
FIRST_NODES, LAST_NODES = 12, 2
MOST_STEPS = 16
FIRST_STEPS, LAST_STEPS = 8, 4
MOST_BLOCKS = 16
"""Blocks of which a rank's cells are drawn."""
ROW, COLUMN, CELL, NODE_GAP = 26, 96, 5, 12
LEFT, TOP = 104, 118
_BLUE = "#2f6db3"


@dataclass(frozen=True)
class _Row:
    """Holds one row: positions that it stands for, and its name."""

    positions: tuple[int, ...]
    name: str
    short: str
    y: float


class _Plan:
    """Says where rows and columns stand."""

    def __init__(self, priced: PricedCollective, lang: str) -> None:
        self.priced = priced
        self.lang = lang
        collective = priced.collective
        self.is_by_rank = collective.group.size <= MOST_RANKS
        number = len(collective.steps)
        self.steps: list[int | None] = list(range(number))
        if number > MOST_STEPS:
            last = range(number - LAST_STEPS, number)
            self.steps = [*range(FIRST_STEPS), None, *last]
        self.shows_cells = self.is_by_rank and collective.num_blocks <= MOST_BLOCKS
        self.cells = collective.num_blocks * CELL + 8 if self.shows_cells else 14
        self.rows = self._by_rank() if self.is_by_rank else self._by_node()
        self.row_of = {at: row for row in self.rows for at in row.positions}

    def _by_rank(self) -> list[_Row]:
        group, y = self.priced.collective.group, float(TOP)
        rows: list[_Row] = []
        for node, positions in enumerate(group.by_node):
            for position in positions:
                rank = group.ranks[position]
                rows.append(_Row((position,), str(rank), str(rank), y))
                y += ROW
            if self._uses_switches:
                name = tell("switch", self.lang)
                rows.append(_Row((group.size + node,), name, "SW", y))
                y += ROW
            y += NODE_GAP
        return rows

    @cached_property
    def _uses_switches(self) -> bool:
        collective = self.priced.collective
        step = collective.steps[0]
        return bool((np.maximum(step.source, step.target) >= collective.group.size).any())

    def _by_node(self) -> list[_Row]:
        group, y = self.priced.collective.group, float(TOP)
        number = group.num_nodes
        shown = list(range(number))
        if number > MOST_NODES:
            shown = [*range(FIRST_NODES), *range(number - LAST_NODES, number)]
        rows, hidden = [], set(range(number)) - set(shown)
        for place, node in enumerate(shown):
            if hidden and place == FIRST_NODES:
                between = tuple(
                    at
                    for each in sorted(hidden)
                    for at in (*group.by_node[each], group.size + each)
                )
                name = tell("+{count:,} nodes", self.lang, count=len(hidden))
                rows.append(_Row(between, name, f"+{len(hidden)}", y))
                y += ROW + NODE_GAP
            name = tell("node {node}", self.lang, node=group.nodes[group.by_node[node][0]])
            positions = (*group.by_node[node], group.size + node)
            rows.append(_Row(positions, name, f"N{node}", y))
            y += ROW
        return rows

    @property
    def height(self) -> float:
        return self.rows[-1].y + ROW + 46

    @property
    def width(self) -> float:
        shown = [self.x_of(place) for place in range(len(self.steps) + 1)]
        return max(shown[-1] + self.cells + 20, 640)

    def x_of(self, place: int) -> float:
        """Returns where the cells before a column begin."""
        return LEFT + place * (COLUMN + self.cells)


def steps_picture(priced: PricedCollective, *, lang: str = "en") -> Drawing:
    """Returns the picture of a collective's steps."""
    verdict = verdict_lines(priced, lang=lang)
    if not len(priced.collective.steps):
        return _nothing(verdict[0])
    plan = _Plan(priced, lang)
    drawing = Drawing(plan.width, plan.height, verdict[0])
    for row, line in enumerate(verdict):
        drawing.add(DrawnWords(20, 28 + 20 * row, line, 14, is_strong=not row))
    _bands(drawing, plan)
    held = _held(plan) if plan.shows_cells else {}
    for place, number in enumerate(plan.steps):
        x = plan.x_of(place)
        _cells(drawing, plan, held.get(-1 if number is None else number), x)
        if number is None:
            _gap(drawing, plan, x + plan.cells)
        else:
            _column(drawing, plan, number, x + plan.cells)
    end = len(priced.collective.steps)
    _cells(drawing, plan, held.get(end), plan.x_of(len(plan.steps)))
    _legend(drawing, plan)
    return drawing


def _nothing(words: str) -> Drawing:
    drawing = Drawing(640, 60, words)
    drawing.add(DrawnWords(20, 34, words, 14))
    return drawing


def _bands(drawing: Drawing, plan: _Plan) -> None:
    """Draws a band for every node, and the names of rows."""
    group = plan.priced.collective.group
    right = plan.width - 10
    if plan.is_by_rank:
        for node, positions in enumerate(group.by_node):
            first, last = plan.row_of[positions[0]], plan.row_of[positions[-1]]
            extra = ROW if group.size + node in plan.row_of else 0
            tall = last.y - first.y + ROW + extra
            drawing.add(DrawnArea(14, first.y - 4, right - 14, tall + 8, PALE))
            name = tell("node {node}", plan.lang, node=group.nodes[positions[0]])
            drawing.add(
                DrawnWords(20, first.y + 17, name, 11, short=f"N{group.nodes[positions[0]]}")
            )
    for row in plan.rows:
        middle = row.y + ROW / 2
        drawing.add(
            DrawnLine((LEFT, middle), (right - 4, middle), RULE, 0.6),
            DrawnWords(LEFT - 8, middle + 4, row.name, 12, "end", row.short),
        )


def _column(drawing: Drawing, plan: _Plan, number: int, x: float) -> None:
    """Draws the moves of one step, and its number, link and time above."""
    priced = plan.priced
    link = link_text(priced, LinkClass(priced.cost.link[number]), plan.lang)
    time = duration_text(float(priced.step_s[number]) * 1e9)
    middle = x + COLUMN / 2
    step = tell("step {number}", plan.lang, number=number)
    drawing.add(
        DrawnWords(middle, TOP - 44, step, 12, "middle", str(number), is_strong=True),
        DrawnWords(middle, TOP - 29, link, 9, "middle", f"LINK {priced.cost.link[number]}"),
        DrawnWords(middle, TOP - 15, time, 11, "middle"),
    )
    moves = priced.collective.steps[number]
    arrows = _arrows(plan, moves)
    # More labels would lie over one another.
    is_told = len(arrows) <= len(plan.rows) * (1 if plan.is_by_rank else 2)
    leaving = Counter(arrow.source.y for arrow in arrows)
    for arrow in arrows:
        start = (x + 4, arrow.source.y + ROW / 2)
        end = (x + COLUMN - 4, arrow.target.y + ROW / 2)
        colour = _colour(arrow.block, priced.collective.num_blocks) if plan.is_by_rank else _BLUE
        drawing.add(DrawnLine(start, end, colour, 2, is_dashed=not arrow.reduces, is_arrow=True))
        if not is_told:
            continue
        # Labels stand where arrows begin; of several that begin together, where they end.
        is_alone = leaving[arrow.source.y] == 1
        at = (start[0] + 2, start[1]) if is_alone else (end[0] - 10, end[1])
        anchor: Literal["start", "end"] = "start" if is_alone else "end"
        drawing.add(DrawnWords(at[0], at[1] - 4, arrow.label, 10, anchor))


@dataclass(frozen=True)
class _Arrow:
    """Holds what is drawn of moves between two rows: first block, whether it is added, a label."""

    source: _Row
    target: _Row
    block: int
    reduces: bool
    label: str


def _arrows(plan: _Plan, step: CollectiveStep) -> list[_Arrow]:
    """Returns the arrows of a step; moves between the same two rows are one, with their number."""
    found: dict[tuple[float, float], list[int]] = {}
    ends = zip(step.source.tolist(), step.target.tolist(), strict=True)
    for move, (source, target) in enumerate(ends):
        found.setdefault((plan.row_of[source].y, plan.row_of[target].y), []).append(move)
    return [
        _Arrow(
            plan.row_of[int(step.source[moves[0]])],
            plan.row_of[int(step.target[moves[0]])],
            int(step.first[moves[0]]),
            bool(step.reduces[moves].all()),
            _label(plan, step, moves),
        )
        for moves in found.values()
    ]


def _label(plan: _Plan, step: CollectiveStep, moves: list[int]) -> str:
    """Returns the blocks of one move, or how many moves an arrow stands for."""
    if not plan.is_by_rank or len(moves) > 1:
        return f"x{len(moves)}"
    first, count = int(step.first[moves[0]]), int(step.count[moves[0]])
    return blocks_text(first, count, step.stride, plan.priced.collective.num_blocks)


def _cells(drawing: Drawing, plan: _Plan, held: Held | None, x: float) -> None:
    """Draws the blocks of every rank as cells, filled by the part of contributions they have."""
    if held is None:
        return
    blocks, size = plan.priced.collective.num_blocks, plan.priced.collective.group.size
    most = max(1, int(held[:size].max()))
    for row in plan.rows:
        position = row.positions[0]
        if position >= size:
            continue
        for block in range(blocks):
            left, top = x + 4 + block * CELL, row.y + 5
            drawing.add(DrawnArea(left, top, CELL - 1, ROW - 10, "#ffffff"))
            part = held[position, block] / most
            if part:
                tall = max(2.0, (ROW - 10) * part)
                bottom = top + ROW - 10
                drawing.add(DrawnArea(left, bottom - tall, CELL - 1, tall, _colour(block, blocks)))


def _gap(drawing: Drawing, plan: _Plan, x: float) -> None:
    """Says how many steps are left out."""
    count = len(plan.priced.collective.steps) - FIRST_STEPS - LAST_STEPS
    words = tell("… {count:,} more steps", plan.lang, count=count)
    middle = x + COLUMN / 2 - plan.cells / 2
    drawing.add(DrawnWords(middle, TOP - 29, words, 11, "middle", f"+{count}"))
    drawing.add(DrawnLine((middle, TOP), (middle, plan.rows[-1].y + ROW), RULE, 1, is_dashed=True))


def _legend(drawing: Drawing, plan: _Plan) -> None:
    """Says what arrows and cells mean."""
    y = plan.height - 16
    adds = tell("the receiver adds it", plan.lang)
    keeps = tell("the receiver keeps it", plan.lang)
    drawing.add(
        DrawnLine((20, y - 4), (54, y - 4), INK, 2, is_arrow=True),
        DrawnWords(60, y, adds, 12, short="ADD"),
        DrawnLine((240, y - 4), (274, y - 4), INK, 2, is_dashed=True, is_arrow=True),
        DrawnWords(280, y, keeps, 12, short="COPY"),
    )
    size = memory_text(
        round(float(plan.priced.collective.block_bytes(plan.priced.asked.size_bytes)))
    )
    number = tell("number: block of {size}", plan.lang, size=size) if plan.is_by_rank else tell(
        "x8: 8 moves together", plan.lang
    )  # fmt: skip
    drawing.add(DrawnWords(440, y, number, 12, short=size))


Held = NDArray[np.integer[Any]]


def _held(plan: _Plan) -> dict[int, Held]:
    """Returns the contributions in each block of each position, before each step that is drawn."""
    wanted = {each for each in plan.steps if each is not None} | {len(plan.priced.collective.steps)}
    if None in plan.steps:
        wanted.add(FIRST_STEPS)
    found: dict[int, Held] = {}
    for number, masks in enumerate(execute(plan.priced.collective)):
        if number in wanted:
            found[number] = _counted(masks)
    if None in plan.steps:
        found[-1] = found[FIRST_STEPS]
    return found


def _counted(masks: NDArray[np.uint64]) -> Held:
    """Returns how many bits of the masks are set, shape (positions, blocks)."""
    bits = np.unpackbits(np.ascontiguousarray(masks).view(np.uint8), axis=-1)
    counted: Held = bits.sum(axis=-1)
    return counted


def _colour(block: int, blocks: int) -> str:
    return hue_colour(block / max(1, blocks))
