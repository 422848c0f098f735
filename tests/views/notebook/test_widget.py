"""The live picture in a real browser, its model the widget that a notebook would hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

import serried
from serried.views.notebook.selection import Selection
from serried.views.notebook.view import View
from serried.views.notebook.widget import FOLDER

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TRAITS = (
    "headline",
    "picture",
    "num_rows",
    "kinds",
    "kind",
    "lit",
    "told",
    "words",
    "still",
    "picked",
)
HOST = """async ([source, names, first]) => {
  const { default: widget } = await import(source);
  window.mount = (name, state) => {
    const heard = {};
    const changed = {};
    const model = {
      get: (trait) => state[trait],
      set: (trait, value) => { state[trait] = value; changed[trait] = value; },
      save_changes: () => { window.told(name, { ...changed }); },
      on: (event, listener) => (heard[event] ??= []).push(listener),
      off: () => {},
    };
    window.given = { ...window.given, [name]: (values) => {
      Object.assign(state, values);
      for (const trait of Object.keys(values)) heard[`change:${trait}`]?.forEach((tell) => tell());
    } };
    const el = document.createElement("div");
    el.id = name;
    document.body.append(el);
    return widget.render({ model, el });
  };
  for (const name of names) window.mount(name, first[name]);
}"""
"""A notebook's part: it mounts a widget over a model, and hands on what changes either way."""


class Notebook:
    """A page that holds views as a notebook does: state goes out, changes come back."""

    def __init__(self, page: Page, views: dict[str, View]) -> None:
        self.page, self.views = page, views
        self.page.expose_function("told", self._told)
        stills = "".join(view._repr_html_() for view in views.values())
        style = (FOLDER / "widget.css").read_text(encoding="utf-8")
        page.set_content(f"<style>{style}</style>{stills}")
        source = (FOLDER / "widget.js").read_text(encoding="utf-8")
        first = {name: self._state(view) for name, view in views.items()}
        page.evaluate(HOST, [f"data:text/javascript,{quote(source)}", [*views], first])

    @staticmethod
    def _state(view: View) -> dict[str, Any]:
        return {trait: getattr(view.widget, trait) for trait in TRAITS}

    def _told(self, name: str, changes: dict[str, Any]) -> None:
        for trait, value in changes.items():
            setattr(self.views[name].widget, trait, value)

    def hand_out(self) -> None:
        """Brings every widget's state to its picture, as a kernel does after each change."""
        for name, view in self.views.items():
            state = self._state(view)
            self.page.evaluate("([name, state]) => window.given[name](state)", [name, state])

    def selected(self) -> tuple[int, ...]:
        return self.views["ranks"].selected.ranks

    def lit(self, name: str, mark: str) -> list[int]:
        """Returns the rows that a picture has marked."""
        rows = self.page.eval_on_selector_all(
            f"#{name} .serried-{mark}", "marks => marks.map((each) => Number(each.dataset.row))"
        )
        return sorted({*rows})


@pytest.fixture
def notebook(browser: Browser) -> Iterator[Notebook]:
    both = Selection()
    job = serried.layout(world_size=16, tp=2, pp=4)
    schedule = serried.schedule("1f1b", stages=4, microbatches=4)
    page = browser.new_page()
    yield Notebook(
        page,
        {
            "ranks": serried.view(job, kind="dp", selection=both),
            "rows": serried.view(schedule, layout=job, selection=both),
        },
    )
    page.close()


def test_a_clicked_rank_is_read_back_and_lit_in_every_view(notebook: Notebook) -> None:
    page = notebook.page
    page.click('#ranks [data-row="5"]')
    page.wait_for_function("document.querySelector('#ranks .serried-strong')")
    assert notebook.selected() == (5, 7)
    notebook.hand_out()
    assert (notebook.lit("ranks", "strong"), notebook.lit("ranks", "other")) == ([5], [7])
    assert notebook.lit("rows", "strong") == [1]
    assert "rank 5" in page.inner_text("#ranks .serried-told")
    page.press("#rows .serried-picture", "ArrowDown")
    assert notebook.selected() == (8, 9, 10, 11)
    page.press("#rows .serried-picture", "Escape")
    assert notebook.selected() == ()


def test_another_kind_colours_anew_and_the_still_picture_is_gone(notebook: Notebook) -> None:
    page, view = notebook.page, notebook.views["ranks"]
    assert page.locator("figure:visible").count() == 0
    before = page.inner_html("#ranks .serried-picture")
    page.select_option("#ranks select", "pp")
    assert view.kind == "pp"
    notebook.hand_out()
    assert page.inner_html("#ranks .serried-picture") != before
    assert json.loads(json.dumps(notebook._state(view)))["kind"] == "pp"
