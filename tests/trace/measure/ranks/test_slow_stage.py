"""The slow stage: named where it computes longer than all others, beyond what those differ by."""

from __future__ import annotations

from typing import Any

import pytest

from serried.trace.measure.analysis import analyse
from serried.trace.measure.ranks.slow_stage import SlowStage
from tests.trace.simulated_run import BACKWARD, FORWARD, Forward, simulated_run

WHOLE = FORWARD + BACKWARD


def found(forward: Forward, **sizes: Any) -> SlowStage | None:
    return analyse(simulated_run(forward=forward, **sizes)).slow_stage


def slower_by(share: float, stage: int = 1) -> Forward:
    """Returns forwards by which one stage computes longer by ``share`` of a microbatch."""
    return lambda pipeline, step, at, mb: FORWARD + round(WHOLE * share) * (at == stage)


def test_the_stage_is_named_with_its_ranks_and_by_how_much() -> None:
    stage = found(slower_by(0.2), pp=4, dp=2)
    assert stage is not None
    assert (stage.stages, stage.ranks) == ((1,), (2, 3))
    assert stage.slower == pytest.approx(0.2)
    assert stage.others_ns == 8 * WHOLE


@pytest.mark.parametrize("pp", [2, 3, 4])
@pytest.mark.parametrize(("share", "is_named"), [(0.05, False), (0.15, True)])
def test_by_less_than_a_tenth_none_is_named(pp: int, share: float, is_named: bool) -> None:
    assert (found(slower_by(share), pp=pp, dp=1) is not None) == is_named


@pytest.mark.parametrize(("share", "is_named"), [(0.15, False), (0.3, True)])
def test_of_fewer_than_three_steps_it_must_be_plain(share: float, is_named: bool) -> None:
    assert (found(slower_by(share), num_steps=1) is not None) == is_named


def test_one_slow_step_names_no_stage() -> None:
    forward = slower_by(1.0)
    assert found(lambda p, step, s, mb: forward(p, step, s, mb) if step == 2 else FORWARD) is None


@pytest.mark.parametrize(("disturbed", "is_named"), [(3, True), (5, False)])
def test_a_few_steps_in_which_others_are_held_up_hide_no_slow_stage(
    disturbed: int, is_named: bool
) -> None:
    forward = slower_by(0.2)

    def held_up(pipeline: int, step: int, stage: int, microbatch: int) -> int:
        longer = 2 if stage == 0 and step < disturbed else 1
        return longer * forward(pipeline, step, stage, microbatch)

    assert (found(held_up, pp=2, dp=1, num_steps=14) is not None) == is_named


def test_stages_that_all_differ_name_none() -> None:
    # The largest is 12 % over the median of the others, which differ by 6 % among themselves.
    longer = (0.0, 0.06, 0.12, 0.18)
    assert found(lambda p, step, s, mb: FORWARD + round(WHOLE * longer[s])) is None


def test_without_a_pipeline_there_is_no_stage_to_name() -> None:
    assert found(slower_by(1.0, stage=0), pp=1, dp=2) is None
