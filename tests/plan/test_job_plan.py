from __future__ import annotations

import pytest

from serried.errors import InputError
from serried.launch.request import LayoutRequest
from serried.plan.asked import plan_request
from serried.plan.job_plan import JobPlan, job_plan, peak_format
from serried.plan.model.flops import model_flops


def planned(model: str = "llama3-8b", *, world: int = 16, **words: str) -> JobPlan:
    sizes = LayoutRequest.of({"world_size": world, "tp": 2, "pp": 4})
    told = {"model": model, "cluster": "h100", "sequence": "8192", "global_batch": "64"} | words
    return job_plan(plan_request(sizes, told))


def test_parts_sum_to_the_step_and_the_interval_is_around_it() -> None:
    plan = planned()
    assert sum(plan.parts.values()) == pytest.approx(plan.step_s)
    assert plan.interval_s[0] < plan.step_s < plan.interval_s[1]


@pytest.mark.parametrize("schedule", ["zbv", "zb-h2", "dualpipe", "dualpipev"])
@pytest.mark.parametrize("batch", [16, 256])
def test_no_part_of_a_walked_step_is_below_0_and_they_sum_to_it(schedule: str, batch: int) -> None:
    sizes = LayoutRequest.of({"world_size": 8, "tp": 2, "pp": 4})
    told = {"model": "llama3-8b", "cluster": "h100", "sequence": "2048"}
    made = job_plan(plan_request(sizes, {**told, "global_batch": str(batch), "schedule": schedule}))
    assert min(made.parts.values()) >= 0
    assert sum(made.parts.values()) == pytest.approx(made.step_s)


def test_both_ways_share_the_head_so_that_the_fullest_rank_has_half_of_it() -> None:
    sizes = LayoutRequest.of({"world_size": 4, "pp": 4})
    told = {"model": "llama3-8b", "cluster": "h100", "sequence": "2048", "global_batch": "64"}
    one_way, both = (
        job_plan(plan_request(sizes, {**told, "schedule": name})).parts["embedding and output"]
        for name in ("1f1b", "dualpipe")
    )
    assert both == pytest.approx(one_way / 2, rel=0.05)


def test_mfu_is_the_share_of_the_peak_by_a_named_convention() -> None:
    plan = planned()
    causal = model_flops(plan.asked.model, 8192, "causal")
    assert plan.mfu() == pytest.approx(causal * 64 * 8192 / (plan.step_s * 16 * 989e12))
    assert plan.mfu("full") / plan.mfu("causal") == pytest.approx(
        model_flops(plan.asked.model, 8192, "full") / causal
    )
    assert plan.hfu == pytest.approx(plan.mfu())


def test_recomputing_raises_hfu_above_mfu_and_the_time_of_a_step() -> None:
    plain, again = planned(), planned(recompute="full")
    assert again.hfu > again.mfu()
    assert again.step_s > plain.step_s
    assert again.memory.fullest.total < plain.memory.fullest.total


def test_adapters_take_two_thirds_of_the_flops() -> None:
    plan = planned("llama2-70b", lora="16")
    assert 0.64 < plan.flops_per_token() / planned("llama2-70b").flops_per_token() < 0.72
    assert plan.hfu == pytest.approx(plan.mfu())


def test_what_the_gpu_does_not_multiply_in_is_refused() -> None:
    with pytest.raises(InputError, match="steps in fp32 are not planned"):
        planned(compute="fp32")
    with pytest.raises(InputError, match="GPU a100-80 has no fp8 figure; it has bf16, fp16"):
        planned(compute="mxfp8", cluster="a100")
    assert planned(cluster="v100").asked.compute == "fp16"


def test_the_peak_is_that_of_the_format_that_is_multiplied_in() -> None:
    assert planned(compute="fp8").peak_flops == 1979e12
    assert peak_format("nvfp4", {"bf16": 1, "fp4": 4}) == "fp4"
    assert peak_format("bf16", {"fp16": 1}) == "fp16"
