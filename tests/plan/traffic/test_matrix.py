"""The matrix of who sends to whom sums to what the flows send, whatever a row stands for."""

from __future__ import annotations

import numpy as np
import pytest

from serried.launch.request import LayoutRequest
from serried.plan.asked import plan_request
from serried.plan.traffic.flows import Flow, flows_of
from serried.plan.traffic.matrix import TrafficMatrix, traffic_matrix
from serried.plan.traffic.transfers import step_transfers

TOLD = {"model": "llama3-8b", "cluster": "h100", "sequence": "8192", "global_batch": "512"}
EXPERTS = {"model": "mixtral-8x7b", "cluster": "h100", "sequence": "4096", "global_batch": "64"}


def made(sizes: dict[str, int], told: dict[str, str]) -> tuple[tuple[Flow, ...], TrafficMatrix]:
    asked = LayoutRequest.of(dict(sizes))
    layout, nodes = asked.laid_out()
    flows = flows_of(step_transfers(plan_request(asked, told)), layout, nodes)
    return flows, traffic_matrix(flows, layout, nodes)


@pytest.mark.parametrize(
    ("sizes", "told", "unit"),
    [
        ({"world_size": 16, "tp": 2, "pp": 4}, TOLD, "rank"),
        ({"world_size": 64, "tp": 4, "pp": 2, "cp": 2}, TOLD, "rank"),
        ({"world_size": 256, "tp": 8, "pp": 4}, TOLD, "node"),
        ({"world_size": 1024, "tp": 8, "pp": 4}, TOLD, "nodes"),
        ({"world_size": 16, "tp": 1, "ep": 8}, EXPERTS, "rank"),
        ({"world_size": 128, "tp": 1, "ep": 8, "pp": 2}, EXPERTS | {"global_batch": "256"}, "node"),
    ],
)
def test_the_matrix_sums_to_what_all_flows_send(
    sizes: dict[str, int], told: dict[str, str], unit: str
) -> None:
    flows, matrix = made(sizes, told)
    sent = sum(flow.within_bytes + flow.across_bytes for flow in flows)
    assert matrix.unit == unit
    assert len(matrix.sent) <= 64
    assert matrix.total == pytest.approx(sent)
    if unit == "node":
        across = sum(flow.across_bytes for flow in flows)
        assert matrix.total - np.trace(matrix.sent) == pytest.approx(across)


def test_tensor_ranks_send_most_and_stages_both_ways() -> None:
    _, matrix = made({"world_size": 16, "tp": 2, "pp": 4}, TOLD)
    sent = matrix.sent
    assert np.unravel_index(sent.argmax(), sent.shape)[0] // 2 == sent.argmax() % 16 // 2
    assert sent[0, 4] == sent[4, 0] > 0
    assert not sent[0, 8]


def test_experts_send_to_every_other_of_their_group() -> None:
    flows, matrix = made({"world_size": 16, "tp": 1, "ep": 8}, EXPERTS)
    experts = next(flow for flow in flows if flow.kind == "ep")
    assert matrix.sent[0, 5] >= experts.link_bytes
    assert matrix.sent[0, 12] < experts.link_bytes
