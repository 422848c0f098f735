from __future__ import annotations

import pytest

from serried.errors import InputError
from serried.plan.retime.observed import observe, warm_steps
from tests.plan.retime.simulated import AROUND_MS, FIRST_MS, HOP_MS, LAST_MS, LAYER_MS, run_of


def test_a_run_of_many_stages_shows_its_layers_and_ends_apart() -> None:
    trace, makespan = run_of(4, "zb-h1", 8)
    found = observe(trace)
    told = (found.layer, found.first, found.last)
    for work, known in zip(told, (LAYER_MS, FIRST_MS, LAST_MS), strict=True):
        values = (work.forward, work.input_grad, work.weight_grad)
        assert values == pytest.approx([ms / 1e3 for ms in known], rel=1e-3)
    assert found.hop == pytest.approx(HOP_MS / 1e3, rel=1e-3)
    assert found.gap == 0
    assert found.around == pytest.approx(AROUND_MS / 1e3, rel=1e-3)
    assert found.period == pytest.approx(makespan + AROUND_MS / 1e3, rel=1e-4)


def test_whole_backwards_are_taken_as_two_equal_halves() -> None:
    found = observe(run_of(4, "1f1b", 8)[0])
    both = (LAYER_MS[1] + LAYER_MS[2]) / 2e3
    assert not found.has_halves
    assert (found.layer.input_grad, found.layer.weight_grad) == pytest.approx((both, both))


def test_two_stages_cannot_tell_ends_from_layers() -> None:
    found = observe(run_of(2, "1f1b", 4)[0])
    assert found.first.total == found.last.total == 0
    per_layer = (16 * sum(LAYER_MS) + sum(FIRST_MS) + sum(LAST_MS)) / 16e3
    assert found.layer.total == pytest.approx(per_layer, rel=1e-3)


def test_a_run_that_does_not_say_its_layers_counts_stages() -> None:
    found = observe(run_of(4, "1f1b", 8, says_layers=False)[0])
    assert (found.num_layers, found.sequences, found.says_layers) == (4, 1, False)


def test_the_first_step_is_warm_up_and_three_more_are_needed() -> None:
    assert warm_steps(run_of(2, "1f1b", 4, num_steps=4)[0]).tolist() == [1, 2, 3]
    with pytest.raises(InputError, match="3 recorded steps; at least 4 are needed"):
        observe(run_of(2, "1f1b", 4, num_steps=3)[0])


def test_a_slow_step_does_not_move_what_a_run_shows() -> None:
    trace, _ = run_of(4, "1f1b", 8, num_steps=8)
    late = trace.spans.step >= 5
    trace.spans.start_ns[late] += 400_000_000
    trace.spans.end_ns[late] += 400_000_000
    assert observe(trace).around == pytest.approx(AROUND_MS / 1e3, rel=1e-3)
