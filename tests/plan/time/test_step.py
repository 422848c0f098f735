"""A step's time: parts that sum, work that shrinks with ranks, and what measured steps say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serried.plan.cluster.cluster import Cluster, Gpu
from serried.plan.degrees import Degrees
from serried.plan.model.shape import ExpertShape, LatentAttention, ModelShape
from serried.plan.request import LowRank, PlanRequest, Recompute
from serried.plan.time.jobs import Jobs
from serried.plan.time.step import step_times
from tests.plan.alone import step_time

H100 = Gpu("H100-SXM", "nvidia", {"bf16": 989e12, "fp8": 1979e12}, 80e9, 3.35e12, 450e9)
DGX = Cluster("dgx-h100", H100, 8, 8, 50e9)
LLAMA = ModelShape("llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256)
MIXTRAL = replace(LLAMA, name="mixtral", vocab=32000, experts=ExpertShape(8, 2, 14336))


def asked(model: ModelShape = LLAMA, **told: object) -> PlanRequest:
    given = {"degrees": Degrees(dp=8), "sequence": 8192, "global_batch": 128, **told}
    return PlanRequest(model, DGX, **given)  # type: ignore[arg-type]


def test_a_step_of_an_h100_node_is_near_what_was_measured() -> None:
    """NVIDIA's DGX Cloud benchmarks v25.04 print 12.27 s for cp=2 of 8 H100 in bf16."""
    seconds, _ = step_time(asked(degrees=Degrees(cp=2, dp=4)))
    assert seconds == pytest.approx(12.27, rel=0.1)


@pytest.mark.parametrize("model", [LLAMA, MIXTRAL], ids=["dense", "experts"])
@pytest.mark.parametrize("zero", [1, 3])
def test_the_parts_of_a_step_sum_to_it_and_none_is_negative(model: ModelShape, zero: int) -> None:
    degrees = Degrees(tp=2, pp=2, dp=4, ep=4 if model is MIXTRAL else 1, chunks=2)
    seconds, parts = step_time(asked(model, degrees=degrees, zero=zero))
    assert sum(parts.values()) == pytest.approx(seconds)
    assert min(parts.values()) >= 0.0
    assert parts["bubble"] > 0.0


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2]))
def test_more_ranks_never_give_one_rank_more_to_multiply(tp: int, pp: int, cp: int) -> None:
    alone = step_times(Jobs.of([asked(degrees=Degrees(dp=1))]))
    split = step_times(Jobs.of([asked(degrees=Degrees(tp=tp, pp=pp, cp=cp, dp=1))]))
    assert split.parts["matrices"][0] <= alone.parts["matrices"][0] * (1 + 1e-9)


def test_full_recomputation_costs_a_third_of_the_work_and_memory_nothing() -> None:
    plain, kept = step_time(asked())
    again, parts = step_time(asked(recompute=Recompute("full")))
    work = kept["matrices"] / 3 + kept["attention"] / 4
    assert parts["recompute"] > 0.9 * work
    assert 1.2 < again / plain < 1.4


def test_halves_of_fp8_are_faster_than_bf16_but_not_twice() -> None:
    wide, _ = step_time(asked())
    narrow, _ = step_time(asked(compute="fp8"))
    assert 1.1 < wide / narrow < 2.0


def test_chunks_shrink_the_bubble_by_their_number() -> None:
    one = step_time(asked(degrees=Degrees(pp=4, dp=2)))[1]
    two = step_time(asked(degrees=Degrees(pp=4, dp=2, chunks=2)))[1]
    assert two["bubble"] == pytest.approx(one["bubble"] / 2, rel=0.05)


def test_a_graph_of_the_step_helps_a_small_model_most() -> None:
    small = ModelShape("small", 12, 512, 8, 8, 64, 2048, 32000)
    ratios = []
    for model in (small, LLAMA):
        job = asked(model, sequence=512, global_batch=8)
        graph = replace(job, options={"full_cuda_graph": "1"})
        ratios.append(step_time(job)[0] / step_time(graph)[0])
    assert ratios[0] > ratios[1] >= 1.0


def test_many_jobs_at_once_take_what_each_takes_alone() -> None:
    jobs = [
        asked(),
        asked(degrees=Degrees(tp=2, dp=4)),
        asked(MIXTRAL, degrees=Degrees(dp=8, ep=8)),
    ]
    together = step_times(Jobs.of(jobs)).step
    assert together == pytest.approx([step_time(job)[0] for job in jobs])


def test_columns_of_a_search_equal_requests_made_one_by_one() -> None:
    base = Jobs.of([asked()])
    tp = np.array([1.0, 2.0, 4.0])
    layouts = base.varied(tp=tp, dp=8 / tp, microbatches=16 * tp, shard_ranks=8 / tp)
    layouts = layouts.varied(is_sequence_parallel=(tp > 1).astype(float))
    made = [asked(degrees=Degrees(tp=int(each), dp=8 // int(each))) for each in tp]
    assert step_times(layouts).step == pytest.approx([step_time(job)[0] for job in made])


def test_a_gpu_that_nobody_measured_has_its_generations_constants() -> None:
    h800 = Gpu("H800-SXM", "nvidia", dict(H100.peak_flops), 80e9, 3.35e12, 200e9)
    other = Gpu("X900", "nvidia", {"bf16": 1100e12, "fp8": 2200e12}, 80e9, 4e12, 450e9)
    times = [
        step_time(replace(asked(), cluster=Cluster("c", gpu, 8, 8, 50e9)))[0]
        for gpu in (H100, h800, other)
    ]
    assert times[1] == pytest.approx(times[0], rel=0.12)
    assert times[2] < times[1]


def test_dispatchers_that_permute_as_they_send_take_less_time() -> None:
    job = asked(MIXTRAL, degrees=Degrees(dp=8, ep=8))
    steps = [step_time(replace(job, options={"disp": name}))[0] for name in ("", "deepep")]
    steps.append(step_time(replace(job, options={"disp": "hybridep"}))[0])
    assert steps == sorted(steps, reverse=True)
    assert steps[2] < 0.99 * steps[0]


def test_widths_of_no_whole_tile_cost_what_the_next_tile_does() -> None:
    odd = replace(LLAMA, ffn=14336 - 50)
    parts = [step_time(asked(model))[1]["matrices"] for model in (LLAMA, odd)]
    assert parts[1] == pytest.approx(parts[0], rel=0.002)


def test_dense_layers_before_experts_are_the_first_ranks_alone() -> None:
    model = replace(MIXTRAL, layers=32, experts=ExpertShape(8, 2, 14336, dense_layers=2))
    share = [
        float(Jobs.of([asked(model, degrees=Degrees(pp=pp, dp=8 // pp))]).moe_share[0])
        for pp in (1, 2, 4)
    ]
    assert share == pytest.approx([30 / 32, 14 / 16, 1.0])


def test_adapters_gather_no_inputs_again() -> None:
    job = asked(degrees=Degrees(tp=8, dp=1))
    tensor = [step_time(replace(job, lora=each))[1]["tp"] for each in (None, LowRank(16))]
    assert tensor[1] == pytest.approx(0.8 * tensor[0], rel=0.02)


def test_queries_without_a_rank_of_their_own_are_made_of_the_stream() -> None:
    """DeepSeek-V2-Lite multiplies h x a (n + r) for them, as much as plain heads do."""
    latent = LatentAttention(512, 128, 64, 128)
    lite = replace(LLAMA, latent=latent)
    ranked = replace(lite, latent=replace(latent, q_rank=4096))
    times = [step_time(asked(model=model))[1]["matrices"] for model in (lite, ranked)]
    widest = step_time(asked(model=replace(lite, latent=replace(latent, q_rank=1))))[1]["matrices"]
    assert widest < times[0] < times[1]
