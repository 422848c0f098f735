"""The page says what is wrong with a run before all else, and shows where; a link holds it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from serried.trace.formats.reading import read_trace
from serried.views.web.trace.findings import findings_answer
from serried.views.web.trace.payload import NamedTrace
from tests.trace.simulated_run import simulated_run
from tests.views.web.served import served
from tests.views.web.trace.test_live import Job
from tests.views.web.workbench import Workbench

Open = Callable[..., Workbench]
MS = 1_000_000


def late(pipeline: int, step: int, stage: int, microbatch: int) -> int:
    """Returns how long a forward takes: that of stage 1 once takes much longer."""
    return (9 if (step, stage, microbatch) == (3, 1, 2) else 1) * MS


RUN = NamedTrace("run", simulated_run(pp=4, dp=1, num_steps=8, forward=late))


@pytest.fixture(scope="module")
def run() -> Iterator[str]:
    with served([RUN]) as address:
        yield address


def test_a_run_opens_on_its_verdict_and_its_middling_step(page_of: Open, run: str) -> None:
    workbench = page_of(run)
    found = findings_answer(RUN)
    verdict = workbench.page.locator("#findings .verdict > *")
    assert verdict.all_inner_texts() == found["verdict"]["en"]
    assert workbench.page.locator("#findings .card").count() == len(found["cards"])
    shown, steps = workbench.read("view()")["timeline"], RUN.shown.steps
    middle = RUN.shown.middle
    begin, end = (steps[f"step:{edge}_ns"][middle] for edge in ("start", "end"))
    assert shown["start"] < begin < end < shown["end"]
    assert shown["end"] - shown["start"] < 1.2 * (end - begin)
    assert "time=" not in workbench.query()


def test_a_card_shows_where_it_is_on_map_timeline_and_address(page_of: Open, run: str) -> None:
    workbench = page_of(run)
    card = findings_answer(RUN)["cards"][0]
    shows = card["shows"]
    workbench.click("#findings .card >> nth=0")
    state = workbench.read("state()")
    assert (workbench.read("timeline()")["selected"], state["range"]) == (
        shows["slice"],
        f"{shows['from_ns']},{shows['to_ns']},{shows['rank']}",
    )
    assert shows["rank"] in workbench.read("lit()")
    why = workbench.text("#selected .why")
    assert card["lines"]["en"][0] in why
    assert all(each in why for each in card["more"]["en"])
    view = workbench.read("view()")["timeline"]
    assert view["start"] < shows["from_ns"] < shows["to_ns"] < view["end"]


def test_a_microbatch_is_followed_from_stage_to_stage(page_of: Open, run: str) -> None:
    workbench = page_of(run)
    workbench.page.fill("#timeline-search", "0F2 step 3")
    workbench.press("Enter")
    assert workbench.read("state()")["followed"] == "1"
    names = []
    for _ in range(5):
        names.append(workbench.read("slice(serried.timeline().selected)")["name"])
        workbench.press("]")
    assert names == ["0F2", "1F2", "2F2", "3F2", "3B2"]
    workbench.press("[", "[")
    assert workbench.read("slice(serried.timeline().selected)")["name"] == "3F2"
    shown = workbench.read("view()")["timeline"]
    kin = [workbench.read(f"slice({each})") for each in workbench.read("timeline()")["kin"]]
    assert shown["start"] < min(each["start_ns"] for each in kin)
    assert shown["end"] > max(each["end_ns"] for each in kin)
    workbench.press("Escape")
    assert workbench.read("state()")["followed"] == ""


def test_the_minimap_moves_the_view_and_all_is_a_key_away(page_of: Open, run: str) -> None:
    workbench = page_of(run)
    box = workbench.page.locator("#minimap").bounding_box()
    assert box is not None
    workbench.page.mouse.click(box["x"] + box["width"] - 30, box["y"] + box["height"] / 2)
    workbench.settle()
    total = float(RUN.shown.table.total_ns)
    shown = workbench.read("view()")["timeline"]
    assert (shown["start"] + shown["end"]) / 2 > 0.9 * total
    workbench.page.focus("#timeline")
    workbench.press("0")
    shown = workbench.read("view()")["timeline"]
    assert shown["start"] <= 0
    assert shown["end"] >= total


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    job = Job(tmp_path / "live")
    yield job
    job.close()


def test_a_run_that_is_being_written_is_followed(page_of: Open, job: Job) -> None:
    for step in range(6):
        job.step(step)
    named = NamedTrace("live", read_trace([job.folder]), place=job.folder)
    with served([named]) as address:
        workbench = page_of(address)
        workbench.page.wait_for_selector("#timeline-live:visible")
        before = workbench.read("view()")["timeline"]
        workbench.click("#timeline-live")
        slices = workbench.read("slices()")
        for step in range(6, 9):
            job.step(step)
        workbench.page.evaluate(
            "async (before) => { while (serried.slices() <= before)"
            " await new Promise(requestAnimationFrame); }",
            slices,
        )
        workbench.settle()
        after = workbench.read("view()")["timeline"]
        width = after["end"] - after["start"]
        assert width == pytest.approx(before["end"] - before["start"])
        total = 8_350
        assert after["start"] < total < after["end"]
        assert workbench.read("state()")["live"] == "1"
        job.step(9)
        job.close()
        workbench.page.wait_for_selector("#timeline-live", state="hidden")
        workbench.settle()
        assert workbench.read("view()")["timeline"]["end"] > 9_350, "followed to its very end"


def test_an_address_names_the_same_span_in_the_longer_run(page_of: Open, job: Job) -> None:
    for step in range(3):
        job.step(step)
    named = NamedTrace("live", read_trace([job.folder]), place=job.folder)
    selected = 'slice(serried.timeline().selected)["start_ns"]'
    with served([named]) as address:
        workbench = page_of(address, "slice=1.1200")
        number = workbench.read("timeline()")["selected"]
        assert workbench.read(selected) == 1200
        for step in range(3, 6):
            job.step(step)
        workbench.page.evaluate(
            "async (before) => { while (serried.timeline().selected <= before)"
            " await new Promise(requestAnimationFrame); }",
            number,
        )
        assert workbench.read(selected) == 1200
        number = workbench.read("timeline()")["selected"]
        workbench.open(f"slice={number}")
        assert workbench.read(selected) == 1200, "older addresses name spans by number"
        workbench.open("slice=1.1201")
        assert "names span 1.1201, which this run does not have" in workbench.text("#trace-other")
        assert workbench.read("timeline()")["selected"] == -1


def test_a_run_that_vanishes_while_it_is_looked_at_stays_usable(page_of: Open, job: Job) -> None:
    job.step(0)
    job.step(1)
    named = NamedTrace("live", read_trace([job.folder]), place=job.folder)
    with served([named]) as address:
        workbench = page_of(address)
        workbench.page.wait_for_selector("#timeline-live:visible")
        slices = workbench.read("slices()")
        shutil.rmtree(job.folder)
        workbench.page.get_by_text("is not there any more").wait_for()
        assert workbench.read("slices()") == slices > 0
        workbench.choose("heat", "idle")
        assert workbench.read("heat(0)") and workbench.text("#alert") == "", "the page goes on"
