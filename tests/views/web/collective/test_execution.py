"""What the page draws of a collective is its steps, executed: replayed, it is what ranks hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from serried.collective.algorithm import Collective
from serried.collective.blocks import execute
from serried.collective.placed_group import PlacedGroup
from serried.collective.registry import ENTRIES, make
from serried.collective.step import CollectiveSteps
from serried.mesh import Placement
from serried.views.web.collective.execution import (
    NO_BLOCK,
    move_columns,
    sent_columns,
    work_columns,
)
from serried.views.web.collective.places import MOST_PLACES, Places

UNEVEN = PlacedGroup.of(range(7), Placement.on(7, (4, 2, 1)))


def counts(masks: np.ndarray) -> list[list[int]]:
    return [[sum(int(word).bit_count() for word in block) for block in rank] for rank in masks]


@pytest.mark.parametrize("group", [UNEVEN, PlacedGroup.first(8, 4), PlacedGroup.first(1)])
def test_replaying_the_columns_gives_what_every_rank_holds_after_each_step(
    group: PlacedGroup,
) -> None:
    for entry in ENTRIES:
        collective = make(entry.collective, entry.name, group)
        columns = move_columns(collective, Places.of(group))
        shape = (group.size + group.num_nodes, collective.num_blocks)
        held = columns["before"].reshape(shape).copy()
        states = list(execute(collective))
        assert held.tolist() == counts(states[0])
        for step, state in enumerate(states[1:]):
            first, end = columns["bounds"][columns["shape"][step] :][:2]
            held[columns["target"][first:end], columns["block"][first:end]] = columns["held"][
                first:end
            ]
            assert held.tolist() == counts(state), f"{entry.collective} {entry.name} {step}"
        asked = columns["asked"].reshape(-1, collective.num_blocks)
        assert ((asked == 0) | (held[: group.size] == asked)).all()


def test_a_rank_sends_what_the_closed_formula_says() -> None:
    for entry in ENTRIES:
        collective = make(entry.collective, entry.name, PlacedGroup.first(16))
        sent = sent_columns(collective, 1 << 20)["sent_bytes"][-1]
        assert sent == pytest.approx(float(entry.bytes_sent(collective, 1 << 20)))


def test_moves_of_a_large_group_are_added_up_from_node_to_node() -> None:
    ring = make("all-reduce", "ring", PlacedGroup.first(128))
    columns = move_columns(ring, Places.of(ring.group))
    assert len(columns["shape"]) == len(ring.steps) == 254
    assert "before" not in columns
    for step in (0, 253):
        first, end = columns["bounds"][columns["shape"][step] :][:2]
        assert columns["moves"][first:end].sum() == len(ring.steps[step])
        assert columns["blocks"][first:end].sum() == ring.steps[step].count.sum()
        assert set(columns["block"][first:end]) == {NO_BLOCK}
        leaves = columns["source"][first:end] != columns["target"][first:end]
        assert (columns["across"][first:end] == leaves).all()


@pytest.mark.parametrize("ranks", [1, 64, 65, 512, 513, 16_384])
def test_a_picture_has_64_places_at_most_and_counts_every_rank_once(ranks: int) -> None:
    places = Places.of(PlacedGroup.first(ranks))
    assert (places.num_ranks > 0).sum() <= MOST_PLACES
    assert places.num_ranks.sum() == ranks
    assert places.is_grouped == (ranks > MOST_PLACES)


def test_a_ring_of_16384_ranks_is_drawn_by_the_patterns_of_its_steps() -> None:
    ring = make("all-reduce", "ring", PlacedGroup.first(16_384))
    columns = move_columns(ring, Places.of(ring.group))
    assert len(columns["shape"]) == 32_766
    assert len(columns["bounds"]) == 3
    sent = sent_columns(ring, 1 << 30)["sent_bytes"]
    assert sent[-1] == pytest.approx(2 * 16_383 / 16_384 * (1 << 30))


def test_switches_are_places_of_their_own_among_few_ranks() -> None:
    switch: Collective = make("all-reduce", "switch", PlacedGroup.first(8))
    columns = move_columns(switch, Places.of(switch.group))
    assert columns["target"].max() == 8
    assert columns["across"].sum() == 0


@pytest.mark.parametrize("split", ["zig-zag", "contiguous"])
def test_attention_tells_what_each_rank_computes_and_which_queries_meet_which_keys(
    split: str,
) -> None:
    ring = make("attention", "ring", PlacedGroup.first(4), split=split)
    columns = work_columns(ring, Places.of(ring.group))
    pairs = columns["pairs"].reshape(len(ring.steps), 4)
    assert (
        pairs.sum(axis=0).tolist()
        == {
            "zig-zag": [8, 8, 8, 8],
            "contiguous": [2, 6, 10, 14],
        }[split]
    )
    assert ((pairs.max(axis=1) == pairs.min(axis=1)).all()) == (split == "zig-zag")
    met = set(zip(columns["query"].tolist(), columns["key"].tolist(), strict=True))
    assert met == {(query, key) for query in range(8) for key in range(query + 1)}
    assert (columns["half"] == (columns["query"] == columns["key"])).all()
    for step, (first, end) in enumerate(zip(columns["meets"], columns["meets"][1:], strict=False)):
        assert np.where(columns["half"][first:end], 0.5, 1.0).sum() == pairs[step].sum()


def test_heads_share_a_pair_and_other_collectives_compute_nothing() -> None:
    eight = PlacedGroup.first(8)
    ulysses = make("attention", "ulysses", eight)
    columns = work_columns(ulysses, Places.of(eight))
    assert set(columns) == {"pairs"}
    assert columns["pairs"].reshape(15, 8).any(axis=1).tolist() == [step == 7 for step in range(15)]
    assert work_columns(make("all-reduce", "ring", eight), Places.of(eight)) == {}
    large = make("attention", "ring", PlacedGroup.first(128))
    assert work_columns(large, Places.of(large.group)) == {}


@pytest.mark.parametrize("group", [UNEVEN, PlacedGroup.first(16, 4)])
def test_what_ranks_send_is_the_same_whether_steps_say_that_they_are_alike(
    group: PlacedGroup,
) -> None:
    for entry in ENTRIES:
        collective = make(entry.collective, entry.name, group)
        each = replace(collective, steps=CollectiveSteps.listed(list(collective.steps)))
        alike, single = (sent_columns(made, 1 << 20) for made in (collective, each))
        for name, column in single.items():
            assert np.allclose(alike[name], column), (entry.name, name)
