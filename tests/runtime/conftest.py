"""Starts what forks ranks before the first test asks for it."""

from __future__ import annotations

import multiprocessing
import sys

from serried.runtime.run.local_ranks import start_server

# A rank that runs a function of a test imports the test's module, and pytest with it.
PRELOADED = ["serried.runtime.run.preload", "pytest", "_pytest.assertion", "hypothesis"]


def pytest_collection_finish() -> None:
    """Starts the server, unless the tests that were collected have no use for torch."""
    if "torch" in sys.modules:
        multiprocessing.get_context("forkserver").set_forkserver_preload(PRELOADED)
        start_server()
