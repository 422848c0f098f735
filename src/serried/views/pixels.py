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
    "A": "757555", "C": "744447", "D": "655556", "E": "747447", "H": "557555", "J": "111157",
    "L": "444447", "N": "755555", "Q": "755571", "R": "757655", "S": "342116", "U": "555557",
    "V": "555552", "X": "552255", "Y": "555222", "Z": "711247", "-": "007000", "/": "112244",
    ":": "020020", ">": "421240", ",": "000024", "(": "244442", ")": "211112",
    ";": "020024", "%": "512245",
}  # fmt: skip
"""Six rows of three dots, each row an octal digit."""
_INK = (0x16, 0x19, 0x1D)


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
        page[top : top + dots.shape[0], left : left + dots.shape[1]][dots] = _INK
        left += 4 * SCALE


def can_write(text: str) -> bool:
    """Tells whether the font has every letter of a text.

    >>> can_write("1.00 GIB"), can_write("集")
    (True, False)
    """
    return all(letter in _FONT for letter in text)


def stroke(
    page: Pixels, start: tuple[float, float], end: tuple[float, float], width: float, colour: str
) -> None:
    """Draws a line between two points with soft edges."""
    (x0, y0), (x1, y1) = ((x * SCALE, y * SCALE) for x, y in (start, end))
    half = width * SCALE / 2
    left, right = sorted((x0, x1))
    top, bottom = sorted((y0, y1))
    rows = slice(max(0, int(top - half - 1)), max(0, int(bottom + half + 2)))
    columns = slice(max(0, int(left - half - 1)), max(0, int(right + half + 2)))
    part = page[rows, columns]
    if not part.size:
        return
    y, x = np.mgrid[rows.start : rows.start + part.shape[0], columns.start :
                    columns.start + part.shape[1]]  # fmt: skip
    # How far along the line each pixel's foot lies, 0 at its start and 1 at its end.
    length = max((x1 - x0) ** 2 + (y1 - y0) ** 2, 1e-9)
    along = np.clip(((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / length, 0, 1)
    away = np.hypot(x - x0 - along * (x1 - x0), y - y0 - along * (y1 - y0))
    cover = np.clip(half + 0.5 - away, 0, 1)[..., None]
    ink = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)])
    part[:] = np.round(part * (1 - cover) + ink * cover).astype(np.uint8)


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
