"""Circles in which ranks wait for each other: who is out of order, and where nothing tells it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from serried.diagnose.evidence.stacks.stack import Frame
from serried.diagnose.job_state.state import JobGroup, JobState, RankOperation, RankState
from serried.diagnose.waits.graph import wait_graph
from serried.diagnose.waits.root import Root, RootKind
from serried.diagnose.waits.roots import roots

GROUPS = (
    JobGroup("world", "world", (0, 1, 2, 3)),
    JobGroup("dp_0", "dp", (0, 1)),
    JobGroup("dp_1", "dp", (2, 3)),
)
MAIN = Frame("<module>", "train.py", 99)


def found(ranks: list[RankState], **more: object) -> Root:
    axes = (("dp", 2), ("pp", 2))
    return roots(wait_graph(JobState.of(4, GROUPS, ranks, axes=axes, **more)))[0]


def called(op: str, group: str, seq: int, line: int, *, over: bool = True) -> RankOperation:
    frames = (Frame("reduce", "/home/u/train.py", line), Frame("train", "/home/u/train.py", line))
    return RankOperation(op, group, seq, is_finished=over, frames=(*frames, MAIN))


def waiting_at_the_end_of_a_step(rank: int) -> RankState:
    dp = f"dp_{rank // 2}"
    issued = (called("all_reduce", dp, 2, 50), called("all_reduce", "world", 3, 60, over=False))
    return RankState(
        rank,
        issued=issued,
        counts={"world": 3, dp: 2},
        doing=issued[-1],
        stack=(Frame("all_reduce", "torch/distributed/distributed_c10d.py", 1), *issued[-1].frames),
    )


def receiving(rank: int, peer: int, *, line: int, dp: int) -> RankState:
    group = f"dp_{rank // 2}"
    stack = (Frame("recv_forward", "train.py", 9), Frame("train", "train.py", line), MAIN)
    return RankState(
        rank,
        issued=(called("all_reduce", group, dp, 50),),
        counts={"world": 2, group: dp},
        doing=RankOperation("recv", peer=peer),
        stack=stack,
    )


def test_who_stands_before_its_own_last_call_has_left_out_what_comes_behind_that() -> None:
    others = [waiting_at_the_end_of_a_step(rank) for rank in (0, 1, 3)]
    root = found([*others, receiving(2, 0, line=20, dp=2)])
    assert (root.kind, root.ranks) == (RootKind.SKIPPED, (2,))


@pytest.mark.parametrize(("line", "dp"), [(20, 1), (55, 2)])
def test_who_may_still_come_to_a_collective_has_not_left_it_out(line: int, dp: int) -> None:
    others = [waiting_at_the_end_of_a_step(rank) for rank in (0, 1, 3)]
    assert found([*others, receiving(2, 0, line=line, dp=dp)]).ranks is None


def test_most_have_not_left_out_what_few_came_to() -> None:
    late = [receiving(rank, 0, line=20, dp=2) for rank in (1, 2, 3)]
    assert found([waiting_at_the_end_of_a_step(0), *late]).ranks is None


def test_of_two_that_receive_from_each_other_nobody_is_named() -> None:
    two = [RankState(0, doing=RankOperation("recv", peer=2), counts={})]
    two += [RankState(2, doing=RankOperation("recv", peer=0), counts={})]
    root = found(two)
    assert (root.kind, root.ranks, root.circle) == (RootKind.CIRCLE, None, (0, 2))


def test_a_message_that_may_have_a_tag_may_be_wrong_on_either_side() -> None:
    send, receive = RankOperation("send", peer=2), RankOperation("recv", peer=0)
    two = [RankState(0, doing=send, counts={}), RankState(2, doing=receive, counts={})]
    root = found(two)
    assert (root.kind, root.ranks) == (RootKind.WRONG_PEER, (0,))
    for tagged in (0, 1):
        ranks = list(two)
        doing = ranks[tagged].doing
        assert doing is not None
        ranks[tagged] = replace(ranks[tagged], doing=doing._replace(may_have_tag=True))
        assert found(ranks).ranks is None


def test_who_waits_only_for_a_message_in_a_loop_has_passed_nothing_that_others_wait_in() -> None:
    """Rank 0 is in the next microbatch, and so at an earlier line than rank 1, which sends."""
    train = Frame("train", "train.py", 30)
    waits = RankOperation("all_reduce", "dp_0", 5, is_finished=False)
    ahead = RankState(0, doing=waits, counts={"world": 2, "dp_0": 5}, stack=(train, MAIN))
    send = RankOperation("send", peer=3, may_have_tag=True)
    receive = RankOperation("recv", peer=1)
    later = (replace(train, line=40), MAIN)
    sends = RankState(1, doing=send, counts={"world": 2, "dp_0": 4}, stack=later)
    root = found([ahead, sends, RankState(3, doing=receive, counts={"world": 2, "dp_1": 4})])
    assert (root.kind, root.ranks) == (RootKind.CIRCLE, None)
