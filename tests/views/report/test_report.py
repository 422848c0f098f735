"""A report opens from disk with every tab's picture, asks nobody, and says what it lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from serried.views.report.document import ABSENT, OLD_BROWSER
from serried.views.sentences import say
from tests.conftest import Call
from tests.trace.recorded_run import Run

SMALL = Run(pp=2, tp=2, dp=2, num_microbatches=4, num_steps=3)
Opened = Callable[[Path], Page]


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    """Opens a report from disk; any request, error or word of its policy fails the test."""
    wrongs: list[str] = []
    context = browser.new_context(viewport={"width": 1400, "height": 900}, locale="en-US")

    def open_page(path: Path) -> Page:
        page = context.new_page()
        page.on("console", lambda message: wrongs.append(message.text))
        page.on("pageerror", lambda error: wrongs.append(str(error)))
        own = (path.as_uri(), "data:", "blob:")
        page.on("request", lambda r: None if r.url.startswith(own) else wrongs.append(r.url))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-spoken]", state="attached")
        page.evaluate("serried.settled()")
        return page

    yield open_page
    context.close()
    assert wrongs == []


def test_every_tab_of_a_run_s_report_shows_what_a_server_would(
    opened: Opened, serried: Call, tmp_path: Path
) -> None:
    SMALL.write(tmp_path / "run")
    serried("report", str(tmp_path / "run"), "-o", str(tmp_path / "run.html"))
    page = opened(tmp_path / "run.html")
    assert page.evaluate("serried.state()")["view"] == "run"
    assert page.evaluate("serried.slices()") > 0
    assert "bubble" in page.locator("#timeline-section").inner_text()
    for tab in ("layout", "schedule", "plan", "run"):
        page.click(f"#view-{tab}")
        page.evaluate("serried.settled()")
        assert say(ABSENT, "en") not in page.locator("body").inner_text()
    page.select_option("#heat", "idle")
    page.evaluate("serried.settled()")
    assert page.evaluate("serried.heat(0)"), "figures of the run colour the map"
    place = page.evaluate("serried.where(3)")
    page.mouse.click(place["x"], place["y"])
    page.evaluate("serried.settled()")
    assert "rank 3" in page.locator("#right").inner_text().lower()


def test_on_paper_a_report_keeps_the_shape_that_it_has_on_the_screen(
    opened: Opened, serried: Call, tmp_path: Path
) -> None:
    SMALL.write(tmp_path / "run")
    serried("report", str(tmp_path / "run"), "-o", str(tmp_path / "run.html"))
    page = opened(tmp_path / "run.html")
    heights = """() => ["#map", "#timeline"].map(
        (name) => document.querySelector(name).clientHeight
    )"""
    on_screen = page.evaluate(heights)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    width, height = page.evaluate(
        "(({ width, height }) => [width, height])(document.body.getBoundingClientRect())"
    )
    # A sheet of A4 on its side is 1,047 pixels wide within its margins, and the window 1,400.
    assert width == pytest.approx(1047, abs=1)
    assert width / height == pytest.approx(1400 / 900, rel=0.01)
    assert page.evaluate(heights) == pytest.approx(on_screen, abs=1)
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.querySelector('#map').parentElement.style.height") == ""
    assert page.evaluate(heights) == pytest.approx(on_screen, abs=1)


def test_a_report_of_a_hang_opens_with_its_verdict_and_the_ranks_on_the_map(
    opened: Opened, serried: Call, tmp_path: Path
) -> None:
    log = (
        "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has"
        " a total capacity of 79.15 GiB of which 1.02 GiB is free.\n"
    )
    (tmp_path / "job.log").write_text(log)
    serried("report", str(tmp_path / "job.log"), "-o", str(tmp_path / "hang.html"))
    page = opened(tmp_path / "hang.html")
    assert page.evaluate("serried.state()")["view"] == "diagnose"
    assert "rank 1" in page.locator("main").inner_text()
    folded = page.locator("#diagnose-cures")
    assert not folded.is_visible()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert folded.is_visible(), "paper has no clicks"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not folded.is_visible()
    assert page.evaluate("serried.heat(1)"), "the culprit is coloured on the map"


def test_a_link_says_what_the_report_opens_with_and_the_rest_is_said_to_be_absent(
    opened: Opened, serried: Call, tmp_path: Path
) -> None:
    link = "http://localhost:8765/?view=plan&world_size=64&tp=8&pp=2&model=llama3-70b&token=secret"
    serried("report", "-o", str(tmp_path / "plan.html"), "--link", link)
    assert "secret" not in (tmp_path / "plan.html").read_text(encoding="utf-8")
    page = opened(tmp_path / "plan.html")
    assert page.evaluate("serried.state()")["model"] == "llama3-70b"
    assert page.evaluate("serried.plan()")["step_s"] > 0
    # Another job than the report's own is not in it, which the page says as any refusal.
    page.goto(f"{(tmp_path / 'plan.html').as_uri()}?view=layout&world_size=128&tp=8")
    page.wait_for_selector("html[data-spoken]", state="attached")
    page.evaluate("serried.settled()")
    assert say(ABSENT, "en") in page.locator("[role=alert]:visible").first.inner_text()


def test_a_report_whose_module_was_altered_does_not_run(
    browser: Browser, serried: Call, tmp_path: Path
) -> None:
    path = tmp_path / "altered.html"
    serried("report", "-o", str(path))
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("document.body.append(script)", "document.title = 'altered'"))
    context = browser.new_context()
    page = context.new_page()
    with page.expect_console_message(lambda message: "Content Security" in message.text):
        page.goto(path.as_uri())
    assert page.title() != "altered"
    context.close()


def test_a_run_that_is_still_written_is_reported_as_far_as_it_goes(
    opened: Opened, serried: Call, tmp_path: Path
) -> None:
    for path in SMALL.write(tmp_path / "run").rglob("*.spans"):
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) * 3 // 4])
    serried("report", str(tmp_path / "run"), "-o", str(tmp_path / "run.html"))
    assert opened(tmp_path / "run.html").evaluate("serried.slices()") > 0


def test_a_folder_that_holds_nothing_to_read_is_refused_and_writes_nothing(
    serried: Call, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    answer = serried("report", str(tmp_path / "empty"), "-o", str(tmp_path / "x.html"))
    assert answer.code == 2
    assert not (tmp_path / "x.html").exists()


def test_a_name_that_is_no_report_s_is_refused_in_a_sentence(serried: Call, tmp_path: Path) -> None:
    answer = serried("report", "-o", str(tmp_path / "x.txt"))
    assert (answer.code, "does not end so" in answer.err) == (2, True)


def test_a_launch_file_s_own_job_is_reported_and_what_it_leaves_open_is_asked_for(
    opened: Opened, serried: Call, tmp_path: Path
) -> None:
    script = tmp_path / "train.sh"
    script.write_text("torchrun --nnodes $N pretrain_gpt.py --tensor-model-parallel-size 4\n")
    path = tmp_path / "job.html"
    answer = serried("report", str(script), "-o", str(path))
    assert (answer.code, "world_size" in answer.err, path.exists()) == (2, True, False)
    serried("report", str(script), "-o", str(path), "--link", "?world_size=32")
    state = opened(path).evaluate("serried.state()")
    assert (state["world_size"], state["tp"], state["pp"]) == ("32", "4", "1")


@pytest.mark.parametrize("link", ["?world_size=64&tp=3", "?pp=x", "?world_size=1000000000"])
def test_a_layout_that_cannot_be_is_refused_before_anything_is_written(
    serried: Call, tmp_path: Path, link: str
) -> None:
    answer = serried("report", "-o", str(tmp_path / "x.html"), "--link", link)
    assert answer.code == 2 and "Traceback" not in answer.err
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize("link", ["my job", "javascript:alert(1)", "train.sh?"])
def test_what_is_no_link_is_refused_and_no_other_job_reported(
    serried: Call, tmp_path: Path, link: str
) -> None:
    answer = serried("report", "-o", str(tmp_path / "x.html"), "--link", link)
    assert (answer.code, f"--link {link} is no link of the workbench" in answer.err) == (2, True)
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_browser_that_cannot_unpack_a_report_is_told_so(
    browser: Browser, serried: Call, tmp_path: Path, lang: str
) -> None:
    link = f"?view=layout&world_size=8&tp=2&pp=1&lang={lang}"
    serried("report", "-o", str(tmp_path / "r.html"), "--link", link, "--lang", lang)
    context = browser.new_context()
    try:
        context.add_init_script("delete window.DecompressionStream")
        page = context.new_page()
        page.goto((tmp_path / "r.html").as_uri())
        assert page.inner_text("body").strip() == say(OLD_BROWSER, lang)
    finally:
        context.close()
