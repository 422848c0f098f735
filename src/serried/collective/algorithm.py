"""A collective that is ready to run: a group, its blocks, and the steps of one algorithm."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from serried.collective.attention import SplitAttention
from serried.collective.placed_group import PlacedGroup
from serried.collective.step import CollectiveSteps, Integers


@dataclass(frozen=True)
class Collective:
    """Holds the steps that ``algorithm`` takes to run the collective ``name`` over ``group``.

    A buffer of S bytes, as nccl-tests count it, is cut into blocks that differ by a byte at most:

        all-reduce, broadcast, reduce      the buffer of a rank
        all-gather, gather                 what is received in all
        reduce-scatter, scatter            what is sent in all
        all-to-all                         the buffer of one rank, of which there are n
        send-receive                       one message, of which there are n - 1
        attention                          keys and values of the whole sequence
    """

    name: str
    algorithm: str
    group: PlacedGroup
    num_blocks: int
    steps: CollectiveSteps
    root: int = 0
    """Position that sends or receives all, in a broadcast, reduce, gather or scatter."""
    num_buffers: int = 1
    """How many buffers of S bytes the blocks are cut from, in their order."""
    num_channels: int = 1
    """Rings or pairs of trees that share the buffer."""
    owners: Integers | None = field(default=None, compare=False)
    """The position of each block's owner where ranks do not own blocks in order."""
    attention: SplitAttention | None = field(default=None, compare=False)
    """Which blocks of queries meet which blocks, where queries are computed with."""

    @classmethod
    def idle(cls, name: str, algorithm: str, group: PlacedGroup) -> Collective:
        """Returns a collective without steps, which is all that a group of one rank has to do."""
        return cls(name, algorithm, group, 1, CollectiveSteps.listed([]))

    @property
    def owner(self) -> Integers:
        """The position that each block belongs to, shape (num_blocks,): even shares in order."""
        if self.owners is not None:
            return self.owners
        return np.arange(self.num_blocks) * self.group.size // self.num_blocks

    def block_bytes(self, size_bytes: int) -> Fraction:
        """Returns the bytes of a block on average, exactly.

        >>> none = CollectiveSteps.listed([])
        >>> Collective("all-reduce", "none", PlacedGroup.first(2), 4, none).block_bytes(10)
        Fraction(5, 2)
        """
        return Fraction(size_bytes * self.num_buffers, self.num_blocks)

    def bytes_of(self, block: int, size_bytes: int) -> int:
        """Returns the bytes of one block where a buffer has ``size_bytes``; together they are that.

        >>> none = CollectiveSteps.listed([])
        >>> both = Collective("all-reduce", "none", PlacedGroup.first(2), 4, none)
        >>> [both.bytes_of(block, 10) for block in range(4)]
        [2, 3, 2, 3]
        """
        parts = self.num_blocks // self.num_buffers
        part = block % parts
        return size_bytes * (part + 1) // parts - size_bytes * part // parts
