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


def test_stages_drawn_take_as_long_as_the_same_stages_listed() -> None:
    listed = planned(layers="4,8,8,12")
    drawn = planned(layers_picture="Et*4|t*8|t*8|t*12L")
    assert drawn.step_s == pytest.approx(listed.step_s)
    assert drawn.step_s > 1.2 * planned().step_s


def test_drawn_stages_are_walked_as_they_are_drawn() -> None:
    drawn = "Et*2|t*2|t*2|t*2|t*2|t*2|t*2|t*18L"
    uneven, even = planned(schedule="zbv", layers_picture=drawn), planned(schedule="zbv")
    assert uneven.step_s > 1.5 * even.step_s


def test_hfu_counts_the_layers_and_modules_that_run_again_and_no_more() -> None:
    one_of_8, norms = planned(recompute="full:1"), planned(recompute="selective:layernorm")
    whole = planned(recompute="full")
    assert norms.hfu == pytest.approx(norms.mfu())
    more = one_of_8.hfu / one_of_8.mfu() - 1
    assert more == pytest.approx((whole.hfu / whole.mfu() - 1) / 8)


def test_both_ways_hide_the_exchange_of_experts_beside_the_other_direction() -> None:
    sizes = LayoutRequest.of({"world_size": 32, "pp": 4, "ep": 8})
    told = {"model": "mixtral-8x7b", "cluster": "h100", "sequence": "4096", "global_batch": "256"}
    one_way, both = (
        job_plan(plan_request(sizes, {**told, "schedule": name})) for name in ("zb-h1", "dualpipe")
    )
    shares = [each.parts["ep"] / each.parts["matrices"] for each in (one_way, both)]
    assert shares[1] < 0.8 * shares[0]
    beside = {each.beside for each in both.traffic if each.kind == "ep"}
    assert beside == {"half a batch"}


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
