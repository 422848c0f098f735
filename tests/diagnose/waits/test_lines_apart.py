"""Ranks that call what their peers call from another line of theirs."""

from __future__ import annotations

import pytest

from serried.diagnose.causes.hang import cause_of
from serried.diagnose.evidence.stacks.stack import Frame
from serried.diagnose.job_state.state import JobGroup, JobState, RankOperation, RankState
from serried.diagnose.waits.graph import wait_graph
from serried.diagnose.waits.lines_apart import lines_apart
from serried.diagnose.waits.root import RootKind
from serried.diagnose.waits.roots import roots

GROUPS = (JobGroup("tp_0", "tp", (0, 1)), JobGroup("tp_1", "tp", (2, 3)))
FORWARD, BACKWARD, OWN = 10, 20, 30
STEP = [FORWARD, FORWARD, BACKWARD, BACKWARD]


def rank(number: int, lines: list[int], *, peer: int | None = None) -> RankState:
    """A rank that called an all-reduce from each line in turn, and then waits for ``peer``."""
    group = f"tp_{number // 2}"
    issued = tuple(
        RankOperation(
            "all_reduce",
            group,
            seq,
            is_finished=True,
            frames=(Frame("reduce", "comm.py", 3), Frame("train", "train.py", line)),
        )
        for seq, line in enumerate(lines, 1)
    )
    doing = None if peer is None else RankOperation("send", peer=peer)
    return RankState(number, issued=issued, counts={group: len(lines)}, doing=doing)


def state(*ranks: RankState) -> JobState:
    return JobState.of(4, GROUPS, ranks, axes=(("tp", 2), ("pp", 2)))


def test_who_goes_on_to_the_next_step_before_its_peers_has_left_their_order() -> None:
    early = rank(1, [*STEP, FORWARD, FORWARD, BACKWARD, FORWARD], peer=3)
    others = [rank(0, [*STEP, *STEP]), rank(2, STEP), rank(3, STEP, peer=1)]
    graph = wait_graph(state(early, *others))
    [root] = roots(graph)
    assert (root.kind, root.ranks) == (RootKind.LEFT_ORDER, (1,))
    told = str(cause_of(graph, root).verdict)
    assert told.startswith("rank 1 (tp 1, pp 0) called all_reduce 8 of tp_0 from train (train.py:")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([*STEP, FORWARD], [*STEP, FORWARD, FORWARD]),  # it has not come as far
        ([*STEP, OWN], [*STEP, FORWARD]),  # from a line of its own, as a source calls
        ([FORWARD], [BACKWARD]),  # and nothing tells which is usual
    ],
)
def test_lines_that_tell_no_order_accuse_nobody(one: list[int], other: list[int]) -> None:
    assert lines_apart(state(rank(0, one), rank(1, other)), range(4)) == {}


def test_only_those_that_are_asked_about_are_told() -> None:
    both = state(rank(0, [*STEP, *STEP, FORWARD]), rank(1, [*STEP, *STEP, BACKWARD]))
    assert set(lines_apart(both, [0, 1])) == {1}
    assert lines_apart(both, [0]) == {}


def test_two_who_left_the_order_of_their_peers_keep_the_lines_that_tell_it() -> None:
    lines = [*STEP, FORWARD, FORWARD, BACKWARD, FORWARD]
    early = [rank(1, lines, peer=3), rank(5, lines, peer=7)]
    calm = [rank(0, [*STEP, *STEP]), rank(2, STEP), rank(3, STEP, peer=1)]
    calm += [rank(4, [*STEP, *STEP]), rank(6, STEP), rank(7, STEP, peer=5)]
    groups = tuple(JobGroup(f"tp_{n}", "tp", (2 * n, 2 * n + 1)) for n in range(4))
    ranks = sorted([*early, *calm], key=lambda each: each.rank)
    graph = wait_graph(JobState.of(8, groups, ranks, axes=(("tp", 2), ("pp", 2), ("dp", 2))))
    [root] = roots(graph)
    assert (root.kind, root.ranks) == (RootKind.LEFT_ORDER, (1, 5))
    assert root.line_apart is not None
