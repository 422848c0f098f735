"""The ranks of a benchmark: processes started afresh, which meet over a store in a folder."""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Callable
from typing import Any


def run_ranks(rank: Callable[..., None], count: int, *given: Any) -> None:
    """Calls ``rank(number, folder, *given)`` in ``count`` processes, and waits for them.

    ``folder`` is theirs until they end; they meet over the file ``store`` in it.
    """
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            context.Process(target=rank, args=(number, folder, *given)) for number in range(count)
        ]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
