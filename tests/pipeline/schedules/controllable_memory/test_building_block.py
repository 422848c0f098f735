"""The V schedules under controllable memory, against their formulas."""

from __future__ import annotations

import pytest

from serried.pipeline import Costs, Request, generate, simulate

IDLE_OF_P8_M24 = {"v-half": 17, "v-min": 27, "1f1b-v": 33}


@pytest.mark.parametrize("name", IDLE_OF_P8_M24)
def test_a_leaner_block_is_idle_longer(name: str) -> None:
    result = simulate(generate(name, Request(8, 24)), Costs())
    assert result.makespan - max(result.work.tolist()) == IDLE_OF_P8_M24[name]
