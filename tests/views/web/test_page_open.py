"""Anything is opened on the page: dropped under any name, served, cancelled, or refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from serried.trace.merge.files import RUN_MARK
from serried.views.web.opening.desk import OpeningDesk
from serried.views.web.opening.folder import recognised_as
from tests.page import Open
from tests.trace.recorded_run import Run
from tests.views.web.opening.samples import FILES
from tests.views.web.served import served
from tests.views.web.workbench import Workbench

RUN = Run(pp=2, dp=2, num_microbatches=2, num_steps=1)
TABS = {
    "kineto": "run",
    "log": "diagnose",
    "dump": "diagnose",
    "diagnosis": "diagnose",
    "check": "layout",
    "groups": "layout",
    "plan": "plan",
    "model": "plan",
    "script": "layout",
}
"""A file of each way to show one, and the tab that shows it."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(OpeningDesk()) as found:
        yield found


def choose(bench: Workbench, *paths: Path) -> None:
    """Chooses files as the dialog does, and waits until they are shown or refused."""
    bench.page.set_input_files("#launch-files", [*map(str, paths)])
    bench.page.evaluate("serried.opened()")


def test_each_file_opens_in_its_tab_whatever_it_is_called(
    page_of: Open, address: str, tmp_path: Path
) -> None:
    bench = page_of(address)
    for which, tab in TABS.items():
        path = tmp_path / f"{which} (copy).bin"
        path.write_bytes(FILES[which][2](tmp_path))
        bench.click("#view-schedule")
        choose(bench, path)
        assert bench.text("#alert") == "", which
        assert bench.read("state()")["view"] == tab, which
    assert bench.value("world_size") == "16"


def test_a_folder_is_one_thing(page_of: Open, address: str, tmp_path: Path) -> None:
    bench = page_of(address)
    folder = RUN.write(tmp_path / "my run")
    bench.page.set_input_files("#launch-folder", str(folder))
    bench.page.evaluate("serried.opened()")
    assert bench.read("state()")["view"] == "run"
    assert bench.read("slices()") > 0
    assert bench.value("world_size") == "4"


@pytest.mark.parametrize(
    ("lang", "sentence"),
    [
        (
            "en-US",
            "photo.png is a picture, which serried does not read; serried opens launch files",
        ),
        pytest.param(
            "zh-CN",
            "photo.png 是图片，serried 不读这种文件；能打开的有：启动文件",
            marks=pytest.mark.soak,
        ),
    ],
)
def test_what_cannot_be_opened_is_refused_in_one_sentence(
    page_of: Open, address: str, tmp_path: Path, lang: str, sentence: str
) -> None:
    bench = page_of(address, lang=lang)
    (tmp_path / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    choose(bench, tmp_path / "photo.png")
    assert bench.text("#alert").startswith(sentence)


def test_a_gigabyte_of_nothing_is_refused_before_it_is_sent(
    page_of: Open, address: str, tmp_path: Path
) -> None:
    bench = page_of(address)
    sent: list[str] = []
    bench.page.on("request", lambda request: sent.append(request.url))
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(1 << 30)
    choose(bench, tmp_path / "hole")
    assert bench.text("#alert").startswith("hole is binary and nothing that serried reads")
    assert not any("api/open?" in url for url in sent)


def test_what_is_being_sent_is_taken_back(page_of: Open, address: str, tmp_path: Path) -> None:
    bench = page_of(address)
    view = bench.read("state()")["view"]
    path = tmp_path / "console.log"
    path.write_bytes(FILES["log"][2](tmp_path))
    bench.page.route("**/api/open?*", lambda route: None)
    try:
        bench.page.set_input_files("#launch-files", str(path))
        bench.page.click("#opening-cancel")
        bench.page.evaluate("serried.opened()")
    finally:
        bench.page.unroute("**/api/open?*")
    assert not bench.page.is_visible("#opening")
    assert bench.text("#alert") == "" and bench.read("state()")["view"] == view


def test_a_file_that_breaks_off_is_refused_by_its_reader(
    page_of: Open, address: str, tmp_path: Path
) -> None:
    bench = page_of(address)
    data = FILES["check"][2](tmp_path)
    (tmp_path / "half").write_bytes(data[: len(data) // 2])
    choose(bench, tmp_path / "half")
    assert bench.text("#alert").startswith("half is no JSON: ")


def test_what_was_served_is_shown_and_a_second_tab_sees_it_too(
    page_of: Open, tmp_path: Path
) -> None:
    (tmp_path / "train").write_bytes(FILES["script"][2](tmp_path))
    desk = OpeningDesk()
    desk.open(tmp_path / "train")
    assert desk.settle(60)
    with served(desk) as address:
        for bench in (page_of(address), page_of(address)):
            assert bench.value("tp") == "4"
            assert "train" in bench.text("#reading-title")


def test_while_a_run_is_waited_for_nothing_says_that_none_is_open(
    page_of: Open, tmp_path: Path
) -> None:
    (tmp_path / RUN_MARK).touch()
    desk = OpeningDesk(waits=True)
    opening = desk.open(tmp_path, name="run", found=recognised_as(tmp_path, None))
    with served(desk) as address:
        page = page_of(address, "view=run").page
        page.get_by_text("no rank of run has recorded anything yet").wait_for()
        assert not page.locator("#absent").is_visible()
        desk.cancel(opening.number)
        page.locator("#absent").wait_for()
        assert "No run is open" in page.locator("#absent").inner_text()
        page.goto("about:blank")
