"""The page beside its peers: requests, bytes, and when it is ready, at 0 and 100 ms round trip.

    serried serve         until it answers; its page; a page that is opened again
    Gradio                the playground of parallel groups, rebuilt from its description
    TensorBoard           its page on an empty folder of logs

Chromium opens each in a fresh profile, its network slowed by its own debugger; the median of
three, or of as many as the argument says. A peer that is not installed is left out: make bench
installs Gradio into a folder of its own. The official Perfetto UI is on no registry, so it is not
among them.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
ROUND_TRIPS_MS = (0, 100)
SLICES = 2_000_000
RANKS, STAGES = 64, 4
TURNS = [(name, at) for name in ("forward", "backward") for at in range(8)]
"""What a rank does in a step of the large file: a name and a microbatch each."""
PEERS = Path(os.environ.get("GRADIO_PEER", ".venv/peers-page"))
PLAYGROUND = """
import gradio as gr

TYPES = ["Data Parallel", "Tensor Model Parallel", "Pipeline Parallel", "Context Parallel",
         "DP+TP", "DP+PP", "DP+TP+PP", "CP+DP", "CP+DP+TP", "CP+DP+PP", "CP+DP+TP+PP"]

def groups(kind, tp, pp, cp):
    ends = {rank: "</tr><tr>" if rank % 4 == 3 else "" for rank in range(16)}
    cells = "".join(f"<td>{rank}</td>{end}" for rank, end in ends.items())
    tensor = [list(range(at, at + tp)) for at in range(0, 16, tp)]
    return f"<table><tr>{cells}</tr></table>", "\\n".join(map(str, tensor))

with gr.Blocks(title="Megatron-LM parallel groups") as page:
    with gr.Row():
        kind = gr.Dropdown(TYPES, label="Group type")
        sizes = [gr.Slider(1, 8, 1, step=1, label=f"{name} size") for name in ("TP", "PP", "CP")]
    with gr.Row():
        go, clear = gr.Button("Generate"), gr.Button("Clear all")
    shown, text = gr.HTML(), gr.Textbox(lines=8, label="Groups")
    go.click(groups, [kind, *sizes], [shown, text])

page.launch(server_port=PORT, quiet=True)
"""


@dataclass(frozen=True)
class Tool:
    """Says how a tool is started, and what of its page shows that it is ready."""

    name: str
    command: Callable[[int, Path], list[str]]
    ready: str
    environment: dict[str, str]


@dataclass(frozen=True)
class Opened:
    """Holds what was measured of opening a page."""

    ready_s: float
    requests: int
    num_bytes: int


@dataclass(frozen=True)
class Answered:
    """Holds how soon a server first answered: seconds, and the processor's among them."""

    wall_s: float
    cpu_s: float


def tools() -> Iterator[Tool]:
    """Yields the tools that are installed here."""
    serve = "from serried.views.cli.main import main; main()"
    yield Tool(
        "serried",
        lambda port, folder: [
            sys.executable,
            "-c",
            serve,
            "serve",
            "--no-open",
            "--port",
            str(port),
        ],
        "body.ready",
        {},
    )
    if (PEERS / "gradio").is_dir():
        yield Tool("Gradio playground", _playground, "button:has-text('Generate')", _PEER)
    if shutil.which("tensorboard") or Path(sys.executable).with_name("tensorboard").exists():
        yield Tool("TensorBoard", _tensorboard, "mat-toolbar .plugins, mat-toolbar", {})


_PEER = {"PYTHONPATH": str(PEERS), "GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_OFFLINE": "1"}


def _playground(port: int, folder: Path) -> list[str]:
    script = folder / "playground.py"
    script.write_text(PLAYGROUND.replace("PORT", str(port)))
    return [sys.executable, str(script)]


def _tensorboard(port: int, folder: Path) -> list[str]:
    command = str(Path(sys.executable).with_name("tensorboard"))
    return [command, "--logdir", str(folder), "--port", str(port), "--load_fast", "false"]


@contextmanager
def started(tool: Tool, folder: Path, *more: str) -> Iterator[tuple[str, Answered]]:
    """Starts a tool; yields its address and how soon it first answered."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [*tool.command(port, folder), *more]
    begun = time.monotonic()
    with subprocess.Popen(
        command,
        env={**os.environ, **tool.environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            address = f"http://127.0.0.1:{port}/"
            answered = _answered(address, process)
            yield address, Answered(answered - begun, _cpu_s(process.pid))
        finally:
            process.terminate()


def _cpu_s(pid: int) -> float:
    """Returns the processor seconds that a process has taken, which other work does not inflate."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _answered(address: str, process: subprocess.Popen[bytes]) -> float:
    """Returns when an address first answers."""
    while process.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=60).read()
        except OSError:
            time.sleep(0.01)
            continue
        return time.monotonic()
    raise SystemExit(f"what serves {address} ended before it answered")


def opened(page: Page, visit: Callable[[], Any], ready: str, round_trip_ms: int) -> Opened:
    """Opens a page under a round trip, and counts what it asked for."""
    debugger = page.context.new_cdp_session(page)
    debugger.send("Network.enable")
    limits = {"offline": False, "downloadThroughput": -1, "uploadThroughput": -1}
    debugger.send("Network.emulateNetworkConditions", {"latency": round_trip_ms, **limits})
    asked: dict[str, str] = {}
    sizes: list[int] = []
    debugger.on(
        "Network.requestWillBeSent",
        lambda event: asked.__setitem__(event["requestId"], event["request"]["url"]),
    )
    debugger.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    begun = time.monotonic()
    visit()
    page.wait_for_selector(ready, state="visible")
    ready_s = time.monotonic() - begun
    page.wait_for_load_state("networkidle")
    debugger.detach()
    named = [url for url in asked.values() if not url.startswith(("data:", "blob:"))]
    return Opened(ready_s, len(named), int(sum(sizes)))


def measured(browser: Browser, address: str, tool: Tool, round_trip_ms: int) -> list[Opened]:
    """Returns how a page opens in a fresh profile, and once more in the same."""
    context = browser.new_context()
    page = context.new_page()
    first = opened(page, lambda: page.goto(address), tool.ready, round_trip_ms)
    again = opened(page, page.reload, tool.ready, round_trip_ms)
    context.close()
    return [first, again]


def write_events(path: Path, slices: int) -> None:
    """Writes a timeline as MegatronApp does of ranks in stages, with so many slices at least."""
    with path.open("w", encoding="utf-8") as file:
        file.write('{"traceEvents": [\n')
        file.writelines(f"{',' if at else ''}{row}\n" for at, row in enumerate(_rows(slices)))
        file.write("]}")


def _rows(slices: int) -> Iterator[str]:
    """Yields events of whole steps, each rank's forwards before its backwards."""
    for step in range(-(-slices // (RANKS * len(TURNS)))):
        for (turn, (name, microbatch)), rank in product(enumerate(TURNS), range(RANKS)):
            stage = rank * STAGES // RANKS
            late = stage if name == "forward" else 2 * (STAGES - 1) - stage
            at = (step * (len(TURNS) + 2 * STAGES) + turn + late) * 10
            yield (
                f'{{"name": "{name}", "ph": "X", "ts": {at}, "dur": 9, "pid": {rank}, "tid": 1, '
                f'"args": {{"iteration": {step}, "microbatch": {microbatch}, '
                f'"model_chunk": 0, "pp_rank": {stage}}}}}'
            )


def main() -> None:
    """Prints a row for each tool, and how much longer others take than serried."""
    own: list[float] = []
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        path = shutil.which("chromium") or shutil.which("google-chrome")
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        heads = ("answers", "ready 0 ms", "again", "ready 100 ms", "again", "requests", "kB")
        print(f"{'':<20}" + "".join(f"{head:>14}" for head in heads), flush=True)
        for tool in tools():
            figures = _figures(browser, tool, folder)
            _print(tool.name, figures, own)
            own = own or figures
        browser.close()
        _print_large(folder)


def _figures(browser: Browser, tool: Tool, folder: Path) -> list[float]:
    """Returns a tool's row: seconds, then requests and kB of a page opened for the first time."""
    starts: list[float] = []
    runs: dict[int, list[list[Opened]]] = {ms: [] for ms in ROUND_TRIPS_MS}
    for _ in range(RUNS):
        with started(tool, folder) as (address, answered):
            starts.append(answered.wall_s)
            print(f"{tool.name} answers after {answered.cpu_s:.2f} s of processor time", flush=True)
            measured(browser, address, tool, 0)  # what a server makes once, it has made
            for ms in ROUND_TRIPS_MS:
                runs[ms].append(measured(browser, address, tool, ms))
    pages = [(ms, visit) for ms in ROUND_TRIPS_MS for visit in (0, 1)]
    ready = [median(run[visit].ready_s for run in runs[ms]) for ms, visit in pages]
    first = runs[0][0][0]
    return [median(starts), *ready, first.requests, first.num_bytes / 1e3]


def _print(name: str, figures: list[float], own: list[float]) -> None:
    forms = ["{:.2f} s"] * 5 + ["{:.0f}", "{:.0f}"]
    cells = [form.format(each) for form, each in zip(forms, figures, strict=True)]
    print(f"{name:<20}" + "".join(f"{cell:>14}" for cell in cells), flush=True)
    if own:
        ratios = (f"{each / mine:.1f} x" for each, mine in zip(figures, own, strict=True))
        print(f"{'':<20}" + "".join(f"{ratio:>14}" for ratio in ratios), flush=True)


def _print_large(folder: Path) -> None:
    """Prints how soon the server answers that was given a large file."""
    large = folder / "large.json"
    write_events(large, SLICES)
    with started(next(tools()), folder, str(large)) as (_, answered):
        print(
            f"serried serve answers after {answered.wall_s:.2f} s ({answered.cpu_s:.2f} s of "
            f"processor time) on {SLICES:,} slices, {large.stat().st_size / 1e6:.0f} MB, which it "
            "reads behind the page"
        )


if __name__ == "__main__":
    main()
