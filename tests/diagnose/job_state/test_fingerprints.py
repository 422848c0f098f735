"""Lines of torch's check are of the group in which all who speak stand at the places they say."""

from __future__ import annotations

from serried.diagnose.evidence.quote import Quote, Speaker
from serried.diagnose.evidence.sign import CollectiveFacts, Sign
from serried.diagnose.job_state.endings import Endings
from serried.diagnose.job_state.fingerprints import put_fingerprints
from serried.diagnose.job_state.state import JobGroup, RankCondition, RankState

WORLD = JobGroup("world", "world", tuple(range(8)))
PAIRS = tuple(JobGroup(f"tp_{n}", "tp", (2 * n, 2 * n + 1)) for n in range(4))
EVENS = JobGroup("dp_0", "dp", (0, 2, 4, 6))
ODDS = JobGroup("dp_1", "dp", (1, 3, 5, 7))
REDUCES, SENDS = CollectiveFacts("ALLREDUCE", 3, 64), CollectiveFacts("BROADCAST", 3, 64)


def said(speakers: dict[int, list[tuple[int, CollectiveFacts]]]) -> list[RankState]:
    """Returns the ranks of a job in which some have ended on torch's check."""
    ends = Endings(
        fingerprints={
            rank: Sign(
                "fingerprints",
                Quote("a.log", rank, ""),
                Speaker(rank),
                facts={"sides": tuple(sides)},
            )
            for rank, sides in speakers.items()
        }
    )
    ranks = [RankState(rank, RankCondition.UNKNOWN) for rank in range(8)]
    put_fingerprints(ranks, ends, [WORLD, *PAIRS, EVENS, ODDS])
    return ranks


def test_a_rank_says_first_which_member_of_its_group_it_is() -> None:
    ranks = said({1: [(0, REDUCES), (2, SENDS)], 5: [(2, SENDS), (0, REDUCES)]})
    done = {rank.rank: (rank.doing.op, rank.doing.group) for rank in ranks if rank.doing}
    assert done == {1: ("all_reduce", "dp_1"), 5: ("broadcast", "dp_1")}


def test_lines_that_fit_two_groups_say_nothing_of_either() -> None:
    # Member 0 of three groups, and nobody else speaks.
    assert all(rank.doing is None for rank in said({0: [(0, REDUCES), (1, SENDS)]}))
