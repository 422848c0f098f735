"""Pictures as pixels: rectangles and small letters on a page, encoded as PNG.

A page is an array of RGB bytes, ``SCALE`` pixels to a unit, so that SVG and PNG share coordinates.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]

SCALE = 2
"""Pixels of a dot of the font, and how much finer than the SVG the picture is."""

_FONT = {
    "0": "755557", "1": "262227", "2": "717747", "3": "717117", "4": "557111", "5": "747117",
    "6": "747757", "7": "711222", "8": "757757", "9": "757117", "F": "747444", "B": "656556",
    "I": "722227", "W": "555577", "P": "755744", "G": "744557", "O": "755557", "M": "577555",
    "K": "556655", "T": "722222", ".": "000002", "+": "002720", " ": "000000",
}  # fmt: skip
"""Six rows of three dots, each row an octal digit."""


def page_of(width: int, height: int) -> Pixels:
    """Returns a white page of so many units."""
    return np.full((height * SCALE, width * SCALE, 3), 255, np.uint8)


def fill(page: Pixels, x: float, y: float, right: float, bottom: float, colour: str) -> None:
    """Fills a rectangle, at least one pixel wide."""
    left, top, right, bottom = (round(each * SCALE) for each in (x, y, right, bottom))
    page[top:bottom, left : max(right, left + 1)] = [
        int(colour[at : at + 2], 16) for at in (1, 3, 5)
    ]


def write(page: Pixels, text: str, x: float, y: float) -> None:
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


def encoded(page: Pixels) -> bytes:
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
