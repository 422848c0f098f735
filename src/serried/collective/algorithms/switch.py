"""Switch: the switch of a node adds what its ranks send and tells all of them at once (NVLS).

    all-reduce on one node of 4 ranks; ■ is the switch

    step 0    0 1 2 3 ══ S ══> ■        each rank's buffer goes up once, and is summed there
    step 1    ■ ── S / 4 ──> 0 1 2 3    each rank reads its share of the sum
    step 2    0 1 2 3 ── S / 4 ──> ■    and stores it for all
    step 3    ■ ══ S ══> 0 1 2 3        the switch copies it to every rank

A rank sends S + S / n where a ring sends 2 (n - 1) / n S, in four steps whatever n is. On several
nodes a ring for each rail sums the shares between steps 1 and 2, as NVLSTree has a tree there.
An all-gather is steps 2 and 3 after such rings, and a reduce-scatter steps 0 and 1 before them.

Sources: Klenk et al., An In-Network Architecture for Accelerating Shared-Memory Multiprocessor
Collectives, ISCA 2020; NCCL 2.17 and 2.18, transport/nvls.cc (NVLS, NVLSTree).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from serried.collective.algorithm import Collective
from serried.collective.algorithms.rails import Rails
from serried.collective.entry import AlgorithmEntry, CollectiveRequest
from serried.collective.step import CollectiveStep, CollectiveSteps


def sum_in_switch(rails: Rails, num_blocks: int) -> CollectiveSteps:
    """Returns two steps: members send all blocks to their switch; owners read their rail's sum.

    >>> from serried.collective.placed_group import PlacedGroup
    >>> rails = Rails.shared(PlacedGroup.first(2))
    >>> [(step.source.tolist(), step.target.tolist()) for step in sum_in_switch(rails, 2)]
    [([0, 1], [2, 2]), ([2, 2], [0, 1])]
    """
    group = rails.group
    every = np.arange(group.size)
    up = CollectiveStep.of(every, group.size + group.node_index, 0, count=num_blocks, reduces=True)
    return CollectiveSteps.listed([up, _with_switch(rails, to_owner=True)])


def tell_by_switch(rails: Rails, num_blocks: int) -> CollectiveSteps:
    """Returns two steps: owners store their rail's blocks in the switch; it sends all to members.

    >>> from serried.collective.placed_group import PlacedGroup
    >>> rails = Rails.shared(PlacedGroup.first(2))
    >>> [(step.source.tolist(), step.target.tolist()) for step in tell_by_switch(rails, 2)]
    [([0, 1], [2, 2]), ([2, 2], [0, 1])]
    """
    group = rails.group
    every = np.arange(group.size)
    down = CollectiveStep.of(group.size + group.node_index, every, 0, count=num_blocks)
    return CollectiveSteps.listed([_with_switch(rails, to_owner=False), down])


def _with_switch(rails: Rails, *, to_owner: bool) -> CollectiveStep:
    group = rails.group
    owner = rails.owner.ravel()
    switch = group.size + group.node_index[owner]
    first, count = (np.repeat(of, group.num_nodes) for of in (rails.first[:, 0], rails.whole))
    source, target = (switch, owner) if to_owner else (owner, switch)
    return CollectiveStep.of(source, target, first, count=count, stride=rails.stride)


def _all_reduce(asked: CollectiveRequest) -> Collective:
    rails = Rails.shared(asked.group)
    blocks = rails.first.size
    between = rails.between_nodes()
    steps = (
        sum_in_switch(rails, blocks)
        .then(between.backwards())
        .then(between)
        .then(tell_by_switch(rails, blocks))
    )
    return Collective(asked.name, asked.algorithm, asked.group, blocks, steps)


def _all_gather(asked: CollectiveRequest) -> Collective:
    rails = Rails.of_ranks(asked.group)
    n = asked.group.size
    steps = rails.hand_over().then(rails.between_nodes()).then(tell_by_switch(rails, n))
    return Collective(asked.name, asked.algorithm, asked.group, n, steps, owners=rails.owners)


def _reduce_scatter(asked: CollectiveRequest) -> Collective:
    rails = Rails.of_ranks(asked.group)
    n = asked.group.size
    steps = (
        sum_in_switch(rails, n)
        .then(rails.between_nodes().backwards())
        .then(rails.hand_over().turned())
    )
    return Collective(asked.name, asked.algorithm, asked.group, n, steps, owners=rails.owners)


def _share_of_all_reduce(made: Collective) -> Fraction:
    rails, nodes = made.group.rails, made.group.num_nodes
    return 1 + Fraction(1, rails) + Fraction(2 * (nodes - 1), rails * nodes)


def _share_of_all_gather(made: Collective) -> Fraction:
    rails = Rails.of_ranks(made.group)
    sent = rails.sent_between_nodes + rails.whole[:, None]
    return Fraction(int(sent.max()), made.group.size)


def _share_of_reduce_scatter(made: Collective) -> Fraction:
    # All blocks to the switch; an owner then passes on all of its rail but its own block.
    n = made.group.size
    return 1 + Fraction(int(Rails.of_ranks(made.group).whole.max()) - 1, n)


def _steps_of_all_gather(made: Collective) -> int:
    return 2 + made.group.num_nodes - 1 + (not made.group.is_even)


_SOURCE = "Klenk et al., ISCA 2020; NCCL 2.17 and 2.18, transport/nvls.cc"

ENTRIES = (
    AlgorithmEntry(
        collective="all-reduce",
        name="switch",
        make=_all_reduce,
        about="The switch of each node sums and copies; rails sum across nodes in between.",
        formula=(
            "S + S / n on one node, 4 steps; on N nodes of m ranks "
            "S + S / m + 2 (N - 1) / n S, 2 N + 2 steps"
        ),
        share_sent=_share_of_all_reduce,
        num_steps=lambda made: 4 + 2 * (made.group.num_nodes - 1),
        source=_SOURCE,
    ),
    AlgorithmEntry(
        collective="all-gather",
        name="switch",
        make=_all_gather,
        about="Each rail gathers its blocks across nodes; the switch copies them to every rank.",
        formula="S / n on one node, 2 steps; (2 N - 1) / n S on N equal nodes, N + 1 steps",
        share_sent=_share_of_all_gather,
        num_steps=_steps_of_all_gather,
        source=_SOURCE,
    ),
    AlgorithmEntry(
        collective="reduce-scatter",
        name="switch",
        make=_reduce_scatter,
        about="The switch of each node sums; each rail then sums its blocks across nodes.",
        formula="S on one node, 2 steps; S + (N - 1) / n S on N equal nodes, N + 1 steps",
        share_sent=_share_of_reduce_scatter,
        num_steps=_steps_of_all_gather,
        source=_SOURCE,
    ),
)
