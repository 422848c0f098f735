"""What a trial found: whether results are torch's own, and how long both took."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RankOutcome:
    """Says what one rank found in one trial."""

    rank: int
    is_same: bool
    """Whether whole numbers equal those of torch's own collective, bit for bit."""
    apart: float
    """The largest difference of others, as a part of the sum of what was added without signs."""
    most_apart: float
    """How far the order of summation may set them apart."""
    moves_ns: int
    """The quickest run of the steps."""
    own_ns: int
    """The quickest run of torch's own collective."""

    @property
    def is_right(self) -> bool:
        """Whether the rank has what torch's own collective gives it."""
        return self.is_same and self.apart <= self.most_apart


@dataclass(frozen=True)
class TrialOutcome:
    """Says what the ranks of a trial found, in the order of the settings."""

    number: int
    backend: str
    elements: int
    ranks: tuple[RankOutcome, ...]

    @property
    def most_apart(self) -> float:
        """How far the order of summation may set results apart."""
        return max(each.most_apart for each in self.ranks)

    @property
    def wrong(self) -> tuple[int, ...]:
        """Ranks whose results are not torch's own."""
        return tuple(each.rank for each in self.ranks if not each.is_right)

    @property
    def apart(self) -> float:
        """The largest difference of any rank."""
        return max(each.apart for each in self.ranks)

    @property
    def moves_ns(self) -> int:
        """Nanoseconds of the steps on the slowest rank."""
        return max(each.moves_ns for each in self.ranks)

    @property
    def own_ns(self) -> int:
        """Nanoseconds of torch's own collective on the slowest rank."""
        return max(each.own_ns for each in self.ranks)


@dataclass(frozen=True)
class TrialReport:
    """Holds the outcomes of all trials."""

    outcomes: tuple[TrialOutcome, ...]
