"""One collective as it is asked for, and its price: modelled link by link, or as it was measured.

    name, algorithm, group ──> Collective ──┐
    bytes, networks ────────────────────────┴─> time, busbw, what each step costs
    a busbw table, where one is given ─────────> time and busbw as they were measured instead

Every way in (options, an address, Python) makes one ``CollectiveQuestion``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from serried.collective.algorithm import Collective
from serried.collective.entry import AlgorithmEntry
from serried.collective.placed_group import PlacedGroup
from serried.collective.price import CollectiveCost, LinkClass, Network, costs_of
from serried.collective.registry import ENTRIES, ROOTED, entry_of, make
from serried.errors import InputError, listed
from serried.plan.busbw import BusbwRow, BusbwTable, bus_factor

BUS_OPERATIONS = (
    *("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "send-receive"),
    *("broadcast", "reduce", "gather", "scatter"),
)
"""Collectives that nccl-tests have a bus bandwidth of."""


@dataclass(frozen=True)
class CollectiveQuestion:
    """Holds what is asked: a collective over a group, the algorithm, the bytes, the links.

    >>> from serried.collective.networks import PRESETS
    >>> group = PlacedGroup.first(8)
    >>> asked = CollectiveQuestion("all-reduce", group, 1 << 30, PRESETS["h100"].networks(), "ring")
    >>> len(asked.priced().collective.steps)
    14
    """

    name: str
    group: PlacedGroup
    size_bytes: int
    """S, as nccl-tests count it."""
    networks: tuple[Network, ...]
    """The network as each protocol finds it; the quickest counts."""
    algorithm: str | None = None
    """None takes the quickest."""
    root: int | None = None
    """The rank that has or gets all; None takes the group's first."""
    measured: BusbwTable | None = None
    channels: int | None = None
    chunks: int | None = None

    def __post_init__(self) -> None:
        if self.size_bytes < 1:
            raise InputError(
                "bytes={size} leaves nothing to send; give a size such as 1GiB",
                size=self.size_bytes,
            )
        if self.root is not None and self.root not in self.group.ranks:
            raise InputError(
                "rank {root} is not in the group, so it cannot be the root; ranks that are: "
                "{ranks}",
                root=self.root,
                ranks=listed(self.group.ranks),
            )

    def priced(self) -> PricedCollective:
        """Makes the collective and prices it; raises InputError for what cannot be."""
        if self.algorithm is None:
            return min(self.each_algorithm(), key=lambda each: each.time_s)
        entry = entry_of(self.name, self.algorithm)
        collective = make(
            entry.collective,
            entry.name,
            self.group,
            root=0 if self.root is None else self.group.ranks.index(self.root),
            channels=self.channels,
            chunks=self.chunks,
        )
        costs = costs_of(collective, self.networks, self.size_bytes)
        best = min(costs, key=lambda each: each.time_s)
        return PricedCollective(self, entry, collective, best)

    def each_algorithm(self) -> Iterator[PricedCollective]:
        """Yields the collective by every algorithm that it has."""
        entry_names = [each.name for each in ENTRIES if each.collective == self.name]
        # Of a name that is not known there is none, and the first one says so.
        for name in entry_names or ["ring"]:
            yield replace(self, algorithm=name).priced()


@dataclass(frozen=True, eq=False)
class PricedCollective:
    """Holds one collective with its price."""

    asked: CollectiveQuestion
    entry: AlgorithmEntry
    collective: Collective
    cost: CollectiveCost
    """What the model says, of the quickest protocol."""

    @cached_property
    def measured_rows(self) -> list[BusbwRow]:
        """The rows that stand for this size in the table that was given: none, one, or two."""
        asked, group = self.asked, self.collective.group
        if asked.measured is None or group.size == 1:
            return []
        points = asked.measured.nearest(self.operation, ranks=group.size, nodes=group.num_nodes)
        below = [row for row in points if row.size_bytes <= asked.size_bytes]
        above = [row for row in points if row.size_bytes >= asked.size_bytes]
        return list(dict.fromkeys([*below[-1:], *above[:1]]))

    @property
    def operation(self) -> str:
        """The collective as the busbw table calls it."""
        return self.asked.name.replace("send-receive", "sendrecv").replace("-", "_")

    @cached_property
    def time_s(self) -> float:
        """Seconds: as measured where a table was given, else of the model; 0 for one rank."""
        group, table = self.collective.group, self.asked.measured
        if group.size == 1:
            return 0.0
        if table is None:
            return self.cost.time_s
        size = self.asked.size_bytes
        told = table.time_ns(
            self.operation, ranks=group.size, nodes=group.num_nodes, size_bytes=size
        )
        return told / 1e9

    @property
    def step_s(self) -> NDArray[np.float64]:
        """Seconds of each step, shape (steps,); the model's, stretched to what was measured."""
        modelled = self.cost.time_s
        if self.asked.measured is None or not modelled:
            return self.cost.step_s
        return self.cost.step_s * (self.time_s / modelled)

    @property
    def launch_s(self) -> float:
        """Seconds before the first step."""
        return max(0.0, self.time_s - float(self.step_s.sum()))

    @property
    def algbw(self) -> float | None:
        """S over time, in bytes per second; None where nothing travels."""
        return self.asked.size_bytes / self.time_s if self.time_s else None

    @property
    def busbw(self) -> float | None:
        """Bytes per second that are alike for all collectives; None where nccl-tests have none."""
        if self.algbw is None or self.asked.name not in BUS_OPERATIONS:
            return None
        return self.algbw * bus_factor(self.operation, self.collective.group.size)

    @property
    def most_sent(self) -> float:
        """Bytes that the rank which sends most sends in all."""
        return float(self.cost.sent[: self.collective.group.size].max())

    @property
    def bottleneck(self) -> LinkClass:
        """The kind of link that most of the steps' time is waited for."""
        times = self.cost.time_by_link()
        return max(times, key=lambda kind: (times[kind], kind))

    @property
    def root_rank(self) -> int | None:
        """The rank that has or gets all; None where no rank is set apart."""
        if self.asked.name not in ROOTED:
            return None
        return self.collective.group.ranks[self.collective.root]
