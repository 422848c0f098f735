"""A weight that two stages share, such as that of embedding and output: one copy on each.

    pp rank 0     stage 0  embed ─┐                      gradients are summed over embd, the
    pp rank 3     stage 3  head  ─┴─ embd [0 3]          ranks of the first and the last stage

Where a V puts both stages on one rank, the sum is that rank's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn

from serried.runtime.training.gradients import gradient_of, place_as


@dataclass(frozen=True, eq=False)
class TiedWeight:
    """Holds this rank's copy, or both, of a weight that two stages have."""

    stages: tuple[int, int]
    first: nn.Parameter | None
    last: nn.Parameter | None
    """The copy of the second of ``stages``: a gradient's norm leaves it out."""
    group: dist.ProcessGroup
    """The ranks that hold the two copies."""

    @property
    def stage(self) -> int | None:
        """A stage of this rank that has a copy."""
        if self.first is not None:
            return self.stages[0]
        return None if self.last is None else self.stages[1]

    @torch.no_grad()
    def join(self) -> None:
        """Sums the gradients of the two copies; ranks that have one call it."""
        for copy in (self.first, self.last):
            if copy is not None:
                place_as(copy)  # over tp, one end's may be whole here and the other's a shard
        if self.first is not None and self.last is not None:
            both = gradient_of(self.first) + gradient_of(self.last)
            gradient_of(self.first).copy_(both)
            gradient_of(self.last).copy_(both)
            return
        held = self.first if self.first is not None else self.last
        assert held is not None
        dist.all_reduce(gradient_of(held), group=self.group)
