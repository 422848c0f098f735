"""What a check found: where ranks are, groups with wrong members, times, links, and findings."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.finding import Finding
from serried.plan.busbw import BusbwRow, BusbwTable


@dataclass(frozen=True)
class Seat:
    """Says where a rank really is."""

    rank: int
    node: int
    host: str
    pid: int
    device: str

    @classmethod
    def own(cls, rank: int, node: int, device: str) -> Seat:
        """Returns the seat of this process."""
        return cls(rank, node, socket.gethostname(), os.getpid(), device)


@dataclass(frozen=True)
class Seated:
    """Tells that all ranks have met and where they are; the check begins."""

    seats: tuple[Seat, ...]
    backend: str
    num_steps: int


@dataclass(frozen=True)
class StepBegun:
    """Tells that step ``number`` of ``total`` begins."""

    name: str
    number: int
    total: int


@dataclass(frozen=True)
class Membership:
    """Says who answered in one group, as the group itself lists its ranks."""

    kind: str
    number: int
    answered: tuple[int, ...]
    total: int


@dataclass(frozen=True, eq=False)
class GroupTimes:
    """Holds how long one operation took in the groups of a kind, all at once and one alone.

    ``times_ns`` is (groups, rounds): of each round the slowest rank's fastest iteration;
    ``median_ns`` (groups,): the slowest rank's median over all iterations, as nccl-tests
    times. ``alone_ns`` is the same of the first group while all others waited.
    """

    kind: str
    operation: str
    size_bytes: int
    sizes: tuple[int, ...]
    """Ranks of each group."""
    nodes: tuple[int, ...]
    """Nodes of each group."""
    times_ns: NDArray[np.float64]
    median_ns: NDArray[np.float64]
    alone_ns: float | None

    def rows(self) -> list[BusbwRow]:
        """Returns a row per shape of group: the median over groups of that shape."""
        shapes = sorted(set(zip(self.sizes, self.nodes, strict=True)))
        made = []
        for ranks, nodes in shapes:
            own = [
                time
                for size, n, time in zip(self.sizes, self.nodes, self.median_ns, strict=True)
                if (size, n) == (ranks, nodes)
            ]
            # A rank by itself moves nothing, so it has no bandwidth.
            if ranks > 1:
                time_ns = float(np.median(own))
                made.append(
                    BusbwRow(self.operation, ranks, nodes, len(own), self.size_bytes, time_ns)
                )
        return made

    @property
    def slowest(self) -> int:
        """The number of the group that took longest."""
        return int(np.nanargmax(self.median_ns))

    @property
    def contention(self) -> float | None:
        """How much longer the first group takes while all groups of its kind run."""
        return float(self.median_ns[0]) / self.alone_ns if self.alone_ns else None


@dataclass(frozen=True, eq=False)
class Link:
    """Holds how long messages took from one rank to another: (rounds, sizes), the fastest of each.

    ``is_inter`` says that the two are on different nodes.
    """

    source: int
    target: int
    is_inter: bool
    times_ns: NDArray[np.float64]

    def bandwidth(self, size_bytes: int, column: int) -> float:
        """Returns bytes per second at one size, the median over rounds."""
        return size_bytes / float(np.median(self.times_ns[:, column])) * 1e9


@dataclass(frozen=True, eq=False)
class CheckReport:
    """Holds everything that a check found."""

    seats: tuple[Seat, ...]
    backend: str
    torch_version: str
    sizes_bytes: tuple[int, ...]
    rounds: int
    same_as: Mapping[str, str]
    num_groups: Mapping[str, int]
    timings: tuple[GroupTimes, ...]
    links: tuple[Link, ...]
    findings: tuple[Finding, ...]

    @property
    def nodes(self) -> dict[int, list[Seat]]:
        """Seats by node, both ascending."""
        found: dict[int, list[Seat]] = {}
        for seat in sorted(self.seats, key=lambda each: (each.node, each.rank)):
            found.setdefault(seat.node, []).append(seat)
        return found

    def busbw_table(self, date: str) -> BusbwTable:
        """Returns what the planner reads: the table of these groups, measured on ``date``."""
        hosts = sorted({seat.host for seat in self.seats})
        source = (
            f"serried check, {self.backend}, torch {self.torch_version}, {date}, "
            f"{len(self.seats)} ranks on {', '.join(hosts)}"
        )
        return BusbwTable(source, tuple(row for each in self.timings for row in each.rows()))
