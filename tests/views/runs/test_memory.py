"""Planned memory as a table, and measured memory as a line, in both languages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from serried.plan.reference.memory import Moment, RankMemory
from serried.views.cli.output import rendered
from serried.views.runs.memory import memory_table, peak_line

FIRST = RankMemory(
    pp_rank=0,
    stages=(0, 2),
    parameters=2 << 20,
    gathered=1 << 20,
    gradients=2 << 20,
    optimizer=4 << 20,
    activations=100 << 20,
    peak=12_000_000_000,
    moment=Moment.COMPUTING,
)
SECOND = replace(FIRST, pp_rank=1, stages=(1, 3), peak=3 << 30, moment=Moment.REDUCING)
PLACES = {0: 0, 1: 0, 2: 0, 3: 1, 4: 1}


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


def rows(lang: str, *memories: RankMemory) -> list[str]:
    text = rendered(memory_table(memories, PLACES, lang), plain=True)
    return [" ".join(line.split()) for line in text.splitlines()]


def test_ranks_alike_share_a_row() -> None:
    assert rows("en", FIRST, SECOND) == [
        "rank stage parameters gathered gradients optimizer activations peak while",
        "0-2 0 2 2.00 MiB 1.00 MiB 2.00 MiB 4.00 MiB 100 MiB 11.2 GiB computing",
        "3 4 1 3 2.00 MiB 1.00 MiB 2.00 MiB 4.00 MiB 100 MiB 3.00 GiB summing gradients",
    ]
    assert rows("zh", FIRST)[1].endswith("11.2 GiB 计算时")


def test_a_column_for_whole_copies_is_there_only_where_ranks_make_them() -> None:
    alone = replace(FIRST, gathered=0, moment=Moment.LEARNING)
    assert rows("en", alone) == [
        "rank stage parameters gradients optimizer activations peak while",
        "0-2 0 2 2.00 MiB 2.00 MiB 4.00 MiB 100 MiB 11.2 GiB optimizing",
    ]


@pytest.mark.parametrize(
    ("planned", "lang", "line"),
    [
        ((FIRST, SECOND), "en", "peak memory 2.79 GiB, of rank 3; planned 3.00 GiB"),
        ((FIRST, SECOND), "zh", "显存峰值 2.79 GiB（rank 3）；预计 3.00 GiB"),
        (None, "en", "peak memory 2.79 GiB, of rank 3"),
    ],
)
def test_the_fullest_gpu_is_named_beside_its_plan(
    planned: tuple[RankMemory, ...] | None, lang: str, line: str
) -> None:
    peaks = (1, 2, 2_000_000_000, 3_000_000_000, 5)
    assert peak_line(peaks, planned, PLACES, lang) == line
