"""Who sent what another rank refused, where the sender left nothing that says so."""

from __future__ import annotations

import pytest

from serried.diagnose.waits.graph import wait_graph
from serried.diagnose.waits.mismatch import mismatches
from serried.diagnose.waits.state import (
    JobGroup,
    JobState,
    RankCondition,
    RankOperation,
    RankState,
)

WORLD = 4
GROUP = JobGroup("dp_0", "dp", tuple(range(WORLD)))
NUMEL = 8320
PIECE = NUMEL * 4 // (2 * WORLD)
"""Bytes that gloo's ring sends at a time of an all-reduce of floats."""


def silent(rank: int) -> RankState:
    return RankState(rank, RankCondition.UNKNOWN, (), None)


@pytest.mark.parametrize("refused", [1, 2])
def test_in_a_ring_the_next_rank_sent_what_one_refused(refused: int) -> None:
    past = RankOperation("all_reduce", "dp_0", 1, None, NUMEL, NUMEL, "Float", is_finished=True)
    here = RankOperation("all_reduce", "dp_0", 2, None, NUMEL, NUMEL, "Float")
    heard = RankState(0, RankCondition.RUNNING, (past, here), {"dp_0": 2}, doing=here)
    ended = RankState(refused, RankCondition.DEAD, (), None, expected_bytes=PIECE)
    ranks = {0: heard, refused: ended}
    state = JobState.of(WORLD, (GROUP,), (ranks.get(r) or silent(r) for r in range(WORLD)))
    [found] = mismatches(wait_graph(state))
    assert found.culprits == (refused + 1,)


def test_nobody_is_blamed_where_the_next_rank_brought_what_it_always_does() -> None:
    past = RankOperation("all_reduce", "dp_0", 1, None, NUMEL, NUMEL, "Float", is_finished=True)
    here = RankOperation("all_reduce", "dp_0", 2, None, NUMEL, NUMEL, "Float")
    heard = RankState(0, RankCondition.RUNNING, (past, here), {"dp_0": 2}, doing=here)
    ended = RankState(3, RankCondition.DEAD, (), None, expected_bytes=PIECE)
    state = JobState.of(WORLD, (GROUP,), (heard, silent(1), silent(2), ended))
    assert list(mismatches(wait_graph(state))) == []
