"""A drawing is the same picture as SVG and as PNG."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from serried.views.drawing import Drawing, DrawnArea, DrawnLine, DrawnWords


def pixels(png: bytes) -> NDArray[np.uint8]:
    """Reads an RGB PNG of one block."""
    width, height = struct.unpack_from(">II", png, 16)
    at, parts = 8, b""
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        if png[at + 4 : at + 8] == b"IDAT":
            parts += png[at + 8 : at + 8 + length]
        at += 12 + length
    lines = np.frombuffer(zlib.decompress(parts), np.uint8).reshape(height, 1 + 3 * width)
    return lines[:, 1:].reshape(height, width, 3)


def drawn(*marks: DrawnArea | DrawnLine | DrawnWords) -> Drawing:
    drawing = Drawing(40, 20, "a <picture>")
    drawing.add(*marks)
    return drawing


def test_an_area_lies_where_it_is_drawn() -> None:
    page = pixels(drawn(DrawnArea(10, 5, 20, 10, "#ff0000")).png())
    assert page.shape == (40, 80, 3)
    assert page[20, 40].tolist() == [255, 0, 0]
    assert page[2, 2].tolist() == [255, 255, 255]


def test_a_line_goes_from_its_start_to_its_end() -> None:
    page = pixels(drawn(DrawnLine((5, 10), (35, 10), "#0000ff", 2)).png())
    assert page[20, 40].tolist() == [0, 0, 255]
    assert page[20, 6].tolist() == [255, 255, 255]
    assert page[30, 40].tolist() == [255, 255, 255]


def test_a_dashed_line_has_gaps_and_an_arrow_has_a_head() -> None:
    dashed = pixels(drawn(DrawnLine((0, 10), (40, 10), "#000000", 1, is_dashed=True)).png())
    plain = pixels(drawn(DrawnLine((0, 10), (40, 10), "#000000", 1)).png())
    headed = pixels(drawn(DrawnLine((0, 10), (30, 10), "#000000", 1, is_arrow=True)).png())
    assert (dashed < 128).sum() < 0.7 * (plain < 128).sum()
    assert headed[16, 54].max() < 128 < plain[16, 54].max()


def test_words_that_the_small_font_lacks_give_way_to_short_ones() -> None:
    def ink(*marks: DrawnWords) -> int:
        return int((pixels(drawn(*marks).png()) < 128).sum())

    assert ink(DrawnWords(2, 12, "第 1 步")) == 0
    assert ink(DrawnWords(2, 12, "第 1 步", short="1")) == ink(DrawnWords(2, 12, "1")) > 0


def test_words_of_an_svg_are_escaped() -> None:
    text = drawn(DrawnWords(2, 12, "a < b & c")).svg()
    assert "a &lt; b &amp; c" in text and "<title>a &lt;picture&gt;</title>" in text
