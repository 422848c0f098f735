"""Every tab for everybody: what axe-core finds wrong, in both themes, and how far the map is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from serried.diagnose.diagnosis import Diagnosis
from serried.views.web.diagnose.cases import NamedCase
from tests.page import Open
from tests.views.web.diagnose.test_cases import HUNG
from tests.views.web.served import served
from tests.views.web.workbench import Workbench

AXE = Path(__file__).parents[3] / "node_modules" / "axe-core" / "axe.min.js"
STATES = (
    *("view=layout&rank=5&side=selected", "view=schedule", "view=plan&searched=1"),
    "view=learn&card=etp&side=learn",
    *(
        pytest.param(state, marks=pytest.mark.soak)
        for state in (
            "view=layout&dims=dp,tp&side=groups",
            "view=learn",
            "view=layout&tp=1&pp=1&dims=dp&zero=3&sharded=1",
        )
    ),
)
SMALLEST = 24
"""Pixels that whatever is pressed is at least wide and high (WCAG 2.2, 2.5.8)."""


@pytest.fixture(scope="module")
def hung() -> Iterator[str]:
    """The address of a workbench with a diagnosis."""
    diagnosis = Diagnosis((HUNG,), ranks_heard=(0, 1, 2, 3))
    with served(cases=[NamedCase("job", diagnosis, {"world_size": "6"}, 6)]) as address:
        yield address


def violations(workbench: Workbench) -> list[str]:
    """Returns what axe-core finds wrong, a line for each rule with the elements it is of.

    In the other theme it looks at contrast alone: no other rule hangs on colours.
    """
    page = workbench.page
    if not page.evaluate("typeof window.axe === 'object'"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found = _found(workbench, "{ resultTypes: ['violations'] }")
    page.emulate_media(color_scheme="dark")
    try:
        workbench.settle()
        return found + _found(workbench, "{ runOnly: ['color-contrast'] }")
    finally:
        page.emulate_media(color_scheme="light")


def _found(workbench: Workbench, options: str) -> list[str]:
    found: dict[str, Any] = workbench.page.evaluate(f"axe.run(document, {options})")
    return [
        f"{each['id']}: {[node['target'] for node in each['nodes'][:4]]}"
        for each in found["violations"]
    ]


def small(workbench: Workbench) -> list[str]:
    """Returns what is pressed and is smaller than ``SMALLEST``, with its width and height."""
    found: list[str] = workbench.page.evaluate(
        """(least) => [...document.querySelectorAll(
          "button, select, input, summary, [role=tab]")]
          .filter((each) => each.checkVisibility() && each.id !== "skip-map")
          .map((each) => [each.id || each.textContent.trim(), each.getBoundingClientRect()])
          .filter(([, { width, height }]) => width && (width < least || height < least))
          .map(([name, { width, height }]) => `${name} ${width} x ${height}`)""",
        SMALLEST,
    )
    return found


@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing_wrong_in_either_theme_and_whatever_is_pressed_is_large_enough(
    page_of: Open, plain: str, state: str
) -> None:
    workbench = page_of(plain, state)
    assert small(workbench) == []
    assert violations(workbench) == []


def test_axe_finds_nothing_wrong_with_a_run(page_of: Open, traced: str) -> None:
    workbench = page_of(traced, "view=run")
    assert small(workbench) == []
    assert violations(workbench) == []


def test_axe_finds_nothing_wrong_with_a_diagnosis(page_of: Open, hung: str) -> None:
    assert violations(page_of(hung, "view=diagnose")) == []


def test_whatever_is_pressed_is_large_enough_where_there_is_no_run(
    page_of: Open, plain: str
) -> None:
    assert small(page_of(plain, "view=run")) == []


def test_the_map_is_at_most_five_tabs_away(page_of: Open, plain: str) -> None:
    workbench = page_of(plain)
    workbench.page.evaluate("document.activeElement.blur()")
    for _ in range(5):
        workbench.page.keyboard.press("Tab")
        reached = workbench.page.evaluate("document.activeElement.id")
        if reached == "skip-map":
            workbench.page.keyboard.press("Enter")
            reached = workbench.page.evaluate("document.activeElement.id")
        if reached == "map":
            return
    pytest.fail("five Tabs do not reach the map")
