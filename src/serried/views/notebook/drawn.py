"""A value as a notebook draws it: a headline, a picture of ranks, and what stands below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from serried.views.table import Table


@dataclass(frozen=True)
class Drawn:
    """Holds what is shown of a value."""

    headline: str
    picture: str
    """An SVG, whose marks of a row say ``data-row``; "" where there is nothing to draw."""
    below: tuple[str | Table, ...] = ()
    """Lines and tables."""
    rows: tuple[tuple[int, ...], ...] = ()
    """The ranks that each row of the picture stands for."""
    kinds: tuple[str, ...] = ()
    """Kinds of groups that its colours may tell."""
    kind: str = ""
    """The one that they tell."""

    def text(self) -> str:
        """Returns it as a terminal shows it."""
        return "\n".join([self.headline, *self._lines()])

    def _lines(self) -> Iterator[str]:
        for part in self.below:
            yield from [part] if isinstance(part, str) else part.lines(100)

    def html(self) -> str:
        """Returns it as HTML that needs no script, no style sheet and no file."""
        return (
            '<figure style="margin:0;overflow-x:auto">'
            f"<figcaption><strong>{escape(self.headline)}</strong></figcaption>"
            f"{self.picture}{''.join(_blocks(self.below))}</figure>"
        )


def _blocks(parts: Sequence[str | Table]) -> Iterator[str]:
    """Yields tables, and the lines between them in paragraphs that keep their blanks."""
    lines: list[str] = []
    for part in [*parts, ""]:
        if isinstance(part, str) and part:
            lines.append(part)
            continue
        if lines:
            text = escape("\n".join(lines))
            yield f'<pre style="margin:4px 0;white-space:pre-wrap">{text}</pre>'
            lines = []
        if isinstance(part, Table):
            yield table_html(part)


def table_html(table: Table) -> str:
    """Returns a table as HTML.

    >>> table = Table()
    >>> table.add_column("kind")
    >>> table.add_row("a<b")
    >>> table_html(table).partition("<tbody>")[2]
    '<tr><td style="padding:2px 8px;text-align:left">a&lt;b</td></tr></tbody></table>'
    """
    # Some notebooks (marimo) take all padding from tables, so that columns would touch.
    aligned = [f' style="padding:2px 8px;text-align:{column.justify}"' for column in table.columns]

    def row(cells: Sequence[str], tag: str) -> str:
        pairs = zip(cells, aligned, strict=True)
        made = (f"<{tag}{style}>{escape(cell)}</{tag}>" for cell, style in pairs)
        return f"<tr>{''.join(made)}</tr>"

    head, *rest = zip(*(column.texts for column in table.columns), strict=True)
    body = "".join(row(cells, "td") for cells in rest)
    return f"<table><thead>{row(head, 'th')}</thead><tbody>{body}</tbody></table>"
