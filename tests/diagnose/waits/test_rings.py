"""Roots of rings, whose last rank sends to the first: no place in a ring is odd of itself."""

from __future__ import annotations

import pytest

from serried.diagnose.causes.hang import cause_of
from serried.diagnose.job_state.state import JobGroup, JobState, RankOperation, RankState
from serried.diagnose.waits.graph import wait_graph
from serried.diagnose.waits.order import HowStrayed, deviations
from serried.diagnose.waits.root import RootKind
from serried.diagnose.waits.roots import roots

HOPS, STEPS = 3, 2


def ring(members: tuple[int, ...], world: int, strayed: int, to: int) -> JobState:
    """A job whose ``members`` send around; in its last hop but one a rank sends to another.

    Rank ``strayed`` waits for ``to`` to receive that, and its next rank for what it did not send.
    """
    group = JobGroup("cp_0", "cp", members)
    size = len(members)
    states = []
    for place, rank in enumerate(members):
        after, before = members[(place + 1) % size], members[place - 1]
        issued: list[RankOperation] = []
        for step in range(STEPS):
            for hop in range(HOPS):
                is_last = (step, hop) == (STEPS - 1, HOPS - 1)
                peer = to if is_last and rank == strayed else after
                issued += [
                    RankOperation("send", "cp_0", peer=peer, is_finished=not is_last),
                    RankOperation("recv", "cp_0", peer=before, is_finished=not is_last),
                ]
        doing = issued[-2] if rank == strayed else issued[-1]
        states.append(RankState(rank, issued=tuple(issued), counts={}, doing=doing))
    return JobState.of(world, [JobGroup("world", "world", tuple(range(world))), group], states)


@pytest.mark.parametrize("strayed", range(6))
def test_who_sends_to_another_than_the_next_is_named_wherever_it_stands(strayed: int) -> None:
    to = (strayed + 2) % 6
    graph = wait_graph(ring((0, 1, 2, 3, 4, 5), 6, strayed, to))
    [root] = roots(graph)
    assert (root.kind, root.ranks) == (RootKind.WRONG_PEER, (strayed,))
    verdict = str(cause_of(graph, root).verdict)
    told = f"rank {strayed} issued a send to rank {to} where its peers issue a send to rank "
    assert verdict.startswith(f"{told}{(strayed + 1) % 6};")


@pytest.mark.parametrize("strayed", [0, 2, 4, 6])
def test_a_ring_of_some_ranks_is_counted_by_its_own_places(strayed: int) -> None:
    to = (strayed + 4) % 8
    graph = wait_graph(ring((0, 2, 4, 6), 8, strayed, to))
    [root] = roots(graph)
    assert root.ranks == (strayed,)
    assert f"send to rank {(strayed + 2) % 8};" in str(cause_of(graph, root).verdict)


def crossing(is_first_step: bool) -> JobState:
    """Two replicas of two stages whose blocking sends cross, in their first step or a later one."""
    world = JobGroup("world", "world", (0, 1, 2, 3))
    states = []
    for rank in range(4):
        peer = (rank + 2) % 4
        before = (
            [] if is_first_step else [RankOperation("send", "world", peer=peer, is_finished=True)]
        )
        standing = RankOperation("send", "world", peer=peer, is_finished=False)
        issued = (*before, RankOperation("recv", "world", peer=peer, is_finished=True), standing)
        states.append(RankState(rank, issued=issued, counts={"world": 0}, doing=standing))
    return JobState.of(4, [world], states)


def test_sends_that_cross_in_the_first_step_are_the_programs_and_no_ranks_fault() -> None:
    graph = wait_graph(crossing(is_first_step=True))
    both = roots(graph)
    assert [(root.kind, root.ranks, root.circle) for root in both] == [
        (RootKind.OUT_OF_SCHEDULE, None, (0, 2)),
        (RootKind.OUT_OF_SCHEDULE, None, (1, 3)),
    ]
    cause = cause_of(graph, both[0])
    assert str(cause.verdict).startswith(
        "ranks 0 and 2 each send to the other and neither receives"
    )
    assert "batch_isend_irecv" in str(cause.cures[0])


def test_sends_that_cross_in_a_later_step_are_charged_to_the_later_stage_of_each_pair() -> None:
    both = roots(wait_graph(crossing(is_first_step=False)))
    assert [root.ranks for root in both] == [(2,), (3,)]


def halo(to_next: int | None) -> JobState:
    """Four ranks in a row that exchange both ways; in its third step rank 1 does not with its next.

    With ``to_next`` it sends there, to that rank instead; else it leaves that exchange out.
    """
    world = JobGroup("world", "world", (0, 1, 2, 3))
    states = []
    for rank in range(4):
        issued: list[RankOperation] = []
        for step in range(3):
            peers = [peer for peer in (rank - 1, rank + 1) if 0 <= peer < 4]
            is_odd = rank == 1 and step == 2
            for peer in peers[:1] if is_odd and to_next is None else peers:
                to = to_next if is_odd and peer == 2 and to_next is not None else peer
                issued += [RankOperation("send", "world", peer=to, is_finished=True)]
                issued += [RankOperation("recv", "world", peer=peer, is_finished=True)]
        if rank == 1 and to_next is None:  # it goes on to its next step
            issued += [
                RankOperation("send", "world", peer=0),
                RankOperation("recv", "world", peer=0),
            ]
        at = -2 if rank == 1 and to_next is not None else -1
        issued[at] = issued[at]._replace(is_finished=False)
        states.append(RankState(rank, issued=tuple(issued), counts={}, doing=issued[at]))
    return JobState.of(4, [world], states)


@pytest.mark.parametrize(
    ("to_next", "departure"), [(None, HowStrayed.SKIPPED), (3, HowStrayed.OTHER_GROUP)]
)
def test_an_exchange_left_out_is_told_from_one_with_another_rank(
    to_next: int | None, departure: HowStrayed
) -> None:
    """The ends of the row have one neighbour and depart from nothing."""
    [found] = deviations(halo(to_next))
    assert (found.rank, found.departure, found.expected) == (1, departure, ("+1 world", "send"))
