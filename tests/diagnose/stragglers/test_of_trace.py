"""Stragglers of recorded runs: who was slowed is named, with its cost, and nobody else is."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.steps.of_trace import steps_of_trace
from serried.diagnose.stragglers.cost import Costing
from serried.diagnose.stragglers.of_trace import trace_causes
from serried.diagnose.stragglers.slow import SlowSpell, follows, slow_spells
from serried.trace.formats.reading import read_trace
from serried.trace.measure.analysis import analyse
from serried.trace.measure.verdict import Trouble, run_verdict
from tests.diagnose.stragglers.layout_runs import Sized, layout_run
from tests.diagnose.stragglers.straggler_runs import nothing, pipelines, step_ns

ST = Path("tests/goldens/traces/straggler_analysis/trace-ST.parquet")
PP, DP = 4, 2


def first(causes: list[Cause]) -> tuple[tuple[int, ...] | None, str]:
    return (causes[0].ranks, causes[0].kind) if causes else ((), "none")


@pytest.mark.parametrize("seed", range(3))
def test_a_rank_that_becomes_slow_is_named_with_its_cost_and_since_when(seed: int) -> None:
    draw = random.Random(seed)
    slow, since = draw.randrange(PP * DP), draw.choice([0, 8, 12, 15])

    def slower(pipeline: int, step: int, stage: int, _: int) -> float:
        return 1.5 if step >= since and stage * DP + pipeline == slow else 1.0

    found = list(trace_causes(pipelines(slower, seed)))

    assert [each.ranks for each in found] == [(slow,)]
    assert found[0].cause_class is CauseClass.STRAGGLER
    told = str(found[0].verdict)
    assert f"since step {since}" in told if since else "in all steps" in told

    whole = pipelines(lambda p, t, s, _: 1.5 if s * DP + p == slow else 1.0, seed)
    injected = 1 - step_ns(pipelines(nothing, seed)) / step_ns(whole)
    assert found[0].cost == pytest.approx(injected, abs=0.03)


@pytest.mark.parametrize("seed", range(3))
def test_a_rank_without_like_is_named_by_its_own_past(seed: int) -> None:
    draw = random.Random(seed)
    slow, since = draw.randrange(PP), draw.choice([6, 12, 17])

    def slower(_: int, step: int, stage: int, __: int) -> float:
        return 1.6 if step >= since and stage == slow else 1.0

    found = list(trace_causes(pipelines(slower, seed, dp=1)))

    assert first(found)[0] == (slow,)
    assert f"since step {since}" in str(found[0].verdict)


@pytest.mark.parametrize(("pp", "dp"), [(4, 2), (4, 1), (2, 4), (8, 1)])
def test_nobody_is_named_in_healthy_runs(pp: int, dp: int) -> None:
    runs = (pipelines(nothing, seed, pp=pp, dp=dp, steps=10) for seed in range(2))
    assert [list(trace_causes(run)) for run in runs] == [[], []]


def test_a_stage_of_more_layers_is_uneven_and_no_device_of_it_slow() -> None:
    causes = list(trace_causes(pipelines(lambda p, t, s, m: 2.0 if s == 3 else 1.0, 1)))

    assert first(causes) == ((6, 7), "uneven_stage")
    assert len(causes) == 1
    assert "loss" in str(causes[0].verdict)


def test_one_step_alone_judges_no_rank() -> None:
    slow = pipelines(lambda p, t, s, m: 1.5 if (p, s) == (0, 1) else 1.0, 1, steps=1)
    assert [each.kind for each in trace_causes(slow) if each.kind == "slow_gpu"] == []


def test_one_rank_alone_has_nobody_to_hold_up() -> None:
    assert list(trace_causes(pipelines(nothing, 1, pp=1, dp=1))) == []


@pytest.mark.parametrize("slow", [None, 1, 5])
def test_it_agrees_with_the_verdict_of_the_same_run(slow: int | None) -> None:
    trace = pipelines(lambda p, t, s, m: 1.4 if s * DP + p == slow else 1.0, 3)
    verdict = run_verdict(trace, analyse(trace))
    causes = list(trace_causes(trace))

    if slow is None:
        assert (verdict.trouble, causes) == (Trouble.NONE, [])
    else:
        assert verdict.trouble is Trouble.SLOW_RANK
        assert verdict.ranks == causes[0].ranks == (slow,)


def test_the_published_shares_of_a_real_trace_come_with_its_uneven_last_stage() -> None:
    """The trace ST of StragglerAnalysis (OSDI 2025): S 1.1787, M_S 1.219, M_W 0.031."""
    pytest.importorskip("pyarrow")
    (cause,) = trace_causes(read_trace([ST]))

    assert (cause.kind, cause.ranks) == ("uneven_stage", (6, 7))
    assert "1.179 times" in str(cause.chain[1])
    assert "121.9%" in str(cause.chain[1])
    assert "3.1%" in str(cause.chain[1])
    # (T - T without the last stage's slowness) / T of the published ms-ST.json.
    assert cause.cost == pytest.approx(1 - 1.7710396162385678 / 2.172696813310722, rel=1e-6)


def spell(rank: int, stage: int, part: str, lag_ns: float) -> SlowSpell:
    return SlowSpell((rank,), (stage,), 0, 9, lag_ns, 1e9, ((part, lag_ns),), "waits", 0.1, 1.0)


def test_who_lies_idle_behind_a_slower_rank_of_another_stage_is_not_slow_itself() -> None:
    slow = spell(1, 0, "forward", 8e7)
    assert follows(spell(3, 1, "gaps", 3e7), slow)
    assert not follows(slow, spell(3, 1, "gaps", 3e7))
    assert not follows(spell(3, 1, "forward", 3e7), slow)  # it computes longer of its own
    assert not follows(spell(2, 0, "gaps", 3e7), slow)  # it has the same like
    assert not follows(spell(3, 1, "gaps", 9e7), slow)


@pytest.mark.parametrize("seed", range(3))
def test_beside_a_stage_that_becomes_slow_no_other_was_slow_before(seed: int) -> None:
    """All others get quicker too, as where what they compute on is shared with it."""

    def slower(pipeline: int, step: int, stage: int, microbatch: int) -> float:
        if step < 12:
            return 1.0
        return 4.0 if stage == 0 else 0.5

    trace = pipelines(slower, seed, pp=3, dp=1, steps=24)
    job = steps_of_trace(trace, np.arange(24, dtype=np.int32))
    assert job is not None
    assert [spell.ranks for spell in slow_spells(job)] == [(0,)]


@pytest.mark.parametrize("sized", [Sized(pp=4), Sized(pp=3, dp=2, schedule="zb-h1")], ids=str)
@pytest.mark.parametrize("with_messages", [True, False])
def test_a_replay_as_recorded_takes_as_long_as_the_run(sized: Sized, with_messages: bool) -> None:
    """Also where a receive of what has come already begins and ends as its computation begins."""
    run = layout_run(sized, 1, with_messages=with_messages)
    costing = Costing.of(run, np.arange(12, dtype=np.int32))
    assert costing is not None
    assert costing.recorded.mean() == pytest.approx(step_ns(run) / 1e9, rel=0.05)
