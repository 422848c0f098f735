"""Tables for a terminal: columns as wide as they need, long texts folded at their words.

    kind   groups  what it carries        a column is as wide as its widest cell; where all are too
    dp_cp       8  gradients: data        wide together, the widest that may fold give way first,
                   parallel               to no less than a number with its unit or a word
    tp          8  parts of every layer

Columns are counted in cells of the terminal, of which a Chinese character takes two. What a
terminal is too narrow for goes on below, behind the columns that say what a row is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Literal

from rich.cells import cell_len, chop_cells

from serried.units import QUANTITY

_QUANTITY = re.compile(r"[-+~<>]?[\d.,]+( ?[^\s\d]{1,8}){0,2}")
"""A number, its unit, and one word more at most: 1.60 ms, 33.0%, 12.5 GB/s, 2 个 step."""
_LONGEST_WORD = 24
"""Cells of a word that are kept together; longer ones (lists of ranks, paths) may fold."""
_GAP = "  "


@dataclass
class Column:
    """Holds a heading and the cells below it."""

    heading: str
    justify: Literal["left", "right"] = "left"
    no_wrap: bool = False
    """Whether its cells never fold."""
    is_key: bool = False
    """Whether it says what a row is, and is repeated where a table goes on below."""
    cells: list[str] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """The heading and the cells."""
        return [self.heading, *self.cells]

    def widest(self) -> int:
        """Returns the cells that its longest text takes."""
        return max(map(cell_len, self.texts))

    def least(self) -> int:
        """Returns the cells below which a number, a unit or a word would be cut."""
        return max(map(self._least_of, self.texts))

    def _least_of(self, text: str) -> int:
        if self.no_wrap or _QUANTITY.fullmatch(text):
            return cell_len(text)
        return min(max(map(cell_len, text.split()), default=0), _LONGEST_WORD)

    def padded(self, line: str, width: int) -> str:
        """Returns one line of a cell, as wide as its column."""
        gap = " " * (width - cell_len(line))
        return gap + line if self.justify == "right" else line + gap


class Table:
    """Holds rows of texts under headings.

    >>> table = Table()
    >>> table.add_column("kind")
    >>> table.add_column("groups", justify="right")
    >>> table.add_row("tp", "8")
    >>> print(*table.lines(80), sep="\\n")
    kind  groups
    tp         8
    """

    def __init__(self) -> None:
        self.columns: list[Column] = []

    def add_column(
        self, heading: str, *, justify: Literal["left", "right"] = "left", no_wrap: bool = False
    ) -> None:
        """Adds a column on the right."""
        self.columns.append(Column(heading, justify, no_wrap))

    def add_row(self, *cells: str) -> None:
        """Adds a row at the end; cells that are left out are empty."""
        for column, cell in zip_longest(self.columns, cells, fillvalue=""):
            assert isinstance(column, Column), "a row has no more cells than there are columns"
            column.cells.append(str(cell))

    def lines(self, width: int, *, bold: bool = False) -> Iterator[str]:
        """Yields its lines, no wider than ``width`` where its numbers allow that.

        ``bold`` marks headings for a terminal.
        """
        widths = self._widths(width)
        for number, row in enumerate(zip(*(column.texts for column in self.columns), strict=True)):
            # A row is as many lines tall as its tallest cell; the other cells end in empty lines.
            folded = [folds(text, each) for text, each in zip(row, widths, strict=True)]
            for parts in zip_longest(*folded, fillvalue=""):
                cells = zip(self.columns, parts, widths, strict=True)
                line = _GAP.join(column.padded(part, each) for column, part, each in cells).rstrip()
                yield f"\033[1m{line}\033[0m" if bold and not number else line

    def blocks(self, width: int) -> list[Table]:
        """Returns tables to print one below another, each as narrow as ``width`` where it can be.

        >>> table = Table()
        >>> for heading in ("kind", "groups", "ranks"):
        ...     table.add_column(heading)
        >>> table.add_row("tp", "8", "2")
        >>> for block in table.blocks(12):
        ...     print(*block.lines(12), sep=", ")
        kind  groups, tp    8
        kind  ranks, tp    2
        """
        keys = [column for column in self.columns if column.is_key] or self.columns[:1]
        parts: list[list[Column]] = []
        for column in self.columns:
            if column in keys:
                continue
            if not parts or _least([*keys, *parts[-1], column]) > width:
                parts.append([])
            parts[-1].append(column)
        blocks = [Table() for _ in parts] or [self]
        for block, part in zip(blocks, parts, strict=False):
            block.columns = [*keys, *part]
        return blocks if _least(self.columns) > width else [self]

    def _widths(self, room: int) -> list[int]:
        """Returns how wide each column is."""
        widths = [column.widest() for column in self.columns]
        least = [column.least() for column in self.columns]
        room -= len(_GAP) * (len(widths) - 1)
        while (excess := sum(widths) - room) > 0:
            # The widest give way together, until the next widest is as wide or one can no more.
            may = [i for i, each in enumerate(widths) if each > least[i]]
            if not may:
                break
            top = max(widths[i] for i in may)
            tops = [i for i in may if widths[i] == top]
            bounds = [widths[i] for i in may if widths[i] < top] + [least[i] for i in tops]
            each, more = divmod(min(excess, len(tops) * (top - max(bounds))), len(tops))
            for place, i in enumerate(tops):
                widths[i] -= each + (place < more)
        return widths


def _least(columns: Sequence[Column]) -> int:
    """Returns the cells that columns take beside each other with no number cut."""
    return sum(column.least() for column in columns) + len(_GAP) * (len(columns) - 1)


def folds(text: str, width: int) -> Sequence[str]:
    """Returns a text in lines of at most ``width`` cells, broken between words where it can be.

    >>> folds("gradients: data parallel", 16)
    ['gradients: data', 'parallel']
    >>> folds("it waited 12.3 ms", 14)
    ['it waited', '12.3 ms']
    """
    if cell_len(text) <= width:
        return [text]
    lines = [""]
    # A word keeps the blanks before it, so that several blanks survive inside a line.
    for word in re.findall(rf"\s*(?:{QUANTITY}\S*|\S+)", text):
        if cell_len(lines[-1] + word) <= width:
            lines[-1] += word
        elif cell_len(bare := word.lstrip()) <= width:
            lines.append(bare)
        else:
            lines += chop_cells(bare, width)
    # The first line stays empty where the very first word is wider than it.
    return lines[1:] if not lines[0] else lines
