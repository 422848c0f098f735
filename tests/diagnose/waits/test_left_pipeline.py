"""Who left a pipeline early is named only where it alone is in a collective and all others wait."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import pytest

from serried.diagnose.evidence.stacks.stack import Frame
from serried.diagnose.job_state.state import JobGroup, JobState, RankOperation, RankState
from serried.diagnose.waits.graph import wait_graph
from serried.diagnose.waits.left_pipeline import left_pipeline
from serried.diagnose.waits.roots import roots

TRAIN = Frame("train", "train.py", 12)
PIPELINING = "site-packages/torch/distributed/pipelining/schedules.py"
WAITING = (Frame("_wait_batch_p2p", PIPELINING, 683), TRAIN)
WAITING_IN_C = (
    Frame("pthread_cond_timedwait", "libc.so.6"),
    Frame("c10d::ProcessGroupGloo::RecvWork::wait", "libtorch_cpu.so"),
    *WAITING,
)
COMPUTING = (Frame("matmul", "site-packages/torch/functional.py", 4), *WAITING)
READING = (Frame("read_batch", "train.py", 40), TRAIN)
BARRIER = RankOperation("barrier", "world", 1, is_finished=False)


def state(
    stacks: Sequence[tuple[Frame, ...] | None],
    pp: int = 0,
    *,
    groups: tuple[JobGroup, ...] | None = None,
) -> JobState:
    """A pipeline of ranks with these stacks; None stands in the barrier.

    With ``groups`` these are told beside the world's, and no layout is.
    """
    ranks = [
        RankState(rank, stack=stack, counts={})
        if stack is not None
        else RankState(rank, doing=BARRIER, counts={"world": 1})
        for rank, stack in enumerate(stacks)
    ]
    size, stages = len(stacks), pp or len(stacks)
    group = JobGroup("world", "world", tuple(range(size)))
    axes = (("dp", size // stages), ("pp", stages)) if groups is None else ()
    return JobState.of(size, [group, *(groups or ())], ranks, axes=axes)


@pytest.mark.parametrize("waiting", [WAITING, WAITING_IN_C])
@pytest.mark.parametrize("early", range(4))
def test_the_one_that_came_to_a_barrier_alone_left_its_pipeline_early(
    early: int, waiting: tuple[Frame, ...]
) -> None:
    stacks = [None if rank == early else waiting for rank in range(4)]
    [root] = roots(wait_graph(state(stacks)))
    assert (root.kind.value, root.ranks) == ("left_pipeline_early", (early,))
    assert root.waiters == tuple(rank for rank in range(4) if rank != early)


@pytest.mark.parametrize(
    "stacks", list(itertools.product([None, WAITING, COMPUTING, READING], repeat=3))
)
def test_nobody_left_early_where_another_is_there_too_or_works(
    stacks: tuple[tuple[Frame, ...] | None, ...],
) -> None:
    named = list(left_pipeline(wait_graph(state(list(stacks)))))
    assert bool(named) == (stacks.count(None) == 1 and stacks.count(WAITING) == 2)


def test_who_gave_up_in_a_message_waited_for_one_and_who_gave_up_elsewhere_may_not_have() -> None:
    ranks = [
        RankState(rank, gave_up=True, counts={}, doing=RankOperation("send", peer=rank + 1))
        for rank in range(3)
    ]
    late = RankState(3, gave_up=True, doing=BARRIER, counts={"world": 1})
    world = JobGroup("world", "world", tuple(range(4)))
    job = JobState.of(4, [world], [*ranks, late], axes=(("pp", 4),))
    [root] = roots(wait_graph(job))
    assert (root.kind.value, root.ranks) == ("left_pipeline_early", (3,))
    elsewhere = JobState.of(
        4, [world], [*ranks[:2], replace(ranks[2], doing=None), late], axes=(("pp", 4),)
    )
    assert not list(left_pipeline(wait_graph(elsewhere)))


def test_of_two_stages_or_several_pipelines_nothing_tells_who_is_early() -> None:
    assert not list(left_pipeline(wait_graph(state([None, WAITING]))))
    assert not list(left_pipeline(wait_graph(state([None, WAITING, WAITING, WAITING], pp=2))))


def test_torchs_own_schedules_tell_a_pipeline_of_which_no_layout_is_given() -> None:
    alone = tuple(JobGroup(f"mesh_dp [{rank}]", "mesh_dp", (rank,)) for rank in range(4))
    [root] = roots(wait_graph(state([WAITING, WAITING, WAITING, None], groups=alone)))
    assert (root.kind.value, root.ranks) == ("left_pipeline_early", (3,))
    sent = (Frame("send", "site-packages/torch/distributed/distributed_c10d.py", 9), TRAIN)
    assert not list(left_pipeline(wait_graph(state([sent, sent, sent, None], groups=alone))))


def test_one_of_several_pipelines_is_told_by_its_groups_and_not_by_all_ranks() -> None:
    stages = [WAITING, WAITING, WAITING, None]
    pairs = (JobGroup("a", "mesh_pp", (0, 1)), JobGroup("b", "mesh_pp", (2, 3)))
    assert not list(left_pipeline(wait_graph(state(stages, groups=pairs))))
    assert not list(left_pipeline(wait_graph(state(stages, groups=(JobGroup("c", "x", (0, 1)),)))))
    # The barrier is of both pipelines: others are awaited in it as well.
    lines = (JobGroup("a", "mesh_pp", (0, 1, 2, 3)), JobGroup("b", "mesh_pp", (4, 5, 6, 7)))
    assert not list(left_pipeline(wait_graph(state([*stages, *[WAITING] * 4], groups=lines))))
