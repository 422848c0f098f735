"""Leaves the oracle tests out unless ``-m oracle`` asks for them: they fetch real packages."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "oracle" in config.getoption("-m"):
        return
    left_out = [item for item in items if item.get_closest_marker("oracle")]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)
