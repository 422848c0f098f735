"""Who comes last to collectives of which only the moments are known, and how often it has to."""

from __future__ import annotations

import pytest

from serried.diagnose.diagnosis import Cause
from serried.diagnose.gathered import Evidence
from serried.diagnose.job_state.state import JobGroup, JobState, RankOperation, RankState
from serried.diagnose.stragglers.causes import causes

RANKS = (0, 1, 2, 3)
STEP_NS = 50_000_000


def told(rounds: int, late_ns: int, members: tuple[int, ...] = RANKS) -> list[Cause]:
    """Returns what is said where rank 2 comes ``late_ns`` after the others in each round.

    Of ``members`` of the group that are not of RANKS there is no dump.
    """

    def issued(rank: int) -> tuple[RankOperation, ...]:
        late = late_ns if rank == 2 else 0
        return tuple(
            RankOperation("all_reduce", group="world", seq=n, began_ns=n * STEP_NS + late)
            for n in range(1, rounds + 2)
        )

    state = JobState.of(
        len(members),
        [JobGroup("world", "world", members)],
        [RankState(rank, issued=issued(rank)) for rank in RANKS],
    )
    return list(causes(Evidence(state=state)))


def test_who_comes_last_by_far_in_many_rounds_is_named() -> None:
    (cause,) = told(32, 20_000_000)
    assert cause.ranks == (2,)


@pytest.mark.parametrize(
    ("rounds", "late_ns"), [(7, 20_000_000), (24, 20_000_000), (40, 4_000_000)]
)
def test_few_rounds_little_time_or_a_time_slice_of_a_core_name_nobody(
    rounds: int, late_ns: int
) -> None:
    assert told(rounds, late_ns) == []


def test_nobody_is_slow_for_sure_who_meets_a_rank_that_left_no_dump() -> None:
    assert told(32, 20_000_000, members=(*RANKS, 4)) == []
