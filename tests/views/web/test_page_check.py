"""A check's report in the browser: links as colours on the map, and what was found slow."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from serried.views.web.check.heat import read_check
from tests.page import Open
from tests.views.web import slow_node
from tests.views.web.served import served


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a workbench without a trace and with a report."""
    file = tmp_path_factory.mktemp("checks") / "monday.json"
    file.write_text(json.dumps(slow_node.document()))
    with served(checks=[read_check(file)]) as address:
        yield address


def test_the_page_opens_on_the_layout_that_was_checked_in_the_colours_of_its_links(
    page_of: Open, checked: str
) -> None:
    workbench = page_of(checked)
    assert (workbench.value("world_size"), workbench.value("tp")) == ("6", "2")
    assert workbench.value("heat") == "check0.best_send"
    assert "0.25 ×" in workbench.text("#heat-panel")


def test_what_was_found_is_told_in_either_language_and_leads_to_its_ranks(
    page_of: Open, checked: str
) -> None:
    workbench = page_of(checked)
    assert "slower than its like" in workbench.text(".findings")
    workbench.click(".findings button.rank >> nth=1")
    workbench.page.wait_for_url("**rank=3*")
    chinese = page_of(checked, "lang=zh")
    assert "同类" in chinese.text(".findings") and "检测" in chinese.text("#heat-panel")


def test_another_layout_is_not_coloured_until_it_is_that_of_the_check_again(
    page_of: Open, checked: str
) -> None:
    workbench = page_of(checked)
    workbench.fill(tp="1")
    assert "another layout than the one that was checked" in workbench.text("#heat-panel")
    workbench.click("#heat-panel button")
    assert workbench.value("tp") == "2" and "0.25 ×" in workbench.text("#heat-panel")


def test_another_figure_is_chosen_and_kept_in_the_address(page_of: Open, checked: str) -> None:
    workbench = page_of(checked)
    workbench.choose("heat", "check0.worst_receive")
    assert "heat=check0.worst_receive" in workbench.query()
    assert "slowest link in" in workbench.text("#heat-panel")
    workbench.choose("heat", "")
    assert not workbench.page.is_visible("#heat-panel")
