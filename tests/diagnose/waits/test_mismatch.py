"""Who sent what another rank refused, where the sender left nothing that says so."""

from __future__ import annotations

import pytest

from serried.diagnose.evidence.stacks.stack import Frame
from serried.diagnose.job_state.state import (
    JobGroup,
    JobState,
    RankCondition,
    RankOperation,
    RankState,
)
from serried.diagnose.waits.graph import wait_graph
from serried.diagnose.waits.mismatch import mismatches

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


@pytest.mark.parametrize(("brought", "arrived", "culprit"), [(96, 96, 1), (64, 64, 0)])
def test_a_peer_that_went_on_tells_who_differed_where_gloo_refused(
    brought: int, arrived: int, culprit: int
) -> None:
    pair, alone = JobGroup("tp_0", "tp", (0, 1)), JobGroup("dp_1", "dp", (1, 2))
    past = [
        RankOperation("all_reduce", "tp_0", seq, None, 64, 64, "Float", is_finished=True)
        for seq in (1, 2, 3)
    ]
    last = RankOperation("all_reduce", "tp_0", 4, None, brought, brought, "Float", True)
    wait = RankOperation("all_gather", "dp_1", 1, None, 8, 16, "Float")
    peer = RankState(1, RankCondition.RUNNING, (*past, last, wait), {"tp_0": 4, "dp_1": 1}, wait)
    expected = 64 if culprit else 4
    ended = RankState(
        0, RankCondition.DEAD, (), None, expected_bytes=expected, arrived_bytes=arrived
    )
    state = JobState.of(3, (pair, alone), (ended, peer, silent(2)))
    [found] = mismatches(wait_graph(state))
    assert (found.culprits, found.group.name, found.seq) == ((culprit,), "tp_0", 4)


def test_bytes_that_no_peer_s_collective_sends_tell_nothing() -> None:
    pair = JobGroup("tp_0", "tp", (0, 1))
    past = [
        RankOperation("all_reduce", "tp_0", seq, None, 64, 64, "Float", is_finished=True)
        for seq in (1, 2)
    ]
    peer = RankState(1, RankCondition.RUNNING, tuple(past), {"tp_0": 2})
    ended = RankState(0, RankCondition.DEAD, (), None, expected_bytes=4, arrived_bytes=1024)
    state = JobState.of(2, (pair,), (ended, peer))
    assert list(mismatches(wait_graph(state))) == []


@pytest.mark.parametrize(("num_ranks", "culprits"), [(3, (2,)), (4, None)])
def test_who_sent_what_two_ranks_refused_alike_is_named_where_the_two_are_most(
    num_ranks: int, culprits: tuple[int, ...] | None
) -> None:
    group = JobGroup("dp_0", "dp", tuple(range(num_ranks)))
    past = [
        RankOperation("all_reduce", "dp_0", seq, None, 420, 420, "Float", is_finished=True)
        for seq in (1, 2, 3)
    ]
    odd = RankOperation("all_reduce", "dp_0", 4, None, 1, 1, "Float")
    heard = RankState(0, RankCondition.RUNNING, (*past, odd), {"dp_0": 4}, doing=odd)
    sent = 420 * 4 // (2 * num_ranks)
    ended = RankState(1, RankCondition.DEAD, (), None, expected_bytes=4, arrived_bytes=sent)
    rest = (silent(rank) for rank in range(2, num_ranks))
    found = list(mismatches(wait_graph(JobState.of(num_ranks, (group,), (heard, ended, *rest)))))
    assert [each.culprits for each in found] == ([] if culprits is None else [culprits])


@pytest.mark.parametrize(("line", "culprit"), [(13, 3), (15, 0)])
def test_a_call_that_is_new_to_a_rank_is_not_wrong_where_another_stands_at_its_line(
    line: int, culprit: int
) -> None:
    past = [
        RankOperation("all_reduce", "dp_0", seq, None, 64, 64, "Float", is_finished=True)
        for seq in (1, 2, 3)
    ]
    new = RankOperation("all_reduce", "dp_0", 4, None, NUMEL, NUMEL, "Float")
    stack = (Frame("main", "train.py", 13),)
    heard = RankState(0, RankCondition.RUNNING, (*past, new), {"dp_0": 4}, new, stack)
    other = RankState(2, stack=(Frame("main", "train.py", line),))
    ended = RankState(3, RankCondition.DEAD, expected_bytes=4, arrived_bytes=PIECE)
    state = JobState.of(WORLD, (GROUP,), (heard, silent(1), other, ended))
    [found] = mismatches(wait_graph(state))
    assert found.culprits == (culprit,)
