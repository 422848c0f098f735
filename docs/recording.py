"""Makes the short film on top of README and the documentation, from the running page.

    python -m docs.recording                    records a pipeline of emulated compute first
    python -m docs.recording --trace runs/pp4

Each scene is a state of the page and what is pointed at there; Pillow joins the pictures.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw
from playwright.sync_api import Page, ViewportSize, sync_playwright

from docs.screenshots import HANG, IMAGES, PLAN, SERRIED, chromium, serving

SIZE = ViewportSize(width=1200, height=750)
SHOWN = (960, 600)
"""Pixels of the film, which a README shows about as wide."""
TRAIN = (
    "--nproc",
    "8",
    "--pp",
    "4",
    "--microbatches",
    "8",
    "--compute",
    "emulated",
    "--steps",
    "4",
)
POINTER = ((0, 0), (0, 17), (4, 13), (7, 20), (10, 19), (7, 12), (13, 12))
LANGUAGES = {"": "en-US", ".zh": "zh-CN"}


@dataclass(frozen=True)
class Scene:
    """Is a state of the page: its address, what is pointed at in turn, and how long it stays.

    ``points`` are ranks of the map, or slices of the timeline where ``of`` says so.
    """

    query: str
    points: tuple[int, ...] = ()
    of: str = "where"
    first_ms: int = 1200
    each_ms: int = 450
    is_traced: bool = False


MAP = "dims=dp,tp,pp&world_size=64&tp=4&pp=4&order=tp-cp-ep-dp-pp"
SCENES = (
    Scene(MAP, points=(0, 1, 2, 3, 7, 11, 15, 31, 47, 63)),
    Scene("dims=dp,tp,pp&rank=1", points=(8, 40, 90, 150, 220), of="whereSlice", is_traced=True),
    Scene("view=schedule&name=1f1b&stages=4&microbatches=8&show=strips,path", first_ms=2200),
    Scene("view=schedule&name=zb-h1&stages=4&microbatches=8&show=strips,path", first_ms=2200),
    Scene(f"{PLAN}&searched=1&planned_step=1", first_ms=2800),
    Scene(HANG, first_ms=3200),
)


def main() -> None:
    """Makes the film in each language."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--trace", type=Path)
    trace: Path | None = parser.parse_args().trace
    with tempfile.TemporaryDirectory() as folder:
        if trace is None:
            trace = Path("runs/pp4")
            train = [*SERRIED, "train", *TRAIN, "--trace-dir", str(trace)]
            subprocess.run(train, check=True, cwd=folder, stdout=subprocess.DEVNULL)
        with (
            serving(["--trace", str(trace)], folder=folder) as traced,
            serving([]) as plain,
        ):
            for suffix, locale in LANGUAGES.items():
                write(IMAGES / f"film{suffix}.webp", list(film(traced, plain, locale)))


def film(traced: str, plain: str, locale: str) -> Iterator[tuple[Image.Image, int]]:
    """Yields the pictures of all scenes, each with how many milliseconds it stays."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_context(viewport=SIZE, locale=locale).new_page()
        for scene in SCENES:
            page.goto(f"{traced if scene.is_traced else plain}?{scene.query}")
            page.evaluate("serried.settled()")
            page.mouse.move(2, 2)
            yield picture(page), scene.first_ms
            for point in scene.points:
                place = page.evaluate(f"serried.{scene.of}({point})")
                if place is None:
                    continue
                page.mouse.move(place["x"], place["y"])
                page.evaluate("serried.settled()")
                yield picture(page, (place["x"], place["y"])), scene.each_ms
        browser.close()


def picture(page: Page, pointer: tuple[float, float] | None = None) -> Image.Image:
    """Returns the page as it looks, with the pointer drawn, which a screenshot leaves out."""
    found = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    if pointer:
        outline = [(pointer[0] + x, pointer[1] + y) for x, y in POINTER]
        ImageDraw.Draw(found).polygon(outline, fill="black", outline="white")
    return found.resize(SHOWN, Image.Resampling.LANCZOS)


def write(path: Path, frames: list[tuple[Image.Image, int]]) -> None:
    """Writes the pictures as one animated file that every browser plays without a script."""
    first, *rest = [image for image, _ in frames]
    first.save(
        path,
        save_all=True,
        append_images=rest,
        duration=[stay for _, stay in frames],
        loop=0,
        quality=72,
        method=6,
    )


if __name__ == "__main__":
    main()
