from __future__ import annotations

from dataclasses import replace

import pytest

from serried.errors import InputError
from serried.plan.retime.observed import observe
from serried.plan.retime.retimed import Target, retime
from tests.plan.retime.simulated import AROUND_MS, run_of


@pytest.mark.parametrize(
    ("pp", "schedule", "microbatches"),
    [
        (4, "zb-h1", 8),
        (2, "zb-h1", 8),
        (8, "zb-h1", 16),
        (4, "zbv", 16),
        (4, "1f1b", 4),
        (8, "gpipe", 8),
        (1, "1f1b", 16),
        (2, "interleaved-1f1b", 8),
    ],
)
def test_a_step_timed_again_is_the_step_of_a_run_that_was_so(
    pp: int, schedule: str, microbatches: int
) -> None:
    observed = observe(run_of(4, "zb-h1", 8)[0])
    sequences = 2 * 8 // microbatches
    _, makespan = run_of(pp, schedule, microbatches, sequences=sequences)
    told = retime(observed, Target(pp=pp, schedule=schedule, microbatches=microbatches))
    assert told.sequences == sequences
    assert told.pipeline == pytest.approx(makespan, rel=1e-3)
    assert told.period == pytest.approx(makespan + AROUND_MS / 1e3, rel=1e-3)
    assert told.assumptions == ()


def test_stages_on_each_rank_stay_as_the_run_had_them() -> None:
    run = observe(run_of(4, "interleaved-1f1b", 8)[0])
    assert run.chunks == 2
    more = replace(run, chunks=4)
    assert retime(more, Target()).schedule.placement.stages_per_rank == 4
    assert retime(more, Target(schedule="1f1b")).schedule.placement.stages_per_rank == 1


def test_computing_and_waiting_are_the_pipeline() -> None:
    told = retime(observe(run_of(4, "1f1b", 8)[0]), Target())
    assert told.computing + told.waiting == pytest.approx(told.pipeline)
    low, high = told.interval
    assert low < told.period < high


def test_more_replicas_leave_the_global_batch_as_it_was() -> None:
    observed = observe(run_of(2, "1f1b", 4, sequences=4)[0])
    told = retime(observed, Target(dp=2))
    assert (told.sequences, told.num_microbatches) == (2, 4)
    assert "the run has no replicas" in str(told.assumptions[0])
    with pytest.raises(
        InputError, match=r"global batch of 16 sequences; numbers .* do: 1, 2, 4, 8"
    ):
        retime(observed, Target(dp=2, microbatches=3))


def test_halves_that_no_run_showed_are_told_as_assumed() -> None:
    told = retime(observe(run_of(4, "1f1b", 8)[0]), Target(schedule="zbv"))
    assert [str(each) for each in told.assumptions] == [
        "the run has whole backwards; each half is taken to be half of one"
    ]
    assert told.error > retime(told.observed, Target()).error


def test_faster_computations_shorten_the_pipeline_but_no_message() -> None:
    observed = observe(run_of(4, "1f1b", 8)[0])
    plain, fast = (retime(observed, Target(compute_speed=speed)) for speed in (1.0, 2.0))
    assert plain.pipeline / 2 < fast.pipeline < plain.pipeline
    far = retime(observed, Target(hop_s=0.01))
    assert far.pipeline > plain.pipeline


def test_more_stages_than_layers_are_refused() -> None:
    observed = observe(run_of(4, "1f1b", 8)[0])
    with pytest.raises(
        InputError, match="16 layers cannot fill the 32 stages that zbv has on pp=16"
    ):
        retime(observed, Target(pp=16, schedule="zbv", microbatches=16))


@pytest.mark.parametrize(
    "changed", [{"pp": 0}, {"compute_speed": 0.0}, {"microbatches": -1}, {"hop_s": -1e-6}]
)
def test_targets_that_cannot_be_are_refused(changed: dict[str, int]) -> None:
    with pytest.raises(InputError):
        Target(**changed)  # type: ignore[arg-type]


def test_emulated_times_of_the_answer_are_those_of_its_stages() -> None:
    told = retime(observe(run_of(4, "1f1b", 8)[0]), Target(pp=8, microbatches=16))
    assert told.stage_ms == pytest.approx((2 * 2.0, 2 * 4.0), rel=1e-3)


def test_other_ranks_on_shared_cores_have_a_wide_interval_and_say_why() -> None:
    alone = observe(run_of(2, "1f1b", 4, sequences=4)[0])
    assert not alone.shares_cores
    real = replace(alone, compute="real", shares_cores=True)
    alike, fewer = retime(real, Target()), retime(real, Target(pp=1))
    assert alike.error == pytest.approx(0.25)
    assert fewer.error == pytest.approx(0.65)
    assert str(fewer.assumptions[-1]).startswith("each of 1 ranks is taken to compute as fast")


@pytest.mark.parametrize(
    ("pp", "dp", "schedule", "microbatches"),
    [
        (4, 2, "1f1b", 8),
        (4, 1, "1f1b", 16),
        (2, 2, "gpipe", 8),
        (1, 2, "1f1b", 8),
        (8, 1, "1f1b", 8),
    ],
)
def test_ranks_on_shared_cores_are_timed_as_a_run_that_shares_them_so(
    pp: int, dp: int, schedule: str, microbatches: int
) -> None:
    observed = observe(run_of(4, "1f1b", 8, sequences=4, dp=2, cores=2)[0])
    assert observed.cores == 2
    batch = 4 * 8 * 2
    _, makespan = run_of(
        pp, schedule, microbatches, sequences=batch // (dp * microbatches), dp=dp, cores=2
    )
    told = retime(observed, Target(pp=pp, dp=dp, schedule=schedule, microbatches=microbatches))
    assert told.pipeline == pytest.approx(makespan, rel=0.01)


def test_a_single_real_run_says_what_it_cannot_tell_of_other_microbatches_and_halves() -> None:
    whole = observe(run_of(4, "1f1b", 8, sequences=4, cores=2)[0])
    split = observe(run_of(4, "zb-h1", 8, sequences=4, cores=2)[0])
    smaller = retime(whole, Target(microbatches=16))
    assert str(smaller.assumptions[0]).startswith("a microbatch is taken to take as long as it has")
    assert smaller.error == pytest.approx(0.4)
    joined = retime(split, Target(schedule="1f1b"))
    assert str(joined.assumptions[0]).startswith("the run has backwards in halves")


def test_a_first_stage_without_a_half_for_its_input_never_takes_less_than_nothing() -> None:
    run = observe(run_of(4, "zb-h1", 8, cores=4)[0])
    ends = replace(run, first=replace(run.first, input_grad=-4 * run.layer.input_grad))
    fewer = retime(ends, Target(pp=8, microbatches=8))
    assert fewer.period > 0


def test_messages_that_no_run_showed_are_told_as_assumed() -> None:
    silent = replace(observe(run_of(2, "1f1b", 4, sequences=4)[0]), sizes={"pp": 1}, hop=0.0)
    told = [str(each) for each in retime(silent, Target(pp=2)).assumptions]
    assert told == ["the run has no messages between stages; they are taken to take no time"]
    assert retime(silent, Target(pp=2, hop_s=1e-3)).assumptions == ()
