"""The order of axes says whether stages or replicas lie nearer, in each framework's way."""

from __future__ import annotations

import pytest

from serried import frameworks
from serried.plan.rank_order import inner_axis, orders_of


@pytest.mark.parametrize(
    ("order", "inner"),
    [
        ("tp-cp-ep-dp-pp", "dp"),
        ("tp-cp-ep-pp-dp", "pp"),
        ("tensor-pipeline-data", "pp"),
        ("tensor-data-pipeline", "dp"),
        ("pipe,data,model", "dp"),
        ("dp,pp,tp,sp", "pp"),
        ("pp,dp,tp,sp", "dp"),
        ("dp_replicate,dp_shard,tp", ""),
        ("", ""),
    ],
)
def test_the_nearer_axis_follows_from_the_order(order: str, inner: str) -> None:
    assert inner_axis(order) == inner


def test_only_frameworks_that_let_one_choose_have_orders() -> None:
    found = {name for name in frameworks.NAMES if orders_of(name)}
    assert {"megatron", "colossalai"} <= found
    assert not found & {"deepspeed", "torchtitan", "nanotron"}
    for name in found:
        assert {inner_axis(order) for order in orders_of(name)} == {"dp", "pp"}
