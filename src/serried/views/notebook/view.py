"""A view of a value in a notebook: its picture, live where that can be, and what is selected in it.

>>> from serried.api import layout
>>> job = view(layout(world_size=16, tp=2, pp=4), kind="dp", selection=Selection())
>>> job.select(rank=5)
>>> job.selected
Selected(rank=5, kind='dp', group=3, ranks=(5, 7))

A click on rank 5 does the same. Without a browser, or without anywidget, the picture stands still.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from serried.errors import InputError
from serried.mesh import Layout
from serried.views.notebook.drawn import Drawn
from serried.views.notebook.layout import rank_told, usual_kind
from serried.views.notebook.selection import (
    NOTHING,
    SHARED,
    Selected,
    Selection,
    SelectionListener,
    of_group,
    of_rank,
)
from serried.views.notebook.values import drawn, layout_beneath
from serried.views.sentences import environment_language, require_language, tell

if TYPE_CHECKING:
    from serried.views.notebook.widget import PictureWidget


def view(
    value: object,
    *,
    layout: Layout | None = None,
    kind: str | None = None,
    selection: Selection | None = None,
    gpus_per_node: int = 8,
    lang: str | None = None,
) -> View:
    """Returns a view of a layout, schedule, plan, trace or diagnosis that selects ranks.

    All views of a notebook share one selection, but those that are given another. ``layout`` tells
    which ranks a row of a schedule stands for, and which groups ranks are in; ``kind`` is the kind
    of groups in view. Raises InputError for another value, and for a kind that there is not.
    """
    lang = require_language(lang or environment_language())
    known = layout or layout_beneath(value)
    if known is not None:
        kind = known.kind(kind).name if kind else usual_kind(known)
    elif kind:
        raise InputError("no layout tells of groups here; give view(…, layout=…)")
    return View(
        value, known, kind or "", SHARED if selection is None else selection, gpus_per_node, lang
    )


class View(SelectionListener):
    """Shows a value, and holds what is selected in all views that share its selection."""

    def __init__(
        self,
        value: object,
        layout: Layout | None,
        kind: str,
        selection: Selection,
        gpus_per_node: int,
        lang: str,
    ) -> None:
        self.value, self.layout, self.kind, self.lang = value, layout, kind, lang
        self.gpus_per_node = gpus_per_node
        self.selection = selection
        self.drawn = self._draw()
        selection.views.add(self)

    @property
    def selected(self) -> Selected:
        """What is selected: here, or in another view that shares the selection.

        A layout tells the selected rank's group of its own kind, whichever view selected it; the
        ranks of a stage stay those of the stage.
        """
        found, job = self.selection.selected, self.value
        is_own = found.group is None or found.kind == self.kind
        if is_own or found.rank is None or not isinstance(job, Layout):
            return found
        return of_rank(found.rank, job, self.kind) if found.rank < job.world_size else found

    def select(
        self, rank: int | None = None, *, kind: str | None = None, group: int | None = None
    ) -> None:
        """Selects a rank with its group, or a group by its number; nothing without either.

        ``kind`` is the kind of groups from here on. Raises InputError for what there is not.
        """
        if kind is not None:
            self.show_kind(kind)
        if group is not None:
            self.selection.take(of_group(self.kind, group, self.layout))
        elif rank is not None:
            self.selection.take(of_rank(rank, self.layout, self.kind))
        else:
            self.selection.take(NOTHING)

    def select_row(self, row: int) -> None:
        """Selects what a row of the picture stands for: a rank, or the ranks of a place."""
        if not 0 <= row < len(self.drawn.rows):
            self.selection.take(NOTHING)
            return
        ranks = self.drawn.rows[row]
        one = of_rank(ranks[0], self.layout, self.kind)
        several = Selected(ranks[0], ranks=ranks)
        self.selection.take(one if len(ranks) == 1 else several)

    def show_kind(self, kind: str) -> None:
        """Colours ranks by another kind of groups; raises InputError for one that there is not."""
        if self.layout is None:
            raise InputError("no layout tells of groups here; give view(…, layout=…)")
        if kind == self.kind:
            return
        self.kind = self.layout.kind(kind).name
        self.drawn = self._draw()
        if self.has_widget:
            self.widget.redraw(self.drawn)
        if self.selected.rank is not None:
            self.select(self.selected.rank)

    def rows_of_selected(self) -> tuple[list[int], list[int]]:
        """Returns the rows of the selected rank, and those of the others that are selected."""
        chosen, ranks = self.selected.rank, {*self.selected.ranks}
        strong = [row for row, held in enumerate(self.drawn.rows) if chosen in held]
        lit = [row for row, held in enumerate(self.drawn.rows) if ranks.intersection(held)]
        return strong, [row for row in lit if row not in strong]

    def told(self) -> str:
        """Returns in one line what is selected."""
        chosen = self.selected
        if chosen.rank is None and chosen.group is None:
            return tell("nothing is selected", self.lang)
        layout = self.layout
        if chosen.rank is None or layout is None or chosen.rank >= layout.world_size:
            ranks = " ".join(map(str, chosen.ranks))
            return tell("selected ranks: {ranks}", self.lang, ranks=ranks)
        return "; ".join(rank_told(layout, chosen.rank, self.kind, self.lang))

    def selection_changed(self) -> None:
        """Shows what is selected now."""
        if self.has_widget:
            self.widget.light(*self.rows_of_selected(), self.told())

    @property
    def has_widget(self) -> bool:
        """Whether it was shown live."""
        return "widget" in self.__dict__

    @cached_property
    def widget(self) -> PictureWidget:
        """The anywidget that shows it live; raises ModuleNotFoundError where that is missing."""
        from serried.views.notebook.widget import PictureWidget

        words = {
            "colour": tell("coloured by", self.lang),
            "how": tell("click a rank, or use the arrow keys; Escape selects nothing", self.lang),
        }
        made = PictureWidget(still=self.mark, words=words)
        made.redraw(self.drawn)
        made.light(*self.rows_of_selected(), self.told())
        made.hear(self.select_row, self.show_kind)
        return made

    @cached_property
    def mark(self) -> str:
        """What the still picture is found by when the live one has been drawn."""
        return uuid4().hex

    def _draw(self) -> Drawn:
        return drawn(
            self.value,
            layout=self.layout,
            kind=self.kind if isinstance(self.value, Layout) else "",
            lang=self.lang,
            gpus_per_node=self.gpus_per_node,
        )

    def __repr__(self) -> str:
        return self.drawn.text()

    def _repr_html_(self) -> str:
        return f'<div data-serried="{self.mark}">{self.drawn.html()}</div>'

    def _ipython_display_(self) -> None:
        """Shows the still picture, which an exported notebook keeps, then the live one."""
        from IPython.display import display as show

        display: Callable[..., object] = show
        still = {"text/plain": repr(self), "text/html": self._repr_html_()}
        display(still, raw=True)
        if find_spec("anywidget"):
            display(self.widget)

    def _display_(self) -> Any:
        """Returns what marimo shows."""
        if find_spec("anywidget"):
            return self.widget
        import marimo

        return marimo.Html(self._repr_html_())
