"""Runs a coroutine apart from the browser: Playwright keeps a loop running on the main thread."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Answer = TypeVar("Answer")


def run_apart(coroutine: Coroutine[Any, Any, Answer]) -> Answer:
    """Returns what a coroutine returns, from a loop on a thread of its own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
