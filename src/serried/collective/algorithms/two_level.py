"""Hierarchical all-to-all: first to the rank of one's node that stands where the target does.

    2 nodes of 2 ranks; what 0 has for 3 goes to 1, which stands on its node where 3 does

    step 0   0 ─01 03─> 1    1 ─10 12─> 0    2 ─21 23─> 3    3 ─30 32─> 2      in the node
    step 1   0 ─02 12─> 2    1 ─03 13─> 3    2 ─20 30─> 0    3 ─21 31─> 1      across

A rank of one of N nodes with m ranks sends (m - 1) / m S in its node and (N - 1) / N S across, in
messages of m blocks: N steps where pairwise has n - 1, and m times fewer messages across.

On nodes of unequal size there are as many rails as the smallest has ranks; a rank without one gets
its blocks from an owner in a last step.

Sources: DeepSpeed-MoE, arXiv 2201.05596 (hierarchical all-to-all); NCCL 2.12, PXN.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from serried.collective.algorithm import Collective
from serried.collective.algorithms.rails import Rails, places_on_nodes
from serried.collective.entry import AlgorithmEntry, CollectiveRequest
from serried.collective.placed_group import PlacedGroup
from serried.collective.step import CollectiveStep, CollectiveSteps, Integers
from serried.errors import InputError
from serried.limits import UNEQUAL_ALL_TO_ALL


def two_level_all_to_all(group: PlacedGroup) -> CollectiveSteps:
    """Returns the steps over n x n blocks.

    >>> [len(step) for step in two_level_all_to_all(PlacedGroup.first(16))]
    [112, 16]
    >>> [len(step) for step in two_level_all_to_all(PlacedGroup.first(3, gpus_per_node=2))]
    [3, 4, 1]

    Raises InputError for more ranks than are counted block by block, where nodes are unequal.
    """
    per_node = group.size // group.num_nodes
    in_order = np.arange(group.size) // per_node
    if group.is_even and np.array_equal(group.node_index, in_order):
        return _of_equal_nodes(group.num_nodes, per_node)
    if group.size > UNEQUAL_ALL_TO_ALL.most:
        raise InputError(
            "a hierarchical all-to-all over unequal or mixed nodes takes at most {most} ranks, "
            "and the group has {ranks}; pairwise takes any number",
            most=UNEQUAL_ALL_TO_ALL.most,
            ranks=group.size,
        )
    return _of_any_nodes(group)


def _of_equal_nodes(nodes: int, per_node: int) -> CollectiveSteps:
    """Returns the steps for positions that fill equal nodes in order, in few moves."""
    n = nodes * per_node
    rank = np.arange(n)
    source, shift = np.repeat(rank, per_node - 1), np.tile(np.arange(1, per_node), n)
    place = (source + shift) % per_node
    inside = CollectiveStep.of(
        source,
        source - source % per_node + place,
        source * n + place,
        count=nodes,
        stride=per_node,
    )

    def across(index: int) -> CollectiveStep:
        target = (rank + (index + 1) * per_node) % n
        first = (rank - rank % per_node) * n + target
        return CollectiveStep.of(rank, target, first, count=per_node, stride=n)

    return CollectiveSteps.listed([inside] if per_node > 1 else []).then(
        CollectiveSteps(nodes - 1, across)
    )


def _of_any_nodes(group: PlacedGroup) -> CollectiveSteps:
    """Returns the steps, a move for each block: to an owner, across, to who owns no rail."""
    block = np.arange(group.size**2)
    source, target = np.divmod(block, group.size)
    node = group.node_index
    is_near = node[source] == node[target]
    owner = Rails.shared(group).owner
    rail = places_on_nodes(group)[target] % group.rails
    leaves = np.where(is_near, target, owner[rail, node[source]])
    enters = np.where(is_near, target, owner[rail, node[target]])
    distance = (node[target] - node[source]) % group.num_nodes

    def across(index: int) -> CollectiveStep:
        return _moves(leaves, enters, block, distance == index + 1)

    everywhere = np.ones_like(is_near)
    first, last = (
        _moves(*ends, block, everywhere) for ends in ((source, leaves), (enters, target))
    )
    between = CollectiveSteps(group.num_nodes - 1, across)
    return (
        CollectiveSteps.listed([first] if len(first) else [])
        .then(between)
        .then(CollectiveSteps.listed([last] if len(last) else []))
    )


def _moves(source: Integers, target: Integers, block: Integers, among: Integers) -> CollectiveStep:
    goes = (source != target) & among.astype(np.bool_)
    return CollectiveStep.of(source[goes], target[goes], block[goes])


def _make(asked: CollectiveRequest) -> Collective:
    n = asked.group.size
    steps = two_level_all_to_all(asked.group)
    return Collective(asked.name, asked.algorithm, asked.group, n * n, steps, num_buffers=n)


def _share_sent(made: Collective) -> Fraction:
    # An owner sends its own n - 1 blocks, those of its node that go across by its rail, and those
    # that came across for others.
    rails, n = Rails.of_ranks(made.group), made.group.size
    members = np.array([len(node) for node in made.group.by_node])
    across = rails.whole[:, None] - rails.count
    most = n - 1 + (members - 1) * across + (rails.count - 1) * (n - members)
    return Fraction(int(most.max()), n)


def _num_steps(made: Collective) -> int:
    has_partners = max(map(len, made.group.by_node)) > 1
    return has_partners + made.group.num_nodes - 1 + (not made.group.is_even)


ENTRIES = (
    AlgorithmEntry(
        collective="all-to-all",
        name="hierarchical",
        make=_make,
        about="Blocks go to the rank of one's node that stands where the target does, then across.",
        formula="(m - 1) / m S in the node and (N - 1) / N S across, on N nodes of m; N steps",
        share_sent=_share_sent,
        num_steps=_num_steps,
        source="DeepSpeed-MoE, arXiv 2201.05596; NCCL 2.12, PXN",
    ),
)
