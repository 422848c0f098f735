"""A simulated schedule as an SVG in the look of the papers: a row a rank, a box an action."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from serried.action import ActionKind
from serried.errors import InputError
from serried.pipeline import Simulation
from serried.views.colours import ACTIONS

ROW, BOX, MARGIN, TOP = 26, 22, 70, 8
MOST_BOXES = 20_000
WORDS = {
    ActionKind.F: "forward",
    ActionKind.B: "backward",
    ActionKind.I: "input gradient",
    ActionKind.W: "weight gradient",
}
_INK = "#16191d"


@dataclass(frozen=True)
class Box:
    """Draws one action: where it stands, and what is said in it."""

    rank: int
    x: float
    width: float
    kind: ActionKind
    stage: int
    microbatch: int
    is_first: bool
    """Whether its stage is the first of the rank."""


@dataclass(frozen=True)
class Boxes:
    """Holds a whole picture as boxes, in pixels."""

    boxes: list[Box]
    num_ranks: int
    kinds: list[ActionKind]
    left: int = MARGIN
    box: int = BOX

    @property
    def height(self) -> int:
        """The height of all rows."""
        return TOP + ROW * self.num_ranks

    @staticmethod
    def row(rank: int) -> int:
        """Returns the top of a rank's row."""
        return TOP + ROW * rank


def boxes(simulation: Simulation, width: int) -> Boxes:
    """Lays the actions out; the two halves of an overlapped pair share its time in halves.

    Raises InputError where boxes would be too many to draw.
    """
    schedule = simulation.schedule
    if len(schedule.code) > MOST_BOXES:
        raise InputError(
            "a picture of {count} actions cannot be drawn; up to {most} can, and serried serve "
            "shows any number",
            count=len(schedule.code),
            most=MOST_BOXES,
        )
    per_tick = (width - MARGIN - 10) / float(simulation.rank_end.max() or 1)
    first = [schedule.placement.stages_of(rank)[0] for rank in range(schedule.num_ranks)]
    columns = (
        schedule.rank, schedule.direction, schedule.stage, schedule.kind, schedule.microbatch,
        schedule.joined, simulation.start, simulation.end,
    )  # fmt: skip
    found = []
    is_second = False
    for rank, direction, stage, kind, microbatch, joined, start, end in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        x, wide = MARGIN + float(start) * per_tick, float(end - start) * per_tick
        # Both halves carry the time of the whole pair; the second is drawn right of the first.
        if joined or is_second:
            wide /= 2
            x += wide * is_second
        is_second = joined
        is_first = (direction, stage) == first[rank]
        found.append(Box(rank, x, wide, ActionKind(kind), stage, microbatch, is_first))
    kinds = [kind for kind in WORDS if (schedule.kind == kind).any()]
    return Boxes(found, schedule.num_ranks, kinds)


def schedule_svg(simulation: Simulation, *, width: int = 1200) -> str:
    """Returns the picture; boxes of a rank's first stage have a white stripe, idle time is blank.

    Raises InputError where boxes would be too many to draw.
    """
    drawn = boxes(simulation, width)
    name, height = simulation.schedule.name, drawn.height + 40
    rows: list[list[Box]] = [[] for _ in range(drawn.num_ranks)]
    for box in drawn.boxes:
        rows[box.rank].append(box)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="11">',
        f"<title>{escape(name)}: {drawn.num_ranks} ranks, "
        f"{simulation.schedule.num_microbatches} microbatches</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *(
            line
            for rank, row in enumerate(rows)
            for line in _row(drawn.row(rank), rank, row, width)
        ),
        *_legend(drawn),
        "</svg>",
    ]
    return "\n".join(parts)


def _row(y: int, rank: int, row: list[Box], width: int) -> Iterator[str]:
    """Yields a rank's row, marked so that a notebook can select it."""
    yield f'<g data-row="{rank}">'
    yield (
        f'<text x="{MARGIN - 8}" y="{y + BOX * 0.7:g}" text-anchor="end" fill="{_INK}">'
        f"rank {rank}</text>"
    )
    yield (
        f'<rect x="{MARGIN}" y="{y}" width="{width - MARGIN - 10}" height="{BOX}" fill="#f1f3f5"/>'
    )
    for box in row:
        yield from _box(box, y)
    yield "</g>"


def _box(box: Box, y: int) -> Iterator[str]:
    place = f'x="{box.x:.2f}" width="{box.width:.2f}"'
    yield (
        f"<g><title>{box.stage}{box.kind.name}{box.microbatch}</title><rect {place} "
        f'y="{y}" height="{BOX}" fill="{ACTIONS[box.kind]}" stroke="{_INK}" stroke-width="0.4"/>'
    )
    if box.is_first:
        yield f'<rect {place} y="{y + 1}" height="2.5" fill="#ffffff"/>'
    if box.width > 6 * len(str(box.microbatch)):
        yield (
            f'<text x="{box.x + box.width / 2:.2f}" y="{y + BOX * 0.72:g}" text-anchor="middle" '
            f'fill="{_INK}">{box.microbatch}</text>'
        )
    yield "</g>"


def _legend(drawn: Boxes) -> Iterator[str]:
    x, y = MARGIN, drawn.height + 12
    for kind in drawn.kinds:
        yield (
            f'<rect x="{x}" y="{y}" width="14" height="12" fill="{ACTIONS[kind]}"/>'
            f'<text x="{x + 19}" y="{y + 10}" fill="{_INK}">{WORDS[kind]}</text>'
        )
        x += 110
    yield (
        f'<text x="{x}" y="{y + 10}" fill="{_INK}">white stripe: the first stage of the rank</text>'
    )
