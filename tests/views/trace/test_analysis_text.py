"""What is said of ranks that none can be compared with: the one that waits far less, or none."""

from __future__ import annotations

import pytest

from serried.trace.measure.slowest import WAITS, RankPace
from serried.views.trace.analysis_text import slowest_lines


def pace(rank: int, waits_ms: float) -> RankPace:
    """Returns the pace of the only rank of a stage, in steps of 100 ms."""
    return RankPace(
        rank=rank,
        stages=(rank,),
        compute_ns=1e6,
        jitter=0.0,
        slower=None,
        slower_steps=0,
        num_steps=8,
        evidence=WAITS,
        step_ns=100e6,
        waits_ns=waits_ms * 1e6,
        waited_for_ns=None,
        waited_for_steps=0,
        is_slow=False,
        longer=(),
    )


@pytest.mark.parametrize(
    ("waits_ms", "told"),
    [((60, 6, 65), True), ((75, 60, 80), False), ((12, 3, 14), False), ((50, 50, 50), False)],
)
def test_of_stages_on_one_rank_each_the_one_that_waits_far_less_is_told(
    waits_ms: tuple[float, ...], told: bool
) -> None:
    lines = slowest_lines([pace(rank, each) for rank, each in enumerate(waits_ms)])
    assert any("rank 1 waits least" in line for line in lines) == told
    assert "every stage is on one rank" in lines[0]
