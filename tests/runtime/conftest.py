"""Begins with the longest tests, and starts what forks ranks before the first of them asks."""

from __future__ import annotations

import multiprocessing
import sys

import pytest

from serried.runtime.run.local_ranks import start_server

# A rank that runs a function of a test imports the test's module, and pytest with it.
PRELOADED = ["serried.runtime.run.preload", "pytest", "_pytest.assertion", "hypothesis"]
LONG = {"test_parity.py", "test_saving.py"}
"""Files of one long launch: begun last, one of them would leave the other half idle."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in LONG)


def pytest_collection_finish() -> None:
    """Starts the server, unless the tests that were collected have no use for torch."""
    if "torch" in sys.modules:
        multiprocessing.get_context("forkserver").set_forkserver_preload(PRELOADED)
        start_server()
