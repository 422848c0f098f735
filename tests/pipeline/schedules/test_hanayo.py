"""Hanayo against its waves, drawn slot by slot."""

from __future__ import annotations

import pytest

from serried.pipeline import Costs, peaks, simulate
from serried.pipeline.schedules.hanayo import hanayo

ONE_WAVE = """
    0F0  .  0F1 3F0 3B0 3F1 3B1 0B0  .  0B1
     .  1F0 2F0 1F1 2F1 2B0 1B0 2B1 1B1  .
"""
TWO_WAVES = """
    0F0  .  0F1 3F0 4F0 3F1 4F1 7F0 7B0 7F1 7B1 4B0 3B0 4B1 3B1 0B0  .  0B1
     .  1F0 2F0 1F1 2F1 5F0 6F0 5F1 6F1 6B0 5B0 6B1 5B1 2B0 1B0 2B1 1B1  .
"""


@pytest.mark.parametrize(("waves", "picture"), [(1, ONE_WAVE), (2, TWO_WAVES)])
def test_waves_go_down_the_ranks_and_up_again(waves: int, picture: str) -> None:
    drawn = [line.split() for line in picture.strip().splitlines()]
    schedule = hanayo(2, 2, 2 * waves)
    assert [schedule.texts(rank) for rank in range(2)] == [
        [cell for cell in row if cell != "."] for row in drawn
    ]
    assert simulate(schedule, Costs(1, backward=1)).makespan == len(drawn[0])


@pytest.mark.parametrize(("waves", "picture"), [(1, ONE_WAVE), (2, TWO_WAVES)])
def test_a_wave_moves_by_one_rank_a_slot(waves: int, picture: str) -> None:
    drawn = [line.split() for line in picture.strip().splitlines()]
    slot = {cell: at for row in drawn for at, cell in enumerate(row)}
    stages = 4 * waves
    for stage in range(stages):
        for i in range(2):
            assert slot[f"{stage}F{i}"] == 2 * i + stage
            assert slot[f"{stage}B{i}"] == 2 * i + 2 * stages - 1 - stage


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
@pytest.mark.parametrize("waves", [1, 2, 3])
def test_the_bubble_falls_with_the_waves(ranks: int, waves: int) -> None:
    result = simulate(hanayo(ranks, ranks, 2 * waves), Costs(forward=1, backward=2))
    idle = result.makespan - 3 * 2 * waves * ranks
    # (2p - 2) / (3pW + 2p - 2) of the makespan
    assert idle * (3 * ranks * waves + 2 * ranks - 2) == result.makespan * (2 * ranks - 2)


def test_a_rank_holds_p_microbatches_of_each_stage_at_most() -> None:
    assert peaks(hanayo(4, 16, 4)).to_weight.tolist() == [13, 14, 15, 16]
