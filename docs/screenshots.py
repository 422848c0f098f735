"""Takes the pictures of docs/images from the running page, and draws those that commands write.

    python docs/screenshots.py                       records a run with `serried demo` first
    python docs/screenshots.py --trace runs/demo-…/emulated

Chromium (on PATH) and Playwright for Python must be there.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, ViewportSize, sync_playwright

IMAGES = Path(__file__).parent / "images"
SERRIED = [sys.executable, "-c", "from serried.views.cli.main import main; main()"]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SCHEDULES = "view=schedule&latency=1/4&memory_limit=4&show=strips,path&action=1:2I3"
PLAN = "dims=dp,tp,pp&world_size=64&tp=8&pp=4&planned=1&model=llama3-70b&global_batch=128"
HANG = "view=diagnose&world_size=8&tp=2&pp=2&order=tp-dp-pp&dims=dp,tp,pp&diagnosed="
HANG += "example:skipped-all-reduce"
LARGE = "dims=dp,tp,pp,cp&world_size=16384&tp=8&pp=16&cp=2"


@dataclass(frozen=True)
class Shot:
    """Is one picture: its file, the state of the page, and the rank that is pointed at.

    Of a trace, ``steps`` says how many of the first steps are in view.
    """

    name: str
    query: str
    lang: str = "en-US"
    rank: int | None = None
    steps: int = 0


SHOTS = (
    Shot("workbench", "dims=dp,tp,pp&rank=1", steps=2),
    Shot("workbench.zh", "dims=dp,tp,pp&rank=1", lang="zh-CN", steps=2),
    Shot("groups", "rank=5"),
    Shot("groups.zh", "rank=5", lang="zh-CN"),
    Shot("schedule", SCHEDULES),
    Shot("schedule.zh", SCHEDULES, lang="zh-CN"),
    Shot("plan", PLAN),
    Shot("plan.zh", PLAN, lang="zh-CN"),
    Shot("plan-search", f"{PLAN}&searched=1&planned_step=1"),
    Shot("plan-search.zh", f"{PLAN}&searched=1&planned_step=1", lang="zh-CN"),
    Shot("diagnose", HANG),
    Shot("diagnose.zh", HANG, lang="zh-CN"),
    Shot("ranks-16384", LARGE, rank=5000),
    Shot("ranks-16384.zh", LARGE, lang="zh-CN", rank=5000),
)
DRAWN = {
    f"crossing{suffix}.svg": f"collective all-reduce --ranks 64 --compare --lang {lang}"
    for suffix, lang in (("", "en"), (".zh", "zh"))
}
"""Pictures that a command writes, by their files."""


def main() -> None:
    """Takes every picture; traces are those named, or of a run made for the purpose."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--trace", type=Path, action="append", default=[])
    traces: list[Path] = parser.parse_args().trace
    with tempfile.TemporaryDirectory() as folder:
        if traces:
            traces = [path.absolute() for path in traces]
        else:
            # Where the page names the run, it is as a reader would have it.
            record = [*SERRIED, "demo", "--no-serve", "--folder", "runs/demo"]
            subprocess.run(record, check=True, cwd=folder)
            traces = [Path("runs/demo/emulated")]
        options = [word for path in traces for word in ("--trace", str(path))]
        with serving(options, folder=folder) as traced, serving([]) as plain:
            take(traced, plain)
    for name, words in DRAWN.items():
        subprocess.run([*SERRIED, *words.split(), "-o", IMAGES / name], check=True)


@contextmanager
def serving(
    options: Sequence[str], source: Path | None = None, folder: str | None = None
) -> Iterator[str]:
    """Runs ``serried serve`` in a folder and yields its address.

    ``source`` holds another edition's package.
    """
    command = [*SERRIED, "serve", "--port", "0", "--no-open", *options]
    env = {**os.environ, **({"PYTHONPATH": str(source)} if source else {})}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=env, cwd=folder
    ) as server:
        assert server.stdout
        try:
            yield server.stdout.readline().split()[-1].partition("?")[0]
        finally:
            server.terminate()


def chromium() -> str:
    """Returns the path of the browser."""
    return next(found for name in CHROMIUM if (found := shutil.which(name)))


def take(traced: str, plain: str) -> None:
    """Opens each state of the page and writes its picture."""
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for shot in SHOTS:
            context = browser.new_context(
                viewport=ViewportSize(width=1400, height=900),
                locale=shot.lang,
                color_scheme="light",
            )
            page = context.new_page()
            show(page, f"{traced if shot.steps else plain}?{shot.query}", shot)
            page.screenshot(path=IMAGES / f"{shot.name}.png")
            context.close()
        browser.close()


def show(page: Page, address: str, shot: Shot) -> None:
    """Opens the page, and points at what the picture is about."""
    page.goto(address)
    page.evaluate("serried.settled()")
    if shot.steps:
        slices = "Array.from({length: serried.slices()}, (_, i) => serried.slice(i))"
        end = max(s["end_ns"] for s in page.evaluate(slices) if s["step"] < shot.steps)
        page.goto(f"{address}&time={-0.01 * end:.0f},{1.01 * end:.0f}")
    if shot.rank is not None:
        place = page.evaluate(f"serried.where({shot.rank})")
        page.mouse.move(place["x"], place["y"])
    page.evaluate("serried.settled()")


if __name__ == "__main__":
    main()
