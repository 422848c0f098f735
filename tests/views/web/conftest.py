"""What the page is opened on: a server in this process, with and without traces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from serried.action import Span
from serried.trace.merge.in_memory import merge
from serried.trace.model.pairs import SENDS
from serried.views.web.trace.payload import NamedTrace
from tests.trace.recorded_run import Run
from tests.views.web.served import served

SMALL = Run(pp=2, tp=2, dp=2, num_microbatches=4)
LONG = Run(pp=4, num_microbatches=40, num_steps=4, compute="real")
"""Recorded without its sends, which lie within other spans, so that each rank is one track."""


def is_no_send(span: Span) -> bool:
    return span.action.kind not in SENDS


@pytest.fixture(scope="session")
def plain() -> Iterator[str]:
    """The address of a workbench without a trace."""
    with served() as address:
        yield address


@pytest.fixture(scope="session")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a workbench with two traces: a small emulated one and a long real one."""
    folder = tmp_path_factory.mktemp("runs")
    traces = [
        NamedTrace("small", merge([SMALL.write(folder / "small")])),
        NamedTrace("long", merge([LONG.write(folder / "long", keep=is_no_send)])),
    ]
    with served(traces) as address:
        yield address


@pytest.fixture
def screenshots() -> Path:
    """The folder for pictures of the page, which git ignores."""
    folder = Path(__file__).parents[3] / "screenshots"
    folder.mkdir(exist_ok=True)
    return folder
