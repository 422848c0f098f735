"""What a step sends, kind by kind: sizes, how often, and over which links."""

from __future__ import annotations

from dataclasses import replace

import pytest

from serried.plan.busbw import BusbwRow, BusbwTable
from serried.plan.cluster.cluster import Cluster, Gpu
from serried.plan.degrees import Degrees
from serried.plan.model.shape import ExpertShape, ModelShape
from serried.plan.request import LowRank, PlanRequest
from serried.plan.traffic.transfers import Transfer, step_transfers

H100 = Gpu("h100", "nvidia", {"bf16": 989e12}, 80e9, 3.35e12, 450e9)
DGX = Cluster("dgx", H100, 8, 8, 50e9)
NVL72 = Cluster("nvl72", H100, 4, 72, 50e9)
LLAMA = ModelShape("llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256)
MIXTRAL = replace(LLAMA, name="mixtral", experts=ExpertShape(8, 2, 14336))


def of(request: PlanRequest) -> dict[tuple[str, str], Transfer]:
    return {(each.kind, each.collective): each for each in step_transfers(request)}


def asked(degrees: Degrees, **told: object) -> PlanRequest:
    given = {"model": LLAMA, "cluster": DGX, "sequence": 4096, "global_batch": 64, **told}
    return PlanRequest(degrees=degrees, **given)  # type: ignore[arg-type]


def test_a_single_gpu_sends_nothing() -> None:
    assert step_transfers(asked(Degrees())) == ()


def test_sequence_parallel_sends_ten_halves_a_layer_and_microbatch() -> None:
    found = of(asked(Degrees(tp=8)))
    halves = found["tp", "all_gather"].times + found["tp", "reduce_scatter"].times
    assert halves == 10 * 32 * 64
    assert found["tp", "all_gather"].size_bytes == 2 * 4096 * 4096
    assert found["tp", "all_gather"].link == "node"


def test_replicas_agree_once_a_step_and_shards_in_every_layer() -> None:
    replicas = of(asked(Degrees(dp=16)))
    weights = 32 * (4096 * (4096 + 2 * 1024 + 4096) + 3 * 4096 * 14336)
    assert replicas["dp", "all_gather"].size_bytes == pytest.approx(2 * weights)
    assert replicas["dp", "reduce_scatter"].size_bytes == pytest.approx(4 * weights)
    assert replicas["dp", "all_gather"].times == 1
    shards = of(asked(Degrees(dp=16), zero=3))
    assert shards["fsdp", "all_gather"].times == 2 * 32 * 4
    assert shards["fsdp", "all_gather"].step_bytes == pytest.approx(2 * 4 * 2 * weights * 15 / 16)


def test_links_are_named_by_how_far_a_group_reaches() -> None:
    degrees = Degrees(tp=4, pp=2, dp=4)
    found = of(asked(degrees))
    assert (found["tp", "all_gather"].link, found["dp", "all_gather"].link) == ("node", "rail")
    assert of(asked(degrees, cluster=NVL72))["pp", "sendrecv"].link == "NVLink domain"


def test_experts_exchange_tokens_and_have_replicas_of_their_own() -> None:
    found = of(asked(Degrees(dp=16, ep=8), model=MIXTRAL))
    assert found["ep", "all_to_all"].size_bytes == 2 * 4096 * 4096 * 2
    assert found["expert_dp", "reduce_scatter"].ranks == 2


def test_what_a_check_measured_stands_in_for_closed_forms() -> None:
    row = BusbwRow("all_gather", 8, 1, 1, 1 << 25, 1e9)
    request = asked(Degrees(tp=8))
    measured = step_transfers(request, BusbwTable("slow links", (row,)))
    by = {each.collective: each for each in measured}
    assert by["all_gather"].algorithm == "measured"
    assert by["all_gather"].seconds == pytest.approx(1.0)
    assert by["reduce_scatter"].algorithm != "measured"


def test_replicas_of_adapters_send_the_adapters_alone() -> None:
    made = asked(Degrees(dp=16), lora=LowRank(16))
    sent = {each.collective: each.size_bytes for each in step_transfers(made)}
    # r (in + out) of qkv, 4,096 to 6,144, and of o, 4,096 to 4,096, in 32 layers; fp32 and bf16
    adapters = 32 * 16 * (4096 + 6144 + 4096 + 4096)
    assert sent == {"reduce_scatter": 4 * adapters, "all_gather": 2 * adapters}
