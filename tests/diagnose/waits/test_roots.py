"""Roots of made-up jobs: what a rank does wrong is found, whoever it is and whenever it does it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.action import Action
from serried.diagnose.causes.hang import cause_of
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

TP, DP = 2, 4
WORLD = TP * DP
GROUPS = (
    JobGroup("world", "world", tuple(range(WORLD))),
    *(JobGroup(f"tp_{n}", "tp", (2 * n, 2 * n + 1)) for n in range(DP)),
    *(JobGroup(f"dp_{n}", "dp", tuple(range(n, WORLD, TP))) for n in range(TP)),
)
STEP = (("tp", "all_reduce"), ("tp", "all_reduce"), ("dp", "all_reduce"), ("dp", "all_gather"))

Program = list[tuple[str, str, int]]


def program(steps: int) -> Program:
    return [(kind, op, 64) for _ in range(steps) for kind, op in STEP] + [("world", "barrier", 1)]


def played(programs: list[Program]) -> JobState:
    """Runs programs in which each collective waits for all its members, until nobody moves."""
    group_of = {(r, g.kind): g for g in GROUPS for r in g.ranks}
    place, counts = [0] * WORLD, [dict[str, int]() for _ in range(WORLD)]
    issued: list[list[RankOperation]] = [[] for _ in range(WORLD)]
    moved = True
    while moved:
        moved = False
        for rank in range(WORLD):
            has_issued = len(issued[rank]) > place[rank]
            if not has_issued and place[rank] < len(programs[rank]):
                kind, op, numel = programs[rank][place[rank]]
                group = group_of[rank, kind].name
                counts[rank][group] = counts[rank].get(group, 0) + 1
                issued[rank].append(
                    RankOperation(op, group, counts[rank][group], None, numel, numel, "Float")
                )
                moved = True
        for met in GROUPS:
            fronts = [
                issued[r][place[r]]
                for r in met.ranks
                if len(issued[r]) > place[r] and issued[r][place[r]].group == met.name
            ]
            contents = {(op.op, op.seq, op.numel_in, op.dtype) for op in fronts}
            if len(fronts) == len(met.ranks) and len(contents) == 1:
                moved = True
                for rank in met.ranks:
                    issued[rank][place[rank]] = issued[rank][place[rank]]._replace(is_finished=True)
                    place[rank] += 1
    return JobState.of(
        WORLD,
        GROUPS,
        (
            RankState(
                rank,
                RankCondition.RUNNING,
                tuple(issued[rank]),
                counts[rank],
                doing=issued[rank][-1] if len(issued[rank]) > place[rank] else None,
            )
            for rank in range(WORLD)
        ),
    )


def found(state: JobState) -> tuple[Root, ...]:
    return roots(wait_graph(state))


def test_ranks_that_all_go_on_have_no_root() -> None:
    assert found(played([program(3)] * WORLD)) == ()


@given(rank=st.integers(0, WORLD - 1), left=st.integers(0, 3 * len(STEP)))
def test_a_rank_that_stops_anywhere_is_the_root(rank: int, left: int) -> None:
    programs = [program(3) for _ in range(WORLD)]
    programs[rank] = programs[rank][:left]
    [root] = found(played(programs))
    assert (root.kind, root.ranks) == (RootKind.NEVER_ARRIVED, (rank,))
    assert set(root.waiters) == set(range(WORLD)) - {rank}


@given(rank=st.integers(0, WORLD - 1), place=st.integers(len(STEP), 3 * len(STEP) - 1))
def test_a_collective_left_out_is_charged_to_who_left_it_out(rank: int, place: int) -> None:
    programs = [program(3) for _ in range(WORLD)]
    del programs[rank][place]
    first, *others = found(played(programs))
    assert first.ranks == (rank,), others


@given(rank=st.integers(0, WORLD - 1), step=st.integers(1, 2))
def test_a_collective_of_one_rank_alone_is_charged_to_it(rank: int, step: int) -> None:
    programs = [program(3) for _ in range(WORLD)]
    programs[rank].insert(step * len(STEP), ("world", "all_gather", 1))
    first, *_ = found(played(programs))
    assert (first.kind, first.ranks) == (RootKind.ALONE, (rank,))


@pytest.mark.parametrize("rank", [0, 2, 4])
def test_a_circle_that_waits_for_others_besides_tells_who_strayed_there(rank: int) -> None:
    programs = [program(3) for _ in range(WORLD)]
    del programs[rank][2 * len(STEP) : 3 * len(STEP)]  # it comes to the barrier a step too early
    state = played(programs)
    waiting = Frame("_wait_batch_p2p", "torch/distributed/pipelining/schedules.py", 683)
    last = state.ranks[WORLD - 1]
    assert last.doing is not None and last.doing.group is not None and last.counts is not None
    fewer = {**last.counts, last.doing.group: last.counts[last.doing.group] - 1}
    may_wait = replace(last, doing=None, issued=last.issued[:-1], counts=fewer, stack=(waiting,))
    first, *others = found(replace(state, ranks=(*state.ranks[:-1], may_wait)))
    assert (first.kind, first.ranks) == (RootKind.ALONE, (rank,))
    assert all(each.ranks is None for each in others)


@given(
    rank=st.integers(0, WORLD - 1),
    step=st.integers(1, 2),
    brought=st.sampled_from([("all_reduce", 32), ("broadcast", 64)]),
)
def test_another_size_or_operation_is_charged_to_who_brought_it(
    rank: int, step: int, brought: tuple[str, int]
) -> None:
    programs = [program(3) for _ in range(WORLD)]
    programs[rank][step * len(STEP) + 2] = ("dp", *brought)
    first, *_ = found(played(programs))
    assert first.ranks == (rank,)
    size = brought[0] == "all_reduce"
    assert first.kind is (RootKind.OTHER_SIZE if size else RootKind.OTHER_OPERATION)


def test_in_a_group_of_two_each_ranks_own_past_tells_who_brought_another_size() -> None:
    for rank in (2, 3):
        programs = [program(3) for _ in range(WORLD)]
        programs[rank][len(STEP)] = ("tp", "all_reduce", 7)
        first, *_ = found(played(programs))
        assert (first.kind, first.ranks) == (RootKind.OTHER_SIZE, (rank,))
        assert first.mismatch is not None
        assert not first.mismatch.by_peers


def test_groups_taken_in_the_opposite_order_by_two_ranks_are_charged_to_both() -> None:
    # Half of the ranks go one way and half the other in each pair: the steps before tell.
    programs = [program(3) for _ in range(WORLD)]
    for rank in (0, 3, 5, 6):
        at = len(STEP) + 1
        programs[rank][at], programs[rank][at + 1] = programs[rank][at + 1], programs[rank][at]
    first, *_ = found(played(programs))
    assert (first.kind, first.ranks) == (RootKind.SWAPPED, (0, 3, 5, 6))


def test_a_rank_that_left_nothing_is_awaited_and_not_named_for_that_alone() -> None:
    state = played([program(1)[:-1] if rank == 6 else program(1) for rank in range(WORLD)])
    silent = replace(state, ranks=tuple(RankState(6) if r.rank == 6 else r for r in state.ranks))
    [root] = found(silent)
    assert (root.kind, root.ranks, root.circle) == (RootKind.SILENT, None, (6,))
    told = cause_of(wait_graph(silent), root)
    assert str(told.verdict).startswith("nothing shows that rank 6 joined")
    assert {each.waits_for for each in told.waiting if each.directly} == {(6,)}


def test_a_rank_that_left_nothing_is_not_named_where_another_is_known_to_have_died() -> None:
    state = played([program(1)[:-1] if rank == 6 else program(1) for rank in range(WORLD)])
    left = {6: RankState(6), 1: RankState(1, RankCondition.DEAD)}
    ranks = tuple(left.get(r.rank, r) for r in state.ranks)
    silent = [root for root in found(replace(state, ranks=ranks)) if root.kind is RootKind.SILENT]
    assert not silent
    [root] = found(replace(state, ranks=ranks))
    assert (root.kind, root.ranks) == (RootKind.DEAD, (1,))
    assert 6 not in root.waiters


def test_who_left_nothing_is_not_named_where_others_left_nothing_either() -> None:
    """Rank 0 waits for rank 1 in its own group; ranks 2 and 3 may have held rank 1 up."""
    pair, others = JobGroup("dp_0", "dp", (0, 1)), JobGroup("tp_1", "tp", (1, 2, 3))
    waits = RankState(0, counts={"dp_0": 4}, doing=RankOperation("all_reduce", "dp_0", 4))
    [root] = found(JobState.of(4, [pair, others], [waits]))
    assert (root.kind, root.ranks, root.circle) == (RootKind.SILENT, None, (1, 2, 3))


@pytest.mark.parametrize(
    ("of_node", "who"), [(None, "ranks 4, 5"), (2, "every rank of node 2"), (4, "ranks 4, 5")]
)
def test_of_a_whole_node_that_left_nothing_it_is_said_and_nobody_is_named(
    of_node: int | None, who: str
) -> None:
    lost = (4, 5)
    state = played([program(1)[:-1] if rank in lost else program(1) for rank in range(WORLD)])
    ranks = tuple(RankState(r.rank) if r.rank in lost else r for r in state.ranks)
    [root] = found(replace(state, ranks=ranks, gpus_per_node=of_node))
    assert (root.kind, root.ranks, root.circle) == (RootKind.SILENT, None, lost)
    told = str(cause_of(wait_graph(replace(state, gpus_per_node=of_node)), root).verdict)
    assert told.startswith(f"nothing shows that {who} joined")


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        (RankCondition.DEAD, RootKind.DEAD),
        (RankCondition.STOPPED, RootKind.STOPPED),
        (RankCondition.FINISHED, RootKind.FINISHED),
    ],
)
def test_how_a_root_ended_is_told_even_inside_the_collective(
    condition: RankCondition, kind: RootKind
) -> None:
    inside = [
        RankState(
            rank,
            condition if rank == 5 else RankCondition.RUNNING,
            counts={"world": 1},
            doing=RankOperation("barrier", "world", 1),
        )
        for rank in range(WORLD)
    ]
    [root] = found(JobState.of(WORLD, GROUPS, inside))
    assert (root.kind, root.ranks) == (kind, (5,))


def test_two_ranks_in_the_same_code_are_one_root() -> None:
    at = (Frame("read", "loader.py", 3),)
    state = JobState.of(
        WORLD,
        GROUPS,
        [
            RankState(rank, stack=at, counts={})
            if rank in (2, 4)
            else RankState(rank, counts={"world": 1}, doing=RankOperation("barrier", "world", 1))
            for rank in range(WORLD)
        ],
    )
    [root] = found(state)
    assert (root.kind, root.ranks) == (RootKind.USER_CODE, (2, 4))


def pipeline(*doing: tuple[str, int]) -> JobState:
    """A pipeline of one rank a stage, each in a message with a peer."""
    ranks = [RankState(r, doing=RankOperation(op, peer=peer)) for r, (op, peer) in enumerate(doing)]
    return JobState.of(len(doing), (), ranks, axes=(("pp", len(doing)),))


def test_of_two_neighbours_in_send_the_later_stage_left_out_a_receive() -> None:
    first, *_ = found(pipeline(("recv", 1), ("send", 2), ("send", 1), ("send", 2)))
    assert (first.kind, first.ranks) == (RootKind.OUT_OF_SCHEDULE, (2,))
    assert first.waiters == (0, 1, 3)


def test_without_recorded_actions_one_send_too_many_is_not_ruled_out() -> None:
    graph = wait_graph(pipeline(("recv", 1), ("send", 2), ("send", 1), ("send", 2)))
    first, *_ = roots(graph)
    assert first.confidence == 0.6
    cause = cause_of(graph, first)
    assert "unless rank 1 sends one too many" in str(cause.verdict)
    assert "serried.guard()" in str(cause.cures[-1])


def test_recorded_actions_rule_out_that_the_earlier_stage_sends_too_much() -> None:
    state = pipeline(("recv", 1), ("send", 2), ("send", 1), ("send", 2))
    done = tuple(RankOperation("send", action=Action.parse(a)) for a in ("2RECV_F0", "2SEND_B1"))
    ranks = [replace(each, issued=done) if each.rank == 2 else each for each in state.ranks]
    graph = wait_graph(replace(state, ranks=tuple(ranks)))
    first, *_ = roots(graph)
    assert (first.ranks, first.confidence) == ((2,), 0.8)
    assert "unless" not in str(cause_of(graph, first).verdict)


def test_a_send_that_its_receiver_waits_for_goes_elsewhere() -> None:
    first, *_ = found(pipeline(("send", 1), ("send", 2), ("recv", 1), ("recv", 2)))
    assert (first.kind, first.ranks) == (RootKind.WRONG_PEER, (1,))


def test_a_send_and_its_receive_in_streams_of_nccl_are_on_their_way() -> None:
    state = pipeline(("recv", 1), ("send", 0), ("recv", 1))
    ranks = tuple(
        replace(each, doing=each.doing and each.doing._replace(is_queued=True))
        for each in state.ranks
    )
    [first, *_] = found(replace(state, ranks=ranks))
    assert first.ranks is None


def test_a_circle_that_nothing_tells_apart_accuses_nobody() -> None:
    both = [
        RankState(0, counts={"tp_0": 1}, doing=RankOperation("all_reduce", "tp_0", 1)),
        RankState(1, counts={"dp_1": 1}, doing=RankOperation("all_reduce", "dp_1", 1)),
        RankState(3, counts={"tp_1": 1}, doing=RankOperation("all_reduce", "tp_1", 1)),
        RankState(2, counts={"dp_0": 1}, doing=RankOperation("all_reduce", "dp_0", 1)),
    ]
    groups = [
        JobGroup("tp_0", "tp", (0, 1)),
        JobGroup("tp_1", "tp", (2, 3)),
        JobGroup("dp_0", "dp", (0, 2)),
        JobGroup("dp_1", "dp", (1, 3)),
    ]
    [root] = found(JobState.of(4, groups, both))
    assert (root.kind, root.ranks) == (RootKind.CIRCLE, None)
