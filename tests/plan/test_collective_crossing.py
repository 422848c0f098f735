"""The quickest algorithm changes with size, and where it does is found to the byte."""

from __future__ import annotations

import pytest

from serried.collective.networks import preset_of
from serried.collective.placed_group import PlacedGroup
from serried.collective.price import LinkCost, Network
from serried.errors import InputError
from serried.plan.busbw import BusbwTable
from serried.plan.collective_crossing import AlgorithmsBySize
from serried.plan.collective_price import CollectiveQuestion

LINK = LinkCost(1e-6, 100e9)
PLAIN = (Network(LINK, LINK),)


def by_size(ranks: int, networks: tuple[Network, ...] = PLAIN) -> AlgorithmsBySize:
    group = PlacedGroup.first(ranks)
    return AlgorithmsBySize.of(CollectiveQuestion("all-reduce", group, 1, networks))


def test_every_size_between_crossings_has_the_quickest_that_is_said() -> None:
    found = by_size(64, preset_of("h100").networks())
    assert found.crossings
    for each in found.crossings:
        assert found.best(each.size_bytes - 1) == each.before
        assert found.best(each.size_bytes) == each.after
    before = [found.best(found.sizes[0]), *(each.after for each in found.crossings)]
    assert [each.before for each in found.crossings] == before[:-1]
    assert before[-1] == found.best(found.sizes[-1])


def test_few_steps_win_while_latency_counts_and_few_bytes_while_bandwidth_does() -> None:
    found = by_size(64, preset_of("h100").networks())
    assert (found.best(1024), found.best(1 << 32)) == ("recursive", "ring")


def test_a_crossing_of_two_rings_is_where_the_closed_forms_cross() -> None:
    # A ring takes 2 (n - 1) (a + S / (n b)); halving takes 2 log2 n a + 2 (n - 1) / n S / b.
    found = by_size(8)
    for size in (1024, 1 << 20, 1 << 30):
        assert found.time_s("ring", size) == pytest.approx(14 * (1e-6 + size / 8 / 100e9))
        assert found.time_s("recursive", size) == pytest.approx(6e-6 + 14 / 8 * size / 100e9)


def test_a_tree_takes_more_chunks_as_buffers_grow() -> None:
    asked = [
        CollectiveQuestion("all-reduce", PlacedGroup.first(8), size, PLAIN, "tree").priced()
        for size in (1024, 1 << 20, 1 << 30)
    ]
    chunks = [each.chunks or 0 for each in asked]
    assert chunks == sorted(chunks) and chunks[0] < chunks[-1]


def test_a_measured_table_cannot_tell_algorithms_apart() -> None:
    group = PlacedGroup.first(8)
    asked = CollectiveQuestion("all-reduce", group, 1, PLAIN, measured=BusbwTable("here", ()))
    with pytest.raises(InputError, match="does not say which algorithm ran"):
        AlgorithmsBySize.of(asked)
