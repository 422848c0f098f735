"""Workspaces of libraries, to the MiB that Megatron-LM's own tests hold beside their states."""

from __future__ import annotations

import pytest

from serried.plan.catalog import gpu_named
from serried.plan.memory.implementation import IMPLEMENTATIONS, MIB
from serried.plan.memory.workspaces import handle_bytes, workspace_bytes

MEGATRON, LOCAL = IMPLEMENTATIONS["megatron"], IMPLEMENTATIONS["megatron-local"]
WIDE = {"cublas_workspace_config": ":4096:8"}


@pytest.mark.parametrize(
    ("gpu", "options", "mib"),
    [
        ("a100-80", WIDE, 68),
        ("h100", WIDE, 96),
        ("gb200", WIDE, 96),
        ("a100-80", {}, 20.25),
        ("h100", {}, 96),
        ("gb200", {}, 48.25),
    ],
)
def test_forward_and_backward_have_a_handle_each_beside_the_engines_own(
    gpu: str, options: dict[str, str], mib: float
) -> None:
    assert workspace_bytes(MEGATRON, gpu_named(gpu), options) / MIB == mib


def test_experts_in_one_product_have_four_more() -> None:
    h100 = gpu_named("h100")
    dense = workspace_bytes(MEGATRON, h100, WIDE)
    assert workspace_bytes(MEGATRON, h100, WIDE, has_experts=True) - dense == 4 * 32 * MIB
    one_by_one = WIDE | {"moe_grouped_gemm": "false"}
    assert workspace_bytes(MEGATRON, h100, one_by_one, has_experts=True) == dense


def test_messages_beside_products_take_streams_of_their_own() -> None:
    h100 = gpu_named("h100")
    plain = workspace_bytes(MEGATRON, h100, {})
    assert workspace_bytes(MEGATRON, h100, {"tp_comm_overlap": "True"}) - plain == 3 * 32 * MIB
    assert workspace_bytes(MEGATRON, h100, {"a2a_overlap": "True"}) - plain == 2 * 32 * MIB


def test_layers_without_the_engine_have_its_workspace_for_routers_alone() -> None:
    a100 = gpu_named("a100-80")
    assert workspace_bytes(LOCAL, a100, WIDE) == 64 * MIB
    assert workspace_bytes(LOCAL, a100, WIDE, has_experts=True) == 68 * MIB


def test_sizes_and_counts_of_the_environment_are_summed() -> None:
    assert handle_bytes(gpu_named("h100"), ":4096:2:16:8") == (2 * 4096 + 8 * 16) * 1024
