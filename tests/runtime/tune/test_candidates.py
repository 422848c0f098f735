from __future__ import annotations

from dataclasses import replace

import pytest

from serried.errors import InputError
from serried.runtime.job.settings import Emulated, ModelSizes, TrainSettings
from serried.runtime.tune.candidates import candidates
from serried.runtime.tune.tuning import calibrating, tune

BASE = TrainSettings(4, pp=2, microbatches=4, model=ModelSizes(layers=8))


def test_every_candidate_keeps_model_batch_and_ranks() -> None:
    found = candidates(BASE)
    assert len({each.name for each in found}) == len(found) > 50
    for each in found:
        its = each.settings
        assert its.tp * its.pp * its.dp == 4
        assert its.microbatch_size * its.microbatches * its.dp == BASE.global_batch_size
        assert its.model == BASE.model


def test_all_degrees_that_heads_and_layers_allow_are_there() -> None:
    degrees = {(each.settings.tp, each.settings.pp) for each in candidates(BASE)}
    assert degrees == {(1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (4, 1)}
    few_heads = replace(BASE, model=ModelSizes(layers=2, heads=2))
    degrees = {(each.settings.tp, each.settings.pp) for each in candidates(few_heads)}
    assert degrees == {(1, 1), (1, 2), (2, 1), (2, 2)}


def test_emulated_times_follow_what_a_stage_holds() -> None:
    base = replace(BASE, emulated=Emulated(16, 32))
    for each in candidates(base):
        its = each.settings
        assert its.emulated
        share = 2 / (its.num_stages * its.tp) * its.microbatch_size / base.microbatch_size
        assert its.emulated.forward_ms == pytest.approx(16 * share)
        assert its.emulated.backward_ms == pytest.approx(32 * share)


def test_calibrating_runs_show_stages_replicas_exchanges_and_two_sizes() -> None:
    for world in (2, 4):
        base = replace(BASE, world_size=world)
        chosen = [each.settings for each in calibrating(candidates(base))]
        assert any(its.pp > 1 for its in chosen)
        assert any(its.dp > 1 for its in chosen)
        assert any(its.tp > 1 for its in chosen)
        assert len({its.microbatch_size for its in chosen}) > 1


def test_a_job_that_only_a_pipeline_of_one_microbatch_fits_is_refused() -> None:
    model = ModelSizes(layers=4, heads=1)
    alone = TrainSettings(4, pp=4, global_batch_size=1, microbatches=1, model=model)
    with pytest.raises(InputError, match="no layout of 4 ranks fits 4 layers, 1 heads"):
        candidates(alone)


def test_a_schedule_that_there_is_not_is_refused() -> None:
    with pytest.raises(InputError, match="there is no schedule 'zigzag'"):
        candidates(BASE, schedules=("1f1b", "zigzag"))


def test_too_few_steps_are_refused_before_anything_runs() -> None:
    with pytest.raises(InputError, match="2 steps of 5 runs tell too little"):
        tune(candidates(BASE), steps=2)
