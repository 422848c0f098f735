"""Nobody is named where many stand at lines of their own, or where files of a rank are missing."""

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
from serried.diagnose.waits.root import Root, RootKind
from serried.diagnose.waits.roots import roots

CALL = RankOperation("all_reduce", "world", 3, is_finished=False)
QUEUED = CALL._replace(is_queued=True)


def at(line: int) -> tuple[Frame, ...]:
    return (Frame("train", "train.py", line),)


def first(*ranks: RankState) -> Root:
    group = JobGroup("world", "world", tuple(range(len(ranks))))
    return roots(wait_graph(JobState.of(len(ranks), [group], ranks)))[0]


def waiting(rank: int, call: RankOperation = CALL) -> RankState:
    return RankState(rank, doing=call, counts={"world": 3}, issued=(call,))


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ((50,), (0,)),
        ((50, 50), (0, 1)),
        ((50, 50, 50), (0, 1, 2)),
        ((50, 50, 50, 50), None),  # most stand at that line: all may come to stand there
        ((50, 51), (0, 1)),
        ((50, 51, 52), None),  # as many at several lines: some of them wait themselves
    ],
)
def test_most_ranks_of_a_job_are_not_stuck_in_code_of_their_own(
    lines: tuple[int, ...], named: tuple[int, ...] | None
) -> None:
    busy = [RankState(n, counts={"world": 2}, stack=at(line)) for n, line in enumerate(lines)]
    root = first(*busy, *(waiting(len(lines) + n) for n in range(3)))
    assert root.ranks == named
    assert root.ranks or root.circle == tuple(range(len(lines)))


def test_a_rank_that_synchronizes_with_its_gpu_is_no_root() -> None:
    on_gpu = (Frame("synchronize", "site-packages/torch/cuda/__init__.py", 9), *at(50))
    assert first(RankState(0, counts={"world": 2}, stack=on_gpu), waiting(1)).ranks is None
    event = (Frame("wait", "multiprocessing/synchronize.py", 356), *at(50))
    assert first(RankState(0, counts={"world": 2}, stack=event), waiting(1)).ranks == (0,)


def test_all_who_may_wait_for_their_gpus_are_told_together() -> None:
    on_gpu = (Frame("synchronize", "site-packages/torch/cuda/__init__.py", 9), *at(50))
    ranks = [RankState(n, counts={"world": 2}, stack=on_gpu) for n in range(4)]
    ranks += [waiting(4), waiting(5)]
    group = JobGroup("world", "world", tuple(range(6)))
    [root] = roots(wait_graph(JobState.of(6, [group], ranks)))
    assert (root.kind, root.ranks) == (RootKind.MAY_WAIT, None)
    assert (root.circle, root.waiters) == ((0, 1, 2, 3), (4, 5))


def test_a_single_stack_of_a_job_on_gpus_may_stand_in_a_wait_for_the_gpu() -> None:
    alone = RankState(0, stack=at(50))
    assert first(alone, waiting(1, QUEUED), waiting(2, QUEUED)).ranks is None
    assert first(alone, waiting(1), waiting(2)).ranks == (0,)


def test_a_rank_that_lives_and_whose_files_are_missing_is_not_accused() -> None:
    lives = RankState(0, RankCondition.RUNNING)
    assert first(lives, waiting(1), waiting(2)).ranks is None
    ended = RankState(0, RankCondition.DEAD)
    assert first(ended, waiting(1), waiting(2)).ranks == (0,)


def test_a_rank_of_which_nothing_tells_whether_it_came_did_not_stay_away() -> None:
    uncounted = RankOperation("all_gather", "world")
    state = JobState.of(
        2,
        [JobGroup("world", "world", (0, 1))],
        [RankState(0, counts={"world": 3}), RankState(1, doing=uncounted)],
    )
    assert roots(wait_graph(state)) == ()


@pytest.mark.parametrize(("counted", "named"), [(0, None), (2, (0, 1))])
def test_ranks_of_a_group_that_never_met_may_wait_for_messages_of_each_other(
    counted: int, named: tuple[int, ...] | None
) -> None:
    busy = [RankState(n, counts={"world": 2, "ring": counted}, stack=at(50)) for n in range(2)]
    ranks = [*busy, *(waiting(2 + n) for n in range(3))]
    groups = [JobGroup("world", "world", tuple(range(5))), JobGroup("ring", "ring", (0, 1))]
    root = roots(wait_graph(JobState.of(5, groups, ranks)))[0]
    assert root.ranks == named
    assert root.ranks or root.kind.value == "may_wait_for_message"


@pytest.mark.parametrize(("tensor", "named"), [((0, 1), (0,)), ((0,), None)])
def test_a_rank_whose_model_is_more_than_a_tensor_group_may_wait_for_a_message(
    tensor: tuple[int, ...], named: tuple[int, ...] | None
) -> None:
    """Nothing but the groups' names says that there are stages; gloo records no messages."""
    counts = {"dp_0": 2, "mp_0": 2}
    waits = RankOperation("all_reduce", "dp_0", 3, is_finished=False, messages=0)
    ranks = [
        RankState(0, counts=counts, issued=(waits._replace(seq=2, is_finished=True),)),
        RankState(2, counts={"dp_0": 3, "mp_1": 2}, doing=waits, issued=(waits,)),
    ]
    groups = [
        JobGroup("dp_0", "dp", (0, 2)),
        JobGroup("mp_0", "mp", (0, 1)),
        JobGroup("mp_1", "mp", (2, 3)),
        JobGroup("tp_0", "tp", tensor),
        JobGroup("tp_1", "tp", tuple(each + 2 for each in tensor)),
    ]
    root = roots(wait_graph(JobState.of(4, groups, ranks)))[0]
    assert root.ranks == named


def test_a_rank_in_a_functional_collective_waits_though_no_dump_tells_for_whom() -> None:
    place = "torch/distributed/_functional_collectives.py"
    wait = (Frame("__call__", "torch/_ops.py", 9), Frame("wait_tensor", place, 142), *at(29))
    assert first(RankState(0, stack=wait), waiting(1), waiting(2)).ranks is None
    computing = (Frame("__call__", "torch/_ops.py", 9), *at(29))
    assert first(RankState(0, stack=computing), waiting(1), waiting(2)).ranks == (0,)
