"""Two hundred people look at one workbench at once: answers, errors, waiting, memory.

    python benchmarks/viewers.py [VIEWERS] [ROUNDS]

Each viewer has a connection of its own, opens the page as a browser does (the document, what it
loads, the questions that it asks first) and then asks for a layout, a rank and a schedule of its
own sizes, round after round. The server is `serried serve` in a process of its own; both share the
machine. An error is any answer but 200, and any connection that breaks.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from urllib.parse import urljoin

import httpx

VIEWERS = 200
ROUNDS = 3
SIZES = ((16, 2, 4), (64, 4, 4), (256, 8, 4), (1024, 8, 8))
"""Worlds with tp and pp that viewers look at, in turn."""


@dataclass
class Told:
    """Holds what became of all requests so far."""

    seconds: list[float] = field(default_factory=list)
    first_views: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)


async def ask(client: httpx.AsyncClient, address: str, told: Told) -> httpx.Response | None:
    """Asks once and keeps how long that took, or what went wrong."""
    begin = time.perf_counter()
    try:
        answer = await client.get(address)
    except httpx.HTTPError as error:
        told.errors[type(error).__name__] += 1
        return None
    told.seconds.append(time.perf_counter() - begin)
    if answer.status_code != 200:
        told.errors[f"{answer.status_code} of {answer.url.path}"] += 1
    return answer


async def view(number: int, page: str, rounds: int, told: Told) -> None:
    """Looks at the page as one person does."""
    world, tp, pp = SIZES[number % len(SIZES)]
    sizes = f"world_size={world}&tp={tp}&pp={pp}"
    limits = httpx.Limits(max_connections=6)  # as many as a browser has
    async with httpx.AsyncClient(timeout=None, limits=limits) as client:
        begin = time.perf_counter()
        document = await ask(client, f"{page}?{sizes}", told)
        text = document.text if document is not None else ""
        loaded = re.findall(r'(?:src|href)="(?!data:)([^"#][^"]*)"', text)
        places = [urljoin(page, unescape(each)) for each in loaded]
        await asyncio.gather(*(ask(client, each, told) for each in places))
        await ask(client, urljoin(page, f"api/layout?{sizes}&dims=dp,tp"), told)
        told.first_views.append(time.perf_counter() - begin)
        for each in range(rounds):
            rank = (number * 7 + each) % world
            for question in (
                f"api/layout?{sizes}&dims=tp,pp",
                f"api/rank?{sizes}&rank={rank}",
                f"api/schedule?name=1f1b&stages={pp}&microbatches={8 + each}",
            ):
                await ask(client, urljoin(page, question), told)


def peak_mib(pid: int) -> float:
    """Returns the most memory that a process has had."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(re.findall(r"VmHWM:\s+(\d+) kB", text)[0]) / 1024


async def look(page: str, viewers: int, rounds: int) -> Told:
    """Lets all viewers look at once."""
    told = Told()
    await asyncio.gather(*(view(each, page, rounds, told) for each in range(viewers)))
    return told


def quantile(values: list[float], share: float) -> float:
    """Returns the value below which ``share`` of all lie."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main() -> None:
    """Prints what became of all requests; exits with 1 where any failed."""
    given = [int(each) for each in sys.argv[1:3]]
    viewers, rounds = given + [VIEWERS, ROUNDS][len(given) :]
    words = [sys.executable, "-c", "from serried.views.cli.main import main; main()", "serve"]
    with subprocess.Popen(
        [*words, "--no-open", "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            page = server.stdout.readline().split()[-1]
            begin = time.perf_counter()
            told = asyncio.run(look(page, viewers, rounds))
            took, peak = time.perf_counter() - begin, peak_mib(server.pid)
        finally:
            server.terminate()
    asked = len(told.seconds)
    print(
        f"{viewers} viewers, {asked:,} answers in {took:.1f} s, {sum(told.errors.values())} errors"
    )
    for name, values in (("one answer", told.seconds), ("first view", told.first_views)):
        print(f"{name}: median {quantile(values, 0.5):.2f} s, p95 {quantile(values, 0.95):.2f} s")
    print(f"server: {peak:.0f} MiB at its peak")
    for what, count in told.errors.most_common():
        print(f"  {count} x {what}")
    raise SystemExit(1 if told.errors else 0)


if __name__ == "__main__":
    main()
