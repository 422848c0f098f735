"""The simulated pipeline of a planned step, beside the closed form that searches use."""

from __future__ import annotations

from dataclasses import replace

import pytest

from serried.plan.cluster.cluster import Cluster, Gpu
from serried.plan.degrees import Degrees
from serried.plan.model.shape import ModelShape
from serried.plan.request import PlanRequest
from serried.plan.time.simulated import simulated_step
from tests.plan.alone import step_time

H100 = Gpu("h100", "nvidia", {"bf16": 989e12}, 80e9, 3.35e12, 450e9)
LLAMA = ModelShape("llama2-70b", 80, 8192, 64, 8, 128, 28672, 32000)
BASE = PlanRequest(
    LLAMA,
    Cluster("dgx", H100, 8, 8, 50e9),
    Degrees(tp=8, pp=4, dp=1),
    sequence=4096,
    global_batch=16,
)


@pytest.mark.parametrize(
    ("name", "chunks"), [("1f1b", 1), ("gpipe", 1), ("interleaved-1f1b", 2)], ids=str
)
def test_the_closed_form_is_near_the_schedule_that_is_walked(name: str, chunks: int) -> None:
    request = replace(BASE, schedule=name, degrees=Degrees(tp=8, pp=4, chunks=chunks))
    walked, closed = simulated_step(request).step_s, step_time(request)[0]
    assert closed == pytest.approx(walked, rel=0.05)


def test_a_zero_bubble_schedule_shortens_the_step() -> None:
    plain = simulated_step(replace(BASE, schedule="1f1b")).step_s
    filled = simulated_step(replace(BASE, schedule="zb-h1")).step_s
    assert 0.85 * plain < filled < plain


def test_each_stage_has_its_own_times() -> None:
    uneven = replace(BASE, stage_layers=(17, 21, 21, 21))
    passes = simulated_step(uneven).passes
    assert passes.forward[1] / passes.forward[0] == pytest.approx(21 / 17, rel=0.02)
    assert passes.forward[3] > passes.forward[2]


def test_forward_is_about_a_third_of_a_microbatch() -> None:
    passes = simulated_step(BASE).passes
    whole = passes.forward[1] + passes.input_grad[1] + passes.weight_grad[1]
    assert passes.forward[1] / whole == pytest.approx(1 / 3, rel=0.15)
