from __future__ import annotations

from dataclasses import replace

import pytest

from serried.errors import InputError
from serried.plan.retime.observed import WORK, ObservedRun, StageWork, observe
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


def test_what_a_stage_takes_is_told_by_stages_of_two_sizes() -> None:
    one = observe(run_of(4, "1f1b", 8)[0])
    runs = [
        replace(
            one, sizes={"pp": pp}, sequences=n, layer=StageWork(each, each, each), compute="real"
        )
        for pp, n in ((2, 2), (4, 2), (4, 8), (8, 1))
        for each in [0.002 + 0.003 / n + 0.004 * pp / 16 / n]
    ]
    found = together(runs)
    for name in WORK:
        told = [getattr(part, name) for part in (found.layer, found.fixed, found.stage)]
        assert told == pytest.approx([0.002, 0.003, 0.004], rel=1e-6)


def test_halves_are_told_by_the_runs_that_have_them_and_wholes_by_the_others() -> None:
    whole = replace(observe(run_of(4, "1f1b", 8)[0]), compute="real")
    dearer = StageWork(whole.layer.forward, 0.9 * whole.layer.backward, 0.6 * whole.layer.backward)
    split = replace(whole, has_halves=True, layer=dearer, first=StageWork(), run="split")
    both = together([whole, split])
    assert both.layer.backward == pytest.approx(whole.layer.backward)
    assert both.halves is not None
    assert (both.halves.input_grad, both.halves.weight_grad) == pytest.approx((0.9, 0.6))
    slower, quicker = (retime(each, Target(schedule="zb-h1")) for each in (both, whole))
    assert slower.computing > 1.2 * quicker.computing
    assert not slower.assumptions


def test_layers_that_tp_cuts_take_what_a_run_with_tp_showed_beyond_their_share() -> None:
    one = replace(observe(run_of(4, "1f1b", 8)[0]), compute="real", fixed=StageWork())
    cut = replace(one, sizes={**one.sizes, "tp": 2}, layer=one.layer.times(1.5))
    both = together([one, cut])
    assert both.layer.forward == pytest.approx(one.layer.forward)
    assert both.share_of_tp is not None
    assert both.share_of_tp.input_grad == pytest.approx(1.5)
    alone, split = (retime(both, Target(tp=tp)).stage_ms for tp in (1, 2))
    assert split == pytest.approx([0.75 * each for each in alone])
