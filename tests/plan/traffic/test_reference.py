"""What a run's collectives reached beside a check's table and a network's price."""

from __future__ import annotations

import pytest

from serried.collective.networks import preset_of
from serried.collective.placed_group import PlacedGroup
from serried.plan.busbw import BusbwRow, BusbwTable
from serried.plan.collective_price import CollectiveQuestion
from serried.plan.traffic.reference import with_references
from serried.trace.model.group_traffic import GroupTraffic

MB = 1_000_000
FAST = GroupTraffic("tp", "all_reduce", 2, 1, 4, 4 * 16 * MB, 4 * 1_000_000, 0.0, True)
SLOW = GroupTraffic("dp", "all_gather", 4, 2, 1, 16 * MB, 12_000_000, 0.0, True)
UNTOLD = GroupTraffic("", "sendrecv", 0, 0, 9, None, 5, 0.0, True)
TABLE = BusbwTable(
    "a",
    (
        BusbwRow("all_reduce", 2, 1, 1, 16 * MB, 500_000.0),
        BusbwRow("all_gather", 4, 2, 1, 16 * MB, 11_000_000.0),
    ),
)


def test_the_run_s_speed_stands_beside_that_of_the_check() -> None:
    fast, slow, untold = with_references([SLOW, FAST, UNTOLD], TABLE, None)
    assert (fast.row, slow.row, untold.row) == (FAST, SLOW, UNTOLD)
    assert (fast.checked, slow.checked) == pytest.approx((32e9, 0.75 * 16e6 / 11e-3))
    assert (fast.share, slow.share) == pytest.approx((1 / 2, 11 / 12))
    assert (untold.checked, untold.share, fast.planned) == (None, None, None)


def test_the_plan_s_price_is_that_of_a_collective_over_the_network() -> None:
    (found,) = with_references([SLOW], None, preset_of("a100"))
    group = PlacedGroup((0, 1, 2, 3), (0, 0, 1, 1))
    asked = CollectiveQuestion("all-gather", group, 16 * MB, preset_of("a100").networks())
    assert found.planned == asked.priced().busbw
    assert found.share == pytest.approx(1e9 / (found.planned or 0))


def test_what_was_not_checked_has_no_reference() -> None:
    across = GroupTraffic("dp", "all_reduce", 2, 2, 1, MB, 1000, 0.0, True)
    assert [each.checked for each in with_references([across], TABLE, None)] == [None]


def test_without_references_rows_stand_as_they_did() -> None:
    assert [each.row for each in with_references([UNTOLD, SLOW, FAST], None, None)] == [
        UNTOLD,
        SLOW,
        FAST,
    ]
