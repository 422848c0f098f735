"""The registry: every collective, and every algorithm that runs it, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from serried.collective.algorithm import NO_STEPS, Collective
from serried.collective.algorithms.ring import (
    ring_all_gather,
    ring_all_reduce,
    ring_channels,
    ring_reduce_scatter,
)
from serried.collective.placed_group import PlacedGroup
from serried.errors import InputError, listed


@dataclass(frozen=True)
class CollectiveRequest:
    """Holds what is asked of an algorithm; what is None takes the algorithm's own default."""

    name: str
    algorithm: str
    group: PlacedGroup
    root: int = 0
    """Position of the rank that has or gets all."""
    channels: int | None = None
    """Rings that share the buffer."""
    chunks: int | None = None
    """Parts of the buffer that follow one another through a tree or a chain."""


@dataclass(frozen=True)
class AlgorithmEntry:
    """Describes one algorithm of one collective: how to make it, and what to say about it."""

    collective: str
    name: str
    make: Callable[[CollectiveRequest], Collective]
    about: str
    formula: str
    """Bytes that one rank sends, and latencies, with n ranks and S bytes."""
    source: str


def make(
    name: str,
    algorithm: str,
    group: PlacedGroup,
    *,
    root: int = 0,
    channels: int | None = None,
    chunks: int | None = None,
) -> Collective:
    """Returns the collective ``name`` by ``algorithm`` over ``group``.

    Raises InputError for an unknown collective, or an algorithm that it does not have.

    >>> ring = make("all-reduce", "ring", PlacedGroup.first(8))
    >>> len(ring.steps), ring.num_blocks
    (14, 8)
    """
    entry = entry_of(name, algorithm)
    if group.size == 1:
        return Collective(name, algorithm, group, 1, NO_STEPS, 0)
    return entry.make(CollectiveRequest(name, algorithm, group, root, channels, chunks))


def entry_of(name: str, algorithm: str) -> AlgorithmEntry:
    """Returns the entry of an algorithm; raises InputError naming those there are."""
    if name not in COLLECTIVES:
        raise InputError(
            "there is no collective '{name}'; those there are: {known}",
            name=name,
            known=listed(COLLECTIVES, limit=20),
        )
    known = {entry.name: entry for entry in ENTRIES if entry.collective == name}
    if algorithm not in known:
        raise InputError(
            "{name} has no algorithm '{algorithm}'; it has {known}",
            name=name,
            algorithm=algorithm,
            known=listed(known, limit=20),
        )
    return known[algorithm]


def _ring(asked: CollectiveRequest) -> Collective:
    channels = asked.channels or ring_channels(asked.group)
    if channels > asked.group.rails:
        raise InputError(
            "{channels} rings are asked for, and the smallest node has {rails} ranks of the group; "
            "there can be 1 to {rails}",
            channels=channels,
            rails=asked.group.rails,
        )
    steps = {
        "all-gather": ring_all_gather,
        "reduce-scatter": ring_reduce_scatter,
        "all-reduce": ring_all_reduce,
    }[asked.name](asked.group, channels)
    return Collective(asked.name, "ring", asked.group, asked.group.size * channels, steps)


_RING = "Patarasuk and Yuan, JPDC 69(2), 2009; NCCL 2.x, graph/rings.cc"

ENTRIES: tuple[AlgorithmEntry, ...] = (
    AlgorithmEntry(
        "all-reduce",
        "ring",
        _ring,
        "Each block goes once round the ring to be summed, and once more to be told.",
        "2 (n - 1) / n S, 2 (n - 1) steps",
        _RING,
    ),
    AlgorithmEntry(
        "all-gather",
        "ring",
        _ring,
        "Each rank passes on the block that it got a step before.",
        "(n - 1) / n S, n - 1 steps",
        _RING,
    ),
    AlgorithmEntry(
        "reduce-scatter",
        "ring",
        _ring,
        "Each block goes round the ring, summed on the way, and ends at its owner.",
        "(n - 1) / n S, n - 1 steps",
        _RING,
    ),
)
COLLECTIVES = tuple(dict.fromkeys(entry.collective for entry in ENTRIES))
