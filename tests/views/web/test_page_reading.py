"""The page opens while a trace is still read: the map at once, the timeline by itself."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from serried.trace.formats.reading import read_recording
from serried.views.web.opening import reading
from serried.views.web.opening.desk import OpeningDesk
from tests.page import Open
from tests.trace.recorded_run import Run
from tests.views.web.served import served

RUN = Run(pp=2, dp=2, num_microbatches=2, num_steps=1)


@pytest.mark.parametrize("lang", ["en-US", pytest.param("zh-CN", marks=pytest.mark.soak)])
def test_the_page_says_what_is_read_and_then_shows_it(
    page_of: Open, tmp_path: Path, lang: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RUN.write(tmp_path / "big")
    may_go_on = threading.Event()

    def slowly(*places: object, **others: object) -> object:
        assert may_go_on.wait(60)
        return read_recording(*places, **others)  # type: ignore[arg-type]

    monkeypatch.setattr(reading, "read_recording", slowly)
    desk = OpeningDesk()
    desk.open(folder)
    with served(desk) as address:
        bench = page_of(address, lang=lang)
        assert (
            bench.text("#trace-reading")
            == {
                "en-US": "Reading big; the timeline opens by itself.",
                "zh-CN": "正在读取 big，读完后时间线会自动打开。",
            }[lang]
        )
        assert bench.read("lit()") == []
        may_go_on.set()
        bench.page.wait_for_selector("#timeline-section:not([hidden])")
        bench.settle()
        assert bench.page.locator("#trace-reading").is_hidden()
        assert bench.value("world_size") == "4"
