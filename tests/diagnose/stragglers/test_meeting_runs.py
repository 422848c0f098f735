"""Slow ranks where everybody waits for one: under DP, TP, and FSDP or ZeRO-3 alone."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from serried.diagnose.diagnosis import CauseClass
from serried.diagnose.stragglers.of_trace import trace_causes
from serried.trace.model.trace import Host, Trace
from tests.diagnose.stragglers.meeting_runs import Meets, meeting_run


@pytest.mark.parametrize("meets", Meets)
@pytest.mark.parametrize("seed", range(4))
def test_the_slow_rank_is_named_and_nobody_who_waits_for_it(meets: Meets, seed: int) -> None:
    draw = random.Random(seed)
    world, factor = draw.choice([2, 4, 8]), draw.choice([1.2, 1.5])
    slow, since = draw.randrange(world), draw.choice([0, 8, 13])

    def slower(step: int, rank: int) -> float:
        return factor if rank == slow and step >= since else 1.0

    (found,) = trace_causes(meeting_run(meets, slower, seed, world=world))

    assert (found.cause_class, found.ranks) == (CauseClass.STRAGGLER, (slow,))
    assert (f"since step {since}" if since else "in all steps") in str(found.verdict)
    # All wait for what it computes longer: 30 ms of a step of 33 to 44 ms, without the noise.
    assert found.cost == pytest.approx(30 * (factor - 1) / (34 + 30 * (factor - 1)), abs=0.06)


@pytest.mark.parametrize("meets", Meets)
def test_two_slow_ranks_are_named_beside_those_who_wait(meets: Meets) -> None:
    found = list(trace_causes(meeting_run(meets, lambda _, rank: (1, 1.5, 1, 1.5)[rank], 5)))
    assert {each.ranks for each in found} <= {(1,), (3,)}
    assert found


@pytest.mark.parametrize("meets", Meets)
@pytest.mark.parametrize("seed", range(2))
def test_nobody_is_named_where_all_are_alike(meets: Meets, seed: int) -> None:
    assert list(trace_causes(meeting_run(meets, lambda *_: 1.0, seed))) == []


@pytest.mark.parametrize("meets", Meets)
def test_a_slow_node_is_named_with_all_its_ranks(meets: Meets) -> None:
    run = meeting_run(meets, lambda _, rank: (1.0, 1.4)[rank // 2], 3)
    hosts = (Host("a", (0, 1), 0), Host("b", (2, 3), 0))
    (found,) = trace_causes(replace(run, hosts=hosts))
    assert found.ranks == (2, 3)
    assert str(found.verdict).startswith("ranks 2, 3 on b hold the others up")
    assert str(found.chain[0]).startswith("ranks 2, 3 on b take longer than ranks that do equal")


@pytest.mark.parametrize("meets", Meets)
@pytest.mark.parametrize("noise", [0.02, 0.05, 0.1])
def test_the_cost_is_what_the_run_would_save_and_not_what_the_others_wait(
    meets: Meets, noise: float
) -> None:
    slow = meeting_run(meets, lambda _, rank: (1.0, 1.2)[rank == 1], 1, noise=noise)
    cured = meeting_run(meets, lambda *_: 1.0, 1, noise=noise)
    (found,) = trace_causes(slow)
    assert found.cost == pytest.approx(1 - lasted(cured) / lasted(slow), abs=0.007)


@pytest.mark.parametrize("meets", [Meets.TP, Meets.FSDP])
@pytest.mark.parametrize("world", [2, 4, 8])
def test_ranks_that_come_last_by_turns_are_told_with_what_it_costs_and_nobody_is_named(
    meets: Meets, world: int
) -> None:
    run = meeting_run(meets, lambda *_: 1.0, 7, noise=0.2, world=world)
    even = meeting_run(meets, lambda *_: 1.0, 7, noise=0.0, world=world)
    (found,) = trace_causes(run)
    assert (found.kind, found.ranks) == ("jitter", ())
    assert found.cost == pytest.approx(1 - lasted(even) / lasted(run), abs=0.03)


def lasted(trace: Trace) -> int:
    return int(trace.spans.end_ns.max() - trace.spans.start_ns.min())
