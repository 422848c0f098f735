"""One collective as it is asked for, and its price: modelled link by link, or as it was measured.

    name, algorithm, group ──> Collective ──┐
    bytes, networks ────────────────────────┴─> time, busbw, what each step costs
    a busbw table, where one is given ─────────> time and busbw as they were measured instead

Every way in (options, an address, Python) makes one ``CollectiveQuestion``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from serried.collective.algorithm import Collective
from serried.collective.bus_factor import bus_factor
from serried.collective.entry import AlgorithmEntry
from serried.collective.placed_group import PlacedGroup
from serried.collective.price import (
    CollectiveCost,
    LinkClass,
    Network,
    StepLoads,
    is_countable,
    loads_of,
)
from serried.collective.registry import ENTRIES, ROOTED, entry_of, make
from serried.errors import InputError, listed
from serried.plan.busbw import BusbwRow, BusbwTable

BUS_OPERATIONS = (
    *("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "send-receive"),
    *("broadcast", "reduce", "gather", "scatter"),
)
"""Collectives that nccl-tests have a bus bandwidth of."""
TRIED_CHUNKS = (1, 4, 16, 64, 256)
"""Numbers of chunks that are tried where none is asked for: the quickest is taken."""
MOST_TRIED_RANKS = 1024
"""Groups of more take the algorithm's own number, for its steps are long to count."""


OPTIONS = ("channels", "chunks", "split", "causal")
"""What some algorithms take and others do not."""


@dataclass(frozen=True)
class CollectiveQuestion:
    """Holds what is asked: a collective over a group, the algorithm, the bytes, the links.

    >>> from serried.collective.networks import preset_of
    >>> group, links = PlacedGroup.first(8), preset_of("h100").networks()
    >>> asked = CollectiveQuestion("all-reduce", group, 1 << 30, links, "ring")
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
    split: str | None = None
    """How a sequence is dealt out to ranks, in attention."""
    causal: bool | None = None
    """Whether queries see only keys before them, in attention; None takes that they do."""

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
        """Returns the quickest way, by the algorithm asked for or by any; raises InputError."""
        ways = self.ways()
        return min((way.priced(self) for way in ways), key=lambda each: each.time_s)

    def ways(self) -> list[CollectiveWay]:
        """Returns every way to run it that is left open: algorithms, and numbers of chunks.

        An algorithm whose steps are too many to be counted is left out where another is not.
        Raises InputError for an algorithm that there is not, or what it cannot take.
        """
        names = [self.algorithm] if self.algorithm else self._names()
        found = [way for name in names for way in self._ways_of(entry_of(self.name, name))]
        return [way for way in found if is_countable(way.collective)] or found

    def _names(self) -> list[str]:
        """Returns the algorithms that take what is asked for."""
        asked = [name for name in OPTIONS if getattr(self, name) is not None]
        known = [entry for entry in ENTRIES if entry.collective == self.name]
        taking = [entry.name for entry in known if {*asked} <= {*entry.takes}]
        # Where none does, the first one says so; of an unknown collective there is none.
        return taking or [entry.name for entry in known[:1]] or ["ring"]

    def _ways_of(self, entry: AlgorithmEntry) -> Iterator[CollectiveWay]:
        root = 0 if self.root is None else self.group.ranks.index(self.root)
        is_open = "chunks" in entry.takes and self.chunks is None
        is_open &= 1 < self.group.size <= MOST_TRIED_RANKS
        for chunks in TRIED_CHUNKS if is_open else (self.chunks,):
            collective = make(
                entry.collective,
                entry.name,
                self.group,
                root=root,
                channels=self.channels,
                chunks=chunks,
                split=self.split,
                causal=self.causal,
            )
            yield CollectiveWay(entry, collective, chunks, self.networks)


@dataclass(frozen=True, eq=False)
class CollectiveWay:
    """Holds one way to run a collective, for buffers of any size."""

    entry: AlgorithmEntry
    collective: Collective
    chunks: int | None
    networks: tuple[Network, ...]

    @cached_property
    def loads(self) -> StepLoads:
        """What its steps put on the links."""
        return loads_of(self.collective, self.networks[0].nics_per_node)

    def time_s(self, size_bytes: int) -> float:
        """Returns the seconds that it takes over the quickest protocol; 0 for one rank."""
        if self.collective.group.size == 1:
            return 0.0
        return min(self.loads.time_s(network, size_bytes) for network in self.networks)

    def priced(self, asked: CollectiveQuestion) -> PricedCollective:
        """Returns it with its price."""
        network = min(self.networks, key=lambda each: self.loads.time_s(each, asked.size_bytes))
        cost = self.loads.cost(network, asked.size_bytes)
        return PricedCollective(asked, self.entry, self.collective, cost, self.chunks)


@dataclass(frozen=True, eq=False)
class PricedCollective:
    """Holds one collective with its price."""

    asked: CollectiveQuestion
    entry: AlgorithmEntry
    collective: Collective
    cost: CollectiveCost
    """What the model says, of the quickest protocol."""
    chunks: int | None = None
    """Parts that follow one another, where the algorithm has them."""

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
