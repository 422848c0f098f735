"""Leaves rows to `make soak` in files that run all their rows on one launch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar

import pytest

Name = TypeVar("Name")
Run = TypeVar("Run")


def rows(names: Iterable[Name], soaked: Collection[Name]) -> list[Any]:
    """Returns the names as parameters of a test, those of ``soaked`` marked so."""
    return [
        pytest.param(name, marks=pytest.mark.soak) if name in soaked else name for name in names
    ]


def launched(
    request: pytest.FixtureRequest, runs: Mapping[Name, Run], soaked: Collection[Name]
) -> dict[Name, Run]:
    """Returns the runs that the tests ask for: all where one of the file's soaks was selected."""
    chosen = [item for item in request.session.items if item.path == request.path]
    if any(item.get_closest_marker("soak") for item in chosen):
        return dict(runs)
    return {name: run for name, run in runs.items() if name not in soaked}
