"""CollectiveTrial and TrialSettings: which collectives are tried on real ranks, free of torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from serried.collective.algorithm import Collective
from serried.collective.placed_group import PlacedGroup
from serried.collective.registry import ENTRIES, make
from serried.errors import InputError, listed

COMPUTES = "attention"
"""The collective that is more than messages, which `serried train` runs with its model."""
NEEDS_SWITCH = "switch"
SHARES = ("all-gather", "reduce-scatter", "all-to-all", "gather", "scatter")
"""Collectives in which torch's own needs equal shares."""


@dataclass(frozen=True)
class CollectiveTrial:
    """Asks for one collective by one algorithm over ranks of the job.

    Raises InputError for an algorithm that ranks cannot run by messages.
    """

    name: str
    algorithm: str
    group: PlacedGroup
    size_bytes: int
    """S, rounded up so that ranks have equal shares where torch's own needs them."""
    root: int = 0
    """Position of the rank that has or gets all."""
    channels: int | None = None
    chunks: int | None = None

    def __post_init__(self) -> None:
        if self.name == COMPUTES:
            raise InputError(
                "attention is more than messages; serried train --cp 2 runs it with a model"
            )
        if self.algorithm == NEEDS_SWITCH:
            alike = (each.name for each in ENTRIES if each.collective == self.name)
            raise InputError(
                "{name} by switch needs a switch that adds, and no rank can stand for it; "
                "by messages it runs as {known}",
                name=self.name,
                known=listed((each for each in alike if each != NEEDS_SWITCH), last="or"),
            )

    @cached_property
    def collective(self) -> Collective:
        """The collective over the group's ranks in ascending order, as torch sorts them."""
        seats = sorted(zip(self.group.ranks, self.group.nodes, strict=True))
        group = PlacedGroup(tuple(rank for rank, _ in seats), tuple(node for _, node in seats))
        root = group.ranks.index(self.group.ranks[self.root])
        return make(
            self.name,
            self.algorithm,
            group,
            root=root,
            channels=self.channels,
            chunks=self.chunks,
        )

    @property
    def elements(self) -> int:
        """Elements of four bytes in a buffer, rounded up where ranks need equal shares."""
        asked = max(1, self.size_bytes // 4)
        if self.name not in SHARES:
            return asked
        parts = self.collective.num_blocks // self.collective.num_buffers
        return -(-asked // parts) * parts


@dataclass(frozen=True)
class TrialSettings:
    """Asks for collectives on a job of ``world_size`` ranks, one after another."""

    trials: tuple[CollectiveTrial, ...]
    world_size: int
    iterations: int = 3
    """How often each is timed; the quickest counts."""
    timeout_s: float = 30.0
    device: Literal["auto", "cpu", "cuda"] = "auto"

    def __post_init__(self) -> None:
        if not 0 < self.timeout_s < math.inf:
            raise InputError(
                "{name}={value}; it is above zero", name="timeout", value=self.timeout_s
            )
