"""Which algorithm of a collective is the quickest at which size, and where the next one takes over.

seconds (log)
  │  recursive      .· ring          few steps win while latency counts, few bytes on the
  │ ─────────────.·'──               slowest link win while bandwidth does; between them lies
  │        . · ' │                   a crossing, found to the byte
  └──────────────┴──────> bytes (log)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from serried.errors import InputError
from serried.plan.collective_price import CollectiveQuestion, CollectiveWay

SMALLEST, LARGEST = 1 << 10, 1 << 32
"""Sizes that are looked at: 1 KiB to 4 GiB."""


@dataclass(frozen=True)
class Crossing:
    """Says that from ``size_bytes`` on ``after`` is quicker than ``before``."""

    size_bytes: int
    before: str
    after: str


@dataclass(frozen=True, eq=False)
class AlgorithmsBySize:
    """Holds the ways of every algorithm of one collective, priced at any size.

    >>> from serried.collective.placed_group import PlacedGroup
    >>> from serried.collective.price import LinkCost, Network
    >>> link = LinkCost(1e-6, 1e11)
    >>> asked = CollectiveQuestion("all-gather", PlacedGroup.first(8), 1, (Network(link, link),))
    >>> AlgorithmsBySize.of(asked).best(1 << 20)
    'hierarchical'
    """

    asked: CollectiveQuestion
    ways: dict[str, list[CollectiveWay]]

    @classmethod
    def of(cls, asked: CollectiveQuestion) -> AlgorithmsBySize:
        """Returns the algorithms that can run what is asked for.

        Raises InputError for a collective that there is not, or where a measured table is given.
        """
        if asked.measured is not None:
            raise InputError(
                "a busbw table does not say which algorithm ran, so that algorithms cannot be "
                "compared by it; leave out one of the two"
            )
        ways: dict[str, list[CollectiveWay]] = {}
        for way in replace(asked, algorithm=None).ways():
            ways.setdefault(way.entry.name, []).append(way)
        return cls(asked, ways)

    def time_s(self, algorithm: str, size_bytes: int) -> float:
        """Returns the seconds of one algorithm's quickest way."""
        return min(way.time_s(size_bytes) for way in self.ways[algorithm])

    def best(self, size_bytes: int) -> str:
        """Returns the quickest algorithm, of equals the one that the registry has first."""
        return min(self.ways, key=lambda name: self.time_s(name, size_bytes))

    @cached_property
    def sizes(self) -> list[int]:
        """Powers of two from the smallest size to the largest."""
        return [1 << power for power in range(10, 33)]

    @cached_property
    def crossings(self) -> list[Crossing]:
        """Every size from which on another algorithm is the quickest, to the byte."""
        found = []
        for low, high in pairwise(self.sizes):
            while (before := self.best(low)) != self.best(high):
                size = self._first_other(before, low, high)
                found.append(Crossing(size, before, self.best(size)))
                low = size
        return found

    def _first_other(self, before: str, low: int, high: int) -> int:
        """Returns a size between at which ``before`` has just stopped being the quickest."""
        while high - low > 1:
            middle = (low + high) // 2
            if self.best(middle) == before:
                low = middle
            else:
                high = middle
        return high
