"""Steps are made when they are asked for, and their patterns are known without that."""

from __future__ import annotations

from dataclasses import replace

from serried.collective.placed_group import PlacedGroup
from serried.collective.price import LinkCost, Network, step_times
from serried.collective.registry import ENTRIES, make
from serried.collective.step import CollectiveStep, CollectiveSteps

NETWORK = Network(in_node=LinkCost(1e-6, 4e11), across=LinkCost(1e-5, 5e10))


def test_the_pattern_of_a_step_is_that_of_the_step_when_made() -> None:
    for entry in ENTRIES:
        steps = make(entry.collective, entry.name, PlacedGroup.first(16, 4)).steps
        for either in (steps, steps.backwards(), steps.then(steps.backwards())):
            assert [either.pattern(k) for k in range(len(either))] == [
                step.pattern for step in either
            ]


def test_a_ring_of_16384_ranks_is_priced_by_making_a_step_of_each_pattern() -> None:
    ring = make("all-reduce", "ring", PlacedGroup.first(16_384))
    made: list[int] = []

    def counted(index: int) -> CollectiveStep:
        made.append(index)
        return ring.steps[index]

    steps = CollectiveSteps(len(ring.steps), counted, ring.steps.pattern)
    assert len(step_times(replace(ring, steps=steps), NETWORK, 1 << 30)) == 32_766
    assert len(made) == 2
