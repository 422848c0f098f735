"""Intervals: wider for what is less like what was measured, and for sizes beyond it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from serried.plan.catalog import cluster_named, model_named
from serried.plan.degrees import Degrees
from serried.plan.job_plan import job_plan
from serried.plan.request import LowRank, PlanRequest
from serried.plan.time.constants import shipped
from serried.plan.time.experience import FAMILIARITIES, Experience, JobMark
from serried.plan.time.interval import beyond, experience_of, familiarity, half_widths, intervals
from serried.plan.time.jobs import Jobs


def asked(model: str = "llama3-8b", cluster: str = "dgx-h100", **told: Any) -> PlanRequest:
    degrees = Degrees(**told.pop("degrees", {"tp": 2, "dp": 8}))
    told.setdefault("global_batch", degrees.dp)
    return PlanRequest(model_named(model), cluster_named(cluster), degrees, **told)


def jobs(*requests: PlanRequest) -> Jobs:
    return Jobs.of(requests)


def test_the_less_is_known_the_wider_the_interval() -> None:
    told = jobs(
        asked(),
        asked("qwen2.5-7b"),
        asked(cluster="h800"),
        asked(cluster="mi300x"),
    )
    assert familiarity(told) == list(FAMILIARITIES)
    widths = half_widths(told)
    assert np.all(np.diff(widths) > 0)


def test_experts_and_adapters_are_known_less_well_than_dense_models() -> None:
    dense, experts = half_widths(jobs(asked(), asked("deepseek-v3", degrees={"ep": 8, "dp": 8})))
    (adapters,) = half_widths(jobs(asked("llama2-70b", lora=LowRank(16))))
    assert dense < min(experts, adapters)


def test_each_doubling_beyond_what_was_measured_widens_it() -> None:
    most = shipped().experience.most["gpus"]
    widths = half_widths(
        jobs(*(asked(degrees={"tp": 8, "dp": most * times // 8}) for times in (1, 2, 4)))
    )
    assert widths / widths[0] == pytest.approx([1.0, 1.4, 1.8])


def test_sizes_beyond_what_was_measured_are_named() -> None:
    request = asked(degrees={"dp": 50_000}, zero=3, framework="fsdp")
    found = beyond(jobs(request), 0)
    assert [each.size for each in found] == ["gpus", "fsdp"]
    assert all(each.asked == 50_000 > each.most for each in found)
    plan = job_plan(request)
    assert plan.beyond == found
    assert plan.widened > 3
    assert job_plan(asked()).beyond == ()


def test_the_interval_is_of_one_factor_both_ways() -> None:
    told = jobs(asked())
    low, high = intervals(told, np.array([2.0]))
    assert low[0] * high[0] == pytest.approx(4.0)
    assert np.log(high[0] / 2.0) == pytest.approx(half_widths(told)[0])


def test_what_calibration_saw_is_familiar_after_it() -> None:
    told = jobs(asked(cluster="h800"))
    known = shipped()
    joined = replace(known, experience=known.experience.joined(experience_of(told)))
    assert familiarity(told, joined) == ["alike"]
    assert half_widths(told, joined) < half_widths(told, known)


def test_constants_without_experience_call_every_job_foreign() -> None:
    mark = JobMark("1/2/0", "h100", "hopper", "megatron", 16, "dense")
    assert Experience().of(mark) == "foreign"
    with pytest.raises(ValueError, match="not enough values"):
        JobMark.of_text("1/2/0 h100")
