"""A link says which run it means, and the page says where that run is not the one that is open."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from serried.views.web.opening.desk import OpeningDesk
from serried.views.web.opening.opening import Opening
from serried.views.web.opening.reading import Opened
from serried.views.web.trace.payload import NamedTrace
from tests.page import Open
from tests.soaked import rows
from tests.trace.recorded_run import Run
from tests.trace.simulated_run import simulated_run
from tests.views.web.served import served
from tests.views.web.workbench import Workbench

SAID = {
    "en-US": "This link is of run elsewhere, which is not open here; what stands below is first.",
    "zh-CN": "这个链接指的是运行 elsewhere，这里没有打开它；下面是 first。",
}


@pytest.fixture(scope="module")
def both() -> Iterator[str]:
    """The address of a workbench with two runs."""
    run = simulated_run()
    traces = [
        NamedTrace("first", dataclasses.replace(run, run="aaaa")),
        NamedTrace("second", dataclasses.replace(run, run="bbbb")),
    ]
    with served(traces) as address:
        yield address


def words_of(workbench: Workbench) -> dict[str, list[str]]:
    workbench.page.evaluate("serried.written()")
    return parse_qs(workbench.query())


def test_the_address_names_the_run_in_view(page_of: Open, both: str) -> None:
    workbench = page_of(both, "")
    assert words_of(workbench)["run"] == ["aaaa"]
    workbench.page.select_option("#trace", "1")
    workbench.settle()
    assert (words_of(workbench)["run"], words_of(workbench)["trace"]) == (["bbbb"], ["1"])


def test_a_link_finds_its_run_wherever_it_is_open(page_of: Open, both: str) -> None:
    workbench = page_of(both, "run=bbbb&slice=3")
    words = words_of(workbench)
    assert (words["trace"], words["slice"]) == (["1"], ["3"])
    assert not workbench.page.is_visible("#trace-other")


@pytest.mark.parametrize("locale", rows(SAID, {"zh-CN"}))
def test_a_link_of_a_run_that_is_not_open_is_said_to_be_of_another(
    page_of: Open, both: str, locale: str
) -> None:
    workbench = page_of(both, "run=elsewhere&trace=1&slice=3&rank=2&time=0,9", lang=locale)
    note = workbench.text("#trace-other")
    assert note.startswith(SAID[locale].replace("first", "second"))
    words = words_of(workbench)
    assert "slice" not in words
    assert words["run"] == ["bbbb"]
    workbench.page.select_option("#trace", "0")
    workbench.settle()
    assert not workbench.page.is_visible("#trace-other")


def test_a_link_of_a_run_says_so_where_none_is_open(page_of: Open) -> None:
    with served([]) as address:
        workbench = page_of(address, "run=elsewhere&slice=3")
        assert workbench.text("#trace-other").startswith(
            "This link is of run elsewhere; no run is open here."
        )
        assert words_of(workbench)["run"] == ["elsewhere"]


class AwaitingDesk(OpeningDesk):
    """Is a desk that reads nothing until it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.let = threading.Event()

    def _read(self, opening: Opening) -> Opened:
        self.let.wait(60)
        return super()._read(opening)


@pytest.mark.parametrize(("query", "named", "pp"), [("run=bbbb", "bbbb", "4"), ("", "aaaa", "2")])
def test_runs_that_are_still_being_read_do_not_turn_the_page_from_its_own(
    page_of: Open, tmp_path: Path, query: str, named: str, pp: str
) -> None:
    desk = AwaitingDesk()
    for run in (Run(name="aaaa", pp=2), Run(name="bbbb"), Run(name="cccc", pp=1, dp=2)):
        desk.open(run.write(tmp_path / run.name))
    with served(desk) as address:
        workbench = page_of(address, query)
        assert workbench.page.locator("#trace-reading[hidden]").count() == 0
        desk.let.set()
        workbench.page.wait_for_selector("#trace-reading[hidden]", state="attached")
        workbench.page.evaluate("serried.opened()")
        assert words_of(workbench)["run"] == [named]
        assert workbench.value("pp") == pp
        assert workbench.page.locator("#trace option").count() == 3
