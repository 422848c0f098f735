"""Steps are made when they are asked for, and their patterns are known without that."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from serried.collective.placed_group import PlacedGroup
from serried.collective.price import LinkCost, Network, cost_of
from serried.collective.registry import ENTRIES, make
from serried.collective.step import CollectiveStep, CollectiveSteps

NETWORK = Network(in_node=LinkCost(1e-6, 4e11), across=LinkCost(1e-5, 5e10))


def test_steps_of_one_pattern_send_as_many_blocks_between_the_same_positions() -> None:
    for entry in ENTRIES:
        for group in (PlacedGroup.first(16, 4), PlacedGroup.first(13, 5)):
            steps = make(entry.collective, entry.name, group).steps
            for either in (steps, steps.backwards(), steps.then(steps.backwards())):
                seen: dict[Hashable, list[tuple[int, int, int]]] = {}
                for index, step in enumerate(either):
                    rows = sorted(zip(step.source, step.target, step.count, strict=True))
                    if (pattern := either.pattern(index)) is not None:
                        assert seen.setdefault(pattern, rows) == rows


def test_a_ring_of_16384_ranks_is_priced_by_making_a_step_of_each_pattern() -> None:
    ring = make("all-reduce", "ring", PlacedGroup.first(16_384))
    made: list[int] = []

    def counted(index: int) -> CollectiveStep:
        made.append(index)
        return ring.steps[index]

    steps = CollectiveSteps(len(ring.steps), counted, ring.steps.pattern)
    cost = cost_of(replace(ring, steps=steps), NETWORK, 1 << 30)
    assert len(cost.step_s) == 32_766
    assert len(made) == 2
