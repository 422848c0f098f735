"""Who is late by itself, and who only with what another stage sent late."""

from __future__ import annotations

from serried.diagnose.gathered import Evidence
from serried.diagnose.job_state.state import JobGroup, JobState, RankOperation, RankState
from serried.diagnose.stragglers.came_last import came_last
from serried.diagnose.stragglers.causes import causes

STEP_NS, LATE_NS = 100_000_000, 30_000_000
ROUNDS = 24
PAIRS = ((0, 1), (2, 3), (4, 5), (6, 7))
ACROSS = ((0, 2), (1, 3), (4, 6), (5, 7))


def job(late: set[int], *, pipeline: int) -> JobState:
    """Two stages of two tensor pairs, which meet across them; some ranks come late.

    The second stage, of ranks 4 to 7, brings more elements than the first.
    """
    groups = [JobGroup(f"tp_{n}", "tp", ranks) for n, ranks in enumerate(PAIRS)]
    groups += [JobGroup(f"cp_{n}", "cp", ranks) for n, ranks in enumerate(ACROSS)]

    def issued(rank: int) -> list[RankOperation]:
        pair = next(each for each in groups if each.kind == "tp" and rank in each.ranks)
        across = next(each for each in groups if each.kind == "cp" and rank in each.ranks)
        found: list[RankOperation] = []
        for n in range(1, ROUNDS + 1):
            comes = n * STEP_NS + LATE_NS * (rank in late)
            together = n * STEP_NS + LATE_NS * (not late.isdisjoint(pair.ranks))
            size = 9 if rank > 3 else 8
            for group, seq, at in (
                (pair, 2 * n, comes),
                (pair, 2 * n + 1, together + 1),
                (across, n, together + 2),
            ):
                found.append(
                    RankOperation("all_reduce", group.name, seq, numel_in=size, began_ns=at)
                )
        return found

    ranks = [
        RankState(
            rank,
            issued=tuple(issued(rank)),
            counts={each.name: ROUNDS for each in groups if rank in each.ranks},
        )
        for rank in range(8)
    ]
    return JobState.of(8, groups, ranks, axes=(("tp", 2), ("cp", 2), ("pp", pipeline)))


def named(state: JobState) -> set[int]:
    return {rank for each in came_last(state) for rank in each.spell.ranks}


def test_a_pair_that_is_late_alike_follows_whoever_is_late_by_itself() -> None:
    """Ranks 0 and 1 get late what rank 5 is late with."""
    assert named(job({0, 1, 5}, pipeline=2)) == {5}


def test_a_pair_that_is_late_alike_is_named_where_nobody_else_is() -> None:
    assert named(job({0, 1}, pipeline=2)) == {0, 1}


def test_without_a_pipeline_no_lateness_comes_from_another_stage() -> None:
    assert named(job({0, 1, 5}, pipeline=1)) == {0, 1, 5}


def test_of_two_stages_of_one_pipeline_that_are_each_late_nobody_is_named() -> None:
    """Ranks 1 and 5 are the stages of one pipeline, and each keeps its own partner waiting."""
    state = job({1, 5}, pipeline=2)
    assert {each.candidates for each in came_last(state)} == {(1, 5)}
    (cause,) = causes(Evidence(state=state))
    assert (cause.ranks, cause.kind) == (None, "slow_rank")
    assert str(cause.verdict).startswith("one of ranks 1, 5 holds the others up")
