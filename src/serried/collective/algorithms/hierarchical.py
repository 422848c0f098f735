"""Hierarchical: members of a node exchange directly, and only a share goes between nodes.

    all-reduce, 2 nodes of 2 ranks

             node 0    node 1
    step 0   0 <-> 1   2 <-> 3     reduce-scatter in the node: rail 0 on 0 and 2, rail 1 on 1 and 3
    step 1   0 ──────> 2 ──> 0     reduce-scatter between nodes, a ring for each rail
             1 ──────> 3 ──> 1
    step 2   the same rings        all-gather between nodes
    step 3   0 <-> 1   2 <-> 3     all-gather in the node

A rank sends as much as in a ring, 2 (n - 1) / n S, but only 2 (N - 1) / n S of it leaves one of N
nodes, in 2 N steps. The all-gather is the second half, with a block of each rank: first
between nodes, then in them. The reduce-scatter is that backwards.

Nodes may have unequal numbers of ranks: there are as many rails as the smallest has, and the other
ranks of a node only take part in it. For an all-gather they hand their block to an owner first.

Sources: Cho et al., BlueConnect, MLSys 2019; Horovod, ops/
nccl_operations.cc (NCCLHierarchicalAllreduce).
"""

from __future__ import annotations

from fractions import Fraction

from serried.collective.algorithm import Collective
from serried.collective.algorithms.rails import Rails
from serried.collective.entry import AlgorithmEntry, CollectiveRequest, others
from serried.collective.placed_group import PlacedGroup
from serried.collective.step import CollectiveSteps


def hierarchical_all_gather(rails: Rails) -> CollectiveSteps:
    """Returns the steps that take every block of ``rails`` from its owner to all.

    >>> rails = Rails.of_ranks(PlacedGroup.first(4, gpus_per_node=2))
    >>> [list(zip(step.source.tolist(), step.target.tolist()))
    ...     for step in hierarchical_all_gather(rails)]
    [[(0, 2), (2, 0), (1, 3), (3, 1)], [(0, 1), (2, 3), (1, 0), (3, 2)]]
    """
    return rails.hand_over().then(rails.between_nodes()).then(rails.within_nodes())


def hierarchical_all_reduce(group: PlacedGroup) -> CollectiveSteps:
    """Returns the steps over a block for each rail and node: scattered, then gathered.

    >>> len(hierarchical_all_reduce(PlacedGroup.first(32)))
    8
    """
    gather = hierarchical_all_gather(Rails.shared(group))
    return gather.backwards().then(gather)


def _all_reduce(asked: CollectiveRequest) -> Collective:
    blocks = asked.group.rails * asked.group.num_nodes
    steps = hierarchical_all_reduce(asked.group)
    return Collective(asked.name, asked.algorithm, asked.group, blocks, steps)


def _all_gather(asked: CollectiveRequest) -> Collective:
    rails = Rails.of_ranks(asked.group)
    gather = hierarchical_all_gather(rails)
    steps = gather if asked.name == "all-gather" else gather.backwards()
    return Collective(
        asked.name, asked.algorithm, asked.group, asked.group.size, steps, owners=rails.owners
    )


def _share_of_all_reduce(made: Collective) -> Fraction:
    rails, nodes = made.group.rails, made.group.num_nodes
    most = max(map(len, made.group.by_node))
    return Fraction(rails - 1 + most - 1, rails) + Fraction(2 * (nodes - 1), rails * nodes)


def _share_of_all_gather(made: Collective) -> Fraction:
    rails = Rails.of_ranks(made.group)
    most = 0
    for node, members in enumerate(made.group.by_node):
        for rail, whole in enumerate(rails.whole.tolist()):
            # Ranks that handed a block over do not get their own back.
            told = whole * (len(members) - 1) - int(rails.count[rail, node] - 1)
            most = max(most, told + int(rails.sent_between_nodes[rail, node]))
    return Fraction(most, made.group.size)


def _steps_of_all_reduce(made: Collective) -> int:
    has_partners = max(map(len, made.group.by_node)) > 1
    return 2 * (made.group.num_nodes - 1 + has_partners)


def _steps_of_all_gather(made: Collective) -> int:
    return _steps_of_all_reduce(made) // 2 + (not made.group.is_even)


_SOURCE = "Cho et al., BlueConnect, MLSys 2019; Horovod, nccl_operations.cc"

ENTRIES = (
    AlgorithmEntry(
        collective="all-reduce",
        name="hierarchical",
        make=_all_reduce,
        about="Ranks of a node share the sum out, rails sum it across nodes, and nodes gather it.",
        formula="2 (n - 1) / n S on N equal nodes, 2 (N - 1) / n S of it across; 2 N steps",
        share_sent=_share_of_all_reduce,
        num_steps=_steps_of_all_reduce,
        source=_SOURCE,
    ),
    AlgorithmEntry(
        collective="all-gather",
        name="hierarchical",
        make=_all_gather,
        about="Each rail gathers its blocks across nodes, then ranks of a node exchange them.",
        formula="(n - 1) / n S on N equal nodes, (N - 1) / n S of it across; N steps",
        share_sent=_share_of_all_gather,
        num_steps=_steps_of_all_gather,
        source=_SOURCE,
    ),
    AlgorithmEntry(
        collective="reduce-scatter",
        name="hierarchical",
        make=_all_gather,
        about="Ranks of a node sum each other's shares, then each rail sums them across nodes.",
        formula="(n - 1) / n S, (N - 1) / n S of it across N equal nodes; N steps",
        share_sent=others,
        num_steps=_steps_of_all_gather,
        source=_SOURCE,
    ),
)
