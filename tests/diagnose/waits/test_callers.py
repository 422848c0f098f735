"""Who calls a collective from a line of its own, where all have come and it does not end."""

from __future__ import annotations

import pytest

from serried.diagnose.causes.hang import cause_of
from serried.diagnose.evidence.stacks.stack import Frame
from serried.diagnose.job_state.state import JobGroup, JobState, RankOperation, RankState
from serried.diagnose.waits.graph import wait_graph
from serried.diagnose.waits.root import Root, RootKind
from serried.diagnose.waits.roots import roots

EVERYBODY = JobGroup("world", "world", (0, 1, 2, 3))
TORCH = Frame("broadcast", "site-packages/torch/distributed/distributed_c10d.py", 3145)


def found(lines: list[tuple[int, ...]], stand: tuple[int, ...]) -> Root | None:
    """The first root of broadcasts, each with the lines of its callers; in the last some stand."""
    ranks = []
    for rank in EVERYBODY.ranks:
        issued = [
            RankOperation(
                "broadcast",
                "world",
                seq,
                numel_in=4,
                dtype="Float",
                is_finished=seq < len(lines) or rank not in stand,
                frames=(TORCH, Frame("main", "train.py", each[rank])),
            )
            for seq, each in enumerate(lines, 1)
        ]
        doing = None if issued[-1].is_finished else issued[-1]
        ranks.append(
            RankState(rank, issued=tuple(issued), counts={"world": len(lines)}, doing=doing)
        )
    graph = wait_graph(JobState.of(4, [EVERYBODY], ranks))
    return next(iter(roots(graph)), None)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_rank_that_leaves_the_line_it_shared_with_all_others_is_named(rank: int) -> None:
    last = tuple(58 if each == rank else 59 for each in EVERYBODY.ranks)
    root = found([(59, 59, 59, 59), (40, 40, 40, 40), last], stand=(0, rank))
    assert root is not None
    assert (root.kind, root.ranks) == (RootKind.OTHER_LINE, (rank,))
    state = JobState.of(4, [EVERYBODY], [])
    verdict = str(cause_of(wait_graph(state), root).verdict)
    assert "main (train.py:58)" in verdict
    assert "main (train.py:59)" in verdict


@pytest.mark.parametrize(
    ("lines", "stand"),
    [
        ([(59, 59, 58, 59)], (0, 2)),  # nothing before: it may be the source
        ([(40, 40, 40, 40), (58, 59, 59, 59)], (0, 2)),  # nothing before from that line
        ([(59, 59, 58, 59), (59, 59, 58, 59)], (0, 2)),  # it always does
        ([(59, 59, 59, 59), (59, 59, 58, 59), (59, 59, 58, 59)], (0, 2)),  # it does now and then
        ([(59, 59, 59, 59), (59, 59, 58, 59)], (0, 1)),  # it is done
        ([(59, 59, 59, 59), (58, 59, 58, 59)], (0, 2)),  # two of each
        ([(59, 59, 59, 59), (59, 59, 59, 59)], (0, 2)),
    ],
)
def test_a_line_that_may_well_differ_accuses_nobody(
    lines: list[tuple[int, ...]], stand: tuple[int, ...]
) -> None:
    root = found(lines, stand)
    assert root is None or root.ranks is None


def test_a_first_rank_that_came_from_the_line_of_the_others_before_is_named() -> None:
    root = found([(59, 59, 59, 59), (58, 59, 59, 59)], stand=(0, 2))
    assert root is not None
    assert root.ranks == (0,)
