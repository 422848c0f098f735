"""Flows lay the traffic of a plan onto the links of a layout, and lose no byte of it."""

from __future__ import annotations

import numpy as np
import pytest

from serried.launch.request import LayoutRequest
from serried.plan.asked import plan_request
from serried.plan.traffic.flows import Flow, flows_of
from serried.plan.traffic.transfers import Transfer, step_transfers

DENSE = {"model": "llama3-8b", "cluster": "h100", "sequence": "8192", "global_batch": "64"}
SPARSE = DENSE | {"model": "mixtral-8x7b"}


def made(
    told: dict[str, str], **sizes: object
) -> tuple[tuple[Transfer, ...], dict[str, Flow], LayoutRequest]:
    asked = LayoutRequest.of(sizes)
    transfers = step_transfers(plan_request(asked, told))
    return transfers, {flow.kind: flow for flow in flows_of(transfers, *asked.laid_out())}, asked


@pytest.mark.parametrize("sizes", [{"tp": 2, "pp": 4}, {"tp": 8}, {"tp": 2, "pp": 2, "cp": 2}])
def test_all_ranks_together_send_what_the_transfers_say(sizes: dict[str, int]) -> None:
    transfers, flows, _ = made(DENSE, world_size=16, **sizes)
    assert set(flows) == {each.kind for each in transfers}
    for kind, flow in flows.items():
        sent = sum(each.step_bytes for each in transfers if each.kind == kind)
        senders = int((flow.next >= 0).sum())
        assert flow.within_bytes + flow.across_bytes == pytest.approx(senders * sent)


def test_a_chain_ends_and_a_ring_closes_within_the_groups_of_the_layout() -> None:
    _, flows, asked = made(DENSE, world_size=16, tp=2, pp=4)
    layout = asked.laid_out()[0]
    for kind in ("tp", "dp", "pp"):
        follows = flows[kind].next
        group = layout.groups(layout.kind_of(kind)).index(16)
        sends = follows >= 0
        assert (group[follows[sends]] == group[sends]).all()
    assert (flows["pp"].next[12:] == -1).all() and flows["pp"].next[3] == 7
    assert sorted(flows["dp"].next.tolist()) == [*range(16)]
    # 8 ranks a node: stages 0 and 1 on the first, so only the second boundary crosses.
    pp = flows["pp"]
    assert pp.across_bytes == pytest.approx(pp.within_bytes / 2)
    assert flows["tp"].across_bytes == 0


def test_what_goes_from_each_to_each_is_counted_by_pairs() -> None:
    transfers, flows, _ = made(SPARSE, world_size=16, ep=8, gpus_per_node=(4,))
    sent = sum(each.step_bytes for each in transfers if each.kind == "ep")
    ep = flows["ep"]
    assert ep.pattern == "all" and ep.link_bytes == pytest.approx(sent / 7)
    # Of 7 others 3 are on a rank's own node of 4.
    assert ep.within_bytes == pytest.approx(16 * sent * 3 / 7)
    assert ep.across_bytes == pytest.approx(16 * sent * 4 / 7)
    assert np.array_equal(np.sort(ep.next), np.arange(16))
