"""Offloading costs what its bytes take beyond the compute beside them, and the host's step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from serried.plan.catalog import cluster_named, gpu_named, model_named
from serried.plan.degrees import Degrees
from serried.plan.request import Offloaded, PlanRequest, Recompute
from serried.plan.time.constants import shipped
from serried.plan.time.jobs import Jobs
from serried.plan.time.offloaded import host_step
from serried.plan.time.rates import rates
from tests.plan.alone import step_time

LLAMA = PlanRequest(
    model_named("llama3-8b"),
    cluster_named("h100"),
    Degrees(tp=2, pp=2, dp=2),
    sequence=8192,
    global_batch=32,
)


def step(offload: Offloaded, asked: PlanRequest = LLAMA) -> tuple[float, dict[str, float]]:
    return step_time(replace(asked, offload=offload))


def wired(host: float) -> PlanRequest:
    """Returns the job on GPUs whose way to the host is so many bytes per second."""
    gpu = replace(LLAMA.cluster.gpu, host_bytes_per_s=host, host_memory_bytes_per_s=10 * host)
    return replace(LLAMA, cluster=replace(LLAMA.cluster, gpu=gpu))


@pytest.mark.parametrize("offload", ["optimizer", "activations", "parameters"])
def test_offloading_is_never_free_over_pcie_and_its_parts_sum_to_the_step(
    offload: Offloaded,
) -> None:
    plain, _ = step("none")
    seconds, parts = step(offload)
    assert seconds > plain
    assert sum(parts.values()) == pytest.approx(seconds)


@pytest.mark.parametrize("offload", ["activations", "parameters"])
def test_a_link_as_fast_as_the_work_beside_it_hides_all(offload: Offloaded) -> None:
    seconds, parts = step(offload, wired(1e13))
    assert parts["offload"] == 0
    assert seconds == pytest.approx(step("none")[0])
    slow = step(offload, wired(1e9))[1]["offload"]
    slower = step(offload, wired(0.5e9))[1]["offload"]
    assert slower > 1.9 * slow


def test_adam_on_the_host_takes_what_zero_offload_prints() -> None:
    """Table 4 of arXiv 2101.06840: 2.57 s for 10 billion parameters beside 256 GB/s."""
    asked = wired(1e15)
    gpu = replace(asked.cluster.gpu, host_memory_bytes_per_s=256e9)
    jobs = Jobs.of([replace(asked, cluster=replace(asked.cluster, gpu=gpu))])
    found = host_step(jobs, rates(jobs, shipped()), np.array([10e9]), np.array([1.0]))
    assert float(found[0]) == pytest.approx(2.57, rel=0.02)


def test_what_is_recomputed_need_not_travel() -> None:
    full = replace(LLAMA, recompute=Recompute("full"))
    assert step("activations", full)[1]["offload"] < step("activations")[1]["offload"]


def test_grace_is_nearer_to_its_gpu_than_a_host_over_pcie() -> None:
    assert gpu_named("gh200").host_bytes_per_s > 5 * gpu_named("h200").host_bytes_per_s
