"""The map's frames while it is zoomed, and the script that a hover takes, in Chromium.

    python benchmarks/page/map_frames.py                  starts a workbench of its own
    python benchmarks/page/map_frames.py --address URL    measures one that runs

Frames are counted from one call of ``requestAnimationFrame`` to the next while wheel events arrive
one a frame, in and out again. Script is what the page's own listeners and its redraw take.
"""

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from serried.views.web.gate import Gate

if TYPE_CHECKING:
    from playwright.sync_api import Page

WORLDS = (
    (16, "tp=2&pp=4"),
    (1024, "tp=8&pp=8"),
    (16384, "tp=8&pp=16&cp=2"),
    (131072, "tp=8&pp=16"),
)
FRAMES = 60
CHROMIUM = "/usr/bin/chromium"
ZOOM = """async (steps) => {
  const canvas = document.getElementById("map");
  const { left, top, width, height } = canvas.getBoundingClientRect();
  const [clientX, clientY] = [left + 0.4 * width, top + 0.45 * height];
  const times = [];
  let before = await new Promise(requestAnimationFrame);
  for (let i = 0; i < steps; i++) {
    const deltaY = i < steps / 2 ? -90 : 90;
    canvas.dispatchEvent(new WheelEvent("wheel", { deltaY, clientX, clientY, bubbles: true }));
    const now = await new Promise(requestAnimationFrame);
    times.push(now - before);
    before = now;
  }
  return times;
}"""
HOVER = """async (steps) => {
  const canvas = document.getElementById("map");
  const { left, top, width, height } = canvas.getBoundingClientRect();
  const times = [];
  for (let i = 0; i < steps; i++) {
    const clientX = left + width * (0.2 + (0.6 * i) / steps);
    const clientY = top + height * (0.2 + 0.6 * ((i * 0.618) % 1));
    const start = performance.now();
    canvas.dispatchEvent(new PointerEvent("pointermove", { clientX, clientY, bubbles: true }));
    times.push(performance.now() - start);
    await new Promise(requestAnimationFrame);
  }
  return times;
}"""


def map_figures(page: Page, address: str, world: int, sizes: str) -> dict[str, Any]:
    """Returns milliseconds of frames while zooming and of script while hovering, at a world."""
    page.goto(f"{address}/?world_size={world}&{sizes}&dims=dp,tp,pp")
    page.evaluate("serried.settled()")
    page.mouse.move(700, 450)
    page.evaluate(ZOOM, 8)
    cpu = ThreadTime(page)
    frames = page.evaluate(ZOOM, FRAMES)
    per_frame = cpu.spent() / FRAMES
    page.evaluate("serried.settled()")
    page.evaluate(HOVER, 8)
    hover = page.evaluate(HOVER, 60)
    return {
        "ranks": world,
        "zoom_cpu_a_frame_ms": per_frame,
        "zoom_frame_p50_ms": quantile(frames, 0.5),
        "zoom_frame_p95_ms": quantile(frames, 0.95),
        "zoom_frame_worst_ms": max(frames),
        "hover_script_p50_ms": quantile(hover, 0.5),
        "hover_script_p95_ms": quantile(hover, 0.95),
    }


class ThreadTime:
    """Counts the processor time of the page's main thread, which other work does not inflate."""

    def __init__(self, page: Page) -> None:
        self._session = page.context.new_cdp_session(page)
        self._session.send("Performance.enable", {"timeDomain": "threadTicks"})
        self._begun = self._read()

    def spent(self) -> float:
        """Returns milliseconds of tasks since the beginning, and ends."""
        spent = self._read() - self._begun
        self._session.detach()
        return spent

    def _read(self) -> float:
        told = self._session.send("Performance.getMetrics")["metrics"]
        return 1000 * float(next(each["value"] for each in told if each["name"] == "TaskDuration"))


def quantile(values: list[float], share: float) -> float:
    """Returns the value below which a share of all lies.

    >>> quantile([3.0, 1.0, 2.0], 0.5)
    2.0
    """
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@contextmanager
def workbench() -> Iterator[str]:
    """Yields the address of a workbench that ends with the block."""
    import uvicorn

    from serried.views.web.opening.desk import OpeningDesk
    from serried.views.web.server import application, listen

    desk = OpeningDesk(())
    with listen("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        app = application(desk, Gate("127.0.0.1", port, None))
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join()
            desk.close()


def main() -> None:
    """Measures every world and prints a line of JSON for each."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", default="")
    given = parser.parse_args().address
    with ExitStack() as stack:
        address = given or stack.enter_context(workbench())
        player = stack.enter_context(sync_playwright())
        browser = player.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for width, height in ((1400, 900), (2560, 1440)):
            page = browser.new_page(viewport={"width": width, "height": height})
            for world, sizes in WORLDS:
                found = map_figures(page, address, world, sizes)
                print(json.dumps({"window": f"{width} x {height}"} | found), flush=True)
        browser.close()


if __name__ == "__main__":
    main()
