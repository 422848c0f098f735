"""How a value shows itself where it ends a cell of a notebook, and gives itself as a table.

Drawing is the work of views, which no value knows: the package names them once
(``serried/__init__.py``), and they are loaded when something is first shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Showing(Protocol):
    """Says what views do for a value."""

    def mime_bundle(self, value: object) -> dict[str, str]:
        """Returns a value as text and as HTML, by their MIME types."""

    def table_of(self, value: object, part: str, into: str | None) -> Any:
        """Returns a part of a value as a data frame."""


_LOADED: list[Callable[[], Showing]] = []


def show_by(load: Callable[[], Showing]) -> None:
    """Says how to load what shows values."""
    _LOADED[:] = [load]


class Displayed:
    """Gives a value its picture in Jupyter, VS Code and marimo, and its table."""

    __slots__ = ()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return _LOADED[0]().mime_bundle(self)

    def _repr_html_(self) -> str:
        return _LOADED[0]().mime_bundle(self)["text/html"]

    def table(self, part: str = "", *, into: str | None = None) -> Any:
        """Returns its rows as a data frame, whose columns say their units.

        ``part`` is one of several tables, by default the first (docs/notebook.md lists them);
        ``into`` is pandas, polars or arrow, by default whichever is imported, else installed.
        Raises InputError for a part that there is not, EnvironmentProblem without all three.
        """
        return _LOADED[0]().table_of(self, part, into)
