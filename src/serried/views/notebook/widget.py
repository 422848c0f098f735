"""The live picture as an anywidget: what is drawn goes out, what was selected comes back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anywidget
import traitlets

from serried.views.notebook.drawn import Drawn

FOLDER = Path(__file__).parent


class PictureWidget(anywidget.AnyWidget):
    """Shows a view's picture; ``widget.js`` lights its rows and says which was selected."""

    _esm = FOLDER / "widget.js"
    _css = FOLDER / "widget.css"

    headline = traitlets.Unicode().tag(sync=True)
    picture = traitlets.Unicode().tag(sync=True)
    num_rows = traitlets.Int().tag(sync=True)
    kinds = traitlets.List(traitlets.Unicode()).tag(sync=True)
    kind = traitlets.Unicode().tag(sync=True)
    lit = traitlets.Dict().tag(sync=True)
    """The rows of the selected rank, and of the others that are selected with it."""
    told = traitlets.Unicode().tag(sync=True)
    words = traitlets.Dict().tag(sync=True)
    still = traitlets.Unicode().tag(sync=True)
    """The mark of the still picture that this one stands for."""
    picked = traitlets.Dict().tag(sync=True)
    """The row that was selected in the browser, -1 for none, and how many were before it."""

    def hear(self, row: Callable[[int], None], kind: Callable[[str], None]) -> None:
        """Says who is told of the row and of the kind of groups that were chosen in the browser."""
        self.observe(lambda change: row(int(change.new.get("row", -1))), "picked")
        self.observe(lambda change: kind(change.new), "kind")

    def redraw(self, drawn: Drawn) -> None:
        """Sends the picture."""
        with self.hold_sync():
            self.headline, self.picture = drawn.headline, drawn.picture
            self.num_rows, self.kinds, self.kind = len(drawn.rows), list(drawn.kinds), drawn.kind

    def light(self, strong: list[int], others: list[int], told: str) -> None:
        """Sends which rows are selected, and what is said of them."""
        with self.hold_sync():
            self.lit, self.told = {"strong": strong, "others": others}, told
