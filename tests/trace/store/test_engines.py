"""The table engines that the page names open the store, by the very lines that it shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serried.action import ActionKind
from serried.trace.merge.store import merge_store
from serried.trace.store.folder import read_store
from tests.trace.recorded_run import Clock, Run

ROOT = Path(__file__).parents[3]
ENGINES = ("duckdb", "polars", "pandas")
RUN = Run(pp=4, dp=4, num_microbatches=4)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("pyarrow")
    place = tmp_path_factory.mktemp("engines")
    clocks = [Clock("a")] * 8 + [Clock("b")] * 8
    merge_store([RUN.write(place / "run", clocks=clocks)], place / "run.store")
    return place / "run.store"


def example(page: str, engine: str) -> str:
    """Returns the block of ``page`` that begins by importing ``engine``."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    (found,) = re.findall(
        rf"^```python\n(import {engine}\b.*?)^```", text, re.DOTALL | re.MULTILINE
    )
    return str(found)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_gives_the_forwards_of_every_rank(
    engine: str, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(engine)
    monkeypatch.chdir(store.parent)
    given: dict[str, Any] = {}
    exec(compile(example("store.md", engine), f"docs/store.md ({engine})", "exec"), given)

    spans = read_store(store).spans
    forwards = np.where(spans.kind == ActionKind.F, spans.end_ns - spans.start_ns, 0)
    expected = np.bincount(spans.rank, weights=forwards / 1e6)
    ranks, found = zip(*given["forward_ms"], strict=True)
    assert ranks == (*range(len(expected)),)
    assert found == pytest.approx(expected, rel=1e-12)  # each engine adds in an order of its own


@pytest.mark.parametrize("engine", ENGINES)
def test_both_pages_show_the_same_lines(engine: str) -> None:
    assert example("store.md", engine) == example("store.zh.md", engine)
