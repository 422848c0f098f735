"""A simulated schedule as a PNG: the boxes of the SVG as pixels, with numbers of a small font."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from serried.pipeline import Simulation
from serried.views.colours import ACTIONS
from serried.views.schedule.svg import boxes

Pixels = NDArray[np.uint8]

SCALE = 2
"""Pixels of a dot of the font, and how much finer than the SVG the picture is."""

_FONT = {
    "0": "755557", "1": "262227", "2": "717747", "3": "717117", "4": "557111", "5": "747117",
    "6": "747757", "7": "711222", "8": "757757", "9": "757117", "F": "747444", "B": "656556",
    "I": "722227", "W": "555577",
}  # fmt: skip
"""Six rows of three dots, each row an octal digit."""


def schedule_png(simulation: Simulation, *, width: int = 1200) -> bytes:
    """Returns the picture; rows are ranks from 0, and the legend names kinds by their letters.

    Raises InputError where boxes would be too many to draw.
    """
    drawn = boxes(simulation, width)
    height = drawn.height + 30
    page = np.full((height * SCALE, width * SCALE, 3), 255, np.uint8)
    for rank in range(simulation.schedule.num_ranks):
        y = drawn.row(rank)
        _fill(page, drawn.left, y, width - 10, y + drawn.box, "#f1f3f5")
        _write(page, str(rank), drawn.left - 8 - 8 * len(str(rank)) / 2, y + drawn.box / 2)
    for box in drawn.boxes:
        y = drawn.row(box.rank)
        _fill(page, box.x, y, box.x + box.width, y + drawn.box, "#16191d")
        _fill(page, box.x + 0.5, y + 0.5, box.x + box.width, y + drawn.box - 0.5, ACTIONS[box.kind])
        if box.is_first:
            _fill(page, box.x + 0.5, y + 1, box.x + box.width, y + 3, "#ffffff")
        # A digit is 4 units wide; a number that would not fit between the edges is left out.
        if box.width > 5 * len(str(box.microbatch)):
            _write(page, str(box.microbatch), box.x + box.width / 2, y + drawn.box / 2 + 1)
    for place, kind in enumerate(drawn.kinds):
        x, y = drawn.left + 60 * place, drawn.height + 8
        _fill(page, x, y, x + 14, y + 12, ACTIONS[kind])
        _write(page, kind.name, x + 24, y + 6)
    return _encoded(page)


def _fill(page: Pixels, x: float, y: float, right: float, bottom: float, colour: str) -> None:
    left, top, right, bottom = (round(each * SCALE) for each in (x, y, right, bottom))
    page[top:bottom, left : max(right, left + 1)] = [
        int(colour[at : at + 2], 16) for at in (1, 3, 5)
    ]


def _write(page: Pixels, text: str, x: float, y: float) -> None:
    """Writes ``text`` centred at a point."""
    # A letter takes 3 dots and a gap of one, and is 6 high: 2 dots for each letter lie left of the
    # centre, and 3 above it.
    left = round(x * SCALE) - 2 * SCALE * len(text)
    top = round(y * SCALE) - 3 * SCALE
    for letter in text:
        rows = [[int(row) >> dot & 1 for dot in (2, 1, 0)] for row in _FONT[letter]]
        dots = np.kron(np.array(rows, bool), np.ones((SCALE, SCALE), bool))
        page[top : top + dots.shape[0], left : left + dots.shape[1]][dots] = (0x16, 0x19, 0x1D)
        left += 4 * SCALE


def _encoded(page: Pixels) -> bytes:
    """Returns an RGB PNG (ISO/IEC 15948): header, one compressed block, end."""
    height, width, _ = page.shape
    # Every line of a PNG begins with the number of its filter; 0 is none.
    lines = np.concatenate([np.zeros((height, 1), np.uint8), page.reshape(height, -1)], axis=1)
    # Eight bits a channel, colour type 2 (RGB); compression, filter and interlace methods are 0.
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in parts)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
