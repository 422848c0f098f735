from __future__ import annotations

from dataclasses import replace

import pytest

from serried.errors import InputError
from serried.plan.retime.observed import ObservedRun, StageWork, observe
from serried.plan.retime.retimed import Target, retime
from serried.plan.retime.several import together
from tests.plan.retime.simulated import run_of


@pytest.fixture(scope="module")
def one() -> ObservedRun:
    return observe(run_of(4, "1f1b", 8)[0])


def of_sequences(run: ObservedRun, sequences: int, fixed: float, each: float) -> ObservedRun:
    seen = fixed / sequences + each
    return replace(run, sequences=sequences, layer=StageWork(seen, seen, seen))


def test_two_sizes_of_microbatch_tell_fixed_times_from_those_of_sequences(one: ObservedRun) -> None:
    both = together([of_sequences(one, n, fixed=0.003, each=0.002) for n in (1, 4)])
    assert both.layer.forward == pytest.approx(0.002)
    assert both.fixed.forward == pytest.approx(0.003)
    per_stage = retime(both, Target(pp=4, microbatches=8)).stage_ms[0]
    assert per_stage == pytest.approx(4 * (3 + 2 * both.sequences), rel=1e-6)


def test_times_are_never_below_zero(one: ObservedRun) -> None:
    falling = [of_sequences(one, 1, 0, 0.004), of_sequences(one, 4, 0, 0.0001)]
    assert together(falling).layer.forward >= 0
    rising = [of_sequences(one, 1, 0, 0.001), of_sequences(one, 4, 0, 0.004)]
    assert together(rising).fixed.forward == 0


def test_what_only_one_run_has_is_taken_from_it(one: ObservedRun) -> None:
    exchanging = replace(one, exchange=StageWork(0.001, 0.001, 0), sums=0.5)
    both = together([one, exchanging])
    assert (both.exchange, both.sums) == (StageWork(0.001, 0.001, 0), 0.5)


def test_runs_of_different_models_are_refused(one: ObservedRun) -> None:
    with pytest.raises(InputError, match="give runs of one model"):
        together([one, replace(one, num_layers=8)])
    with pytest.raises(InputError, match="no run is given"):
        together([])
