"""What an algorithm offers: how to make it, its closed formula, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from serried.collective.algorithm import Collective
from serried.collective.attention import SPLITS
from serried.collective.placed_group import PlacedGroup


@dataclass(frozen=True)
class CollectiveRequest:
    """Holds what is asked of an algorithm; what is None takes the algorithm's own default."""

    name: str
    algorithm: str
    group: PlacedGroup
    root: int = 0
    """Position of the rank that has or gets all."""
    channels: int | None = None
    """Rings or pairs of trees that share the buffer."""
    chunks: int | None = None
    """Parts of the buffer that follow one another through a tree or a chain."""
    split: str = SPLITS[0]
    """How a sequence is dealt out to ranks."""
    is_causal: bool = True
    """Whether queries see only keys before them."""


@dataclass(frozen=True, kw_only=True)
class AlgorithmEntry:
    """Describes one algorithm of one collective: how to make it, and what to say about it."""

    collective: str
    name: str
    make: Callable[[CollectiveRequest], Collective]
    """Makes it for two ranks or more, and for one where it computes."""
    about: str
    formula: str
    """Bytes that the rank that sends most sends, and steps, with n ranks and S bytes."""
    share_sent: Callable[[Collective], Fraction]
    """What part of S the rank that sends most sends, by the formula: not counted from the steps."""
    num_steps: Callable[[Collective], int]
    """How many steps there are, by the formula."""
    source: str
    takes: tuple[str, ...] = ()
    """Which of ``channels``, ``chunks``, ``split`` and ``causal`` may be asked for."""

    def bytes_sent(self, collective: Collective, size_bytes: int) -> Fraction:
        """Returns the bytes that the rank that sends most sends, by the closed formula."""
        if collective.group.size == 1:
            return Fraction(0)
        return self.share_sent(collective) * size_bytes


def others(collective: Collective) -> Fraction:
    """Returns (n - 1) / n: the part of a buffer that belongs to other ranks.

    >>> others(Collective.idle("all-gather", "ring", PlacedGroup.first(4)))
    Fraction(3, 4)
    """
    return Fraction(collective.group.size - 1, collective.group.size)
