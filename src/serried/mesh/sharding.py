"""Sharding: over which group kind each part of a training's state is cut, and over which copied.

                 rank 0   rank 1   rank 2   rank 3     4 ranks that have the same weights
    stage 0  P   ████     ████     ████     ████       nothing is cut: four copies
             G   ████     ████     ████     ████
             O   ████     ████     ████     ████
    stage 1  O   █···     ·█··     ··█·     ···█       the optimizer's state is cut
    stage 2  G   █···     ·█··     ··█·     ···█       gradients too
    stage 3  P   █···     ·█··     ··█·     ···█       parameters too
    hybrid   P   ██··     ··██     ██··     ··██       cut over 2 ranks, copied over 2

P parameters, G gradients, O optimizer state (ZeRO, arXiv 1910.02054, section 5). Rules of the
frameworks make these values; ``plan`` turns them into bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from serried.finding import Sentence

STATES = ("parameters", "gradients", "optimizer")
"""What a rank holds of the weights that it trains, in the order that pictures show it."""

Weights = Literal["dense", "expert"]


@dataclass(frozen=True)
class Cut:
    """Says how a copy of something lies: over ``ranks`` ranks, those of a group of kind ``over``.

    Several kinds cut one after the other; no kind holds it whole, on every rank.

    >>> Cut(("dp_cp",), 64).share, Cut().share
    (0.015625, 1.0)
    """

    over: tuple[str, ...] = ()
    ranks: int = 1

    @property
    def share(self) -> float:
        """The part of it that one rank holds, padding left out."""
        return 1 / self.ranks

    @property
    def is_whole(self) -> bool:
        """Whether every rank holds all of it."""
        return self.ranks == 1


WHOLE = Cut()
"""Nothing is cut: every rank holds all of it."""


@dataclass(frozen=True)
class StateCuts:
    """Holds how the state of some weights is cut over ``data``, the ranks that train the same ones.

    >>> zero1 = StateCuts("dense", Cut(("dp",), 8), optimizer=Cut(("dp",), 8))
    >>> zero1.cut_states, zero1.copies_of("optimizer"), zero1.copies_of("parameters")
    (('optimizer',), 1, 8)
    """

    weights: Weights
    """Which weights: those of every layer, or those of experts alone."""
    data: Cut
    """All ranks that train the same weights: their gradients are summed over these."""
    parameters: Cut = WHOLE
    gradients: Cut = WHOLE
    optimizer: Cut = WHOLE
    across: str = ""
    """The group kind that joins the same cut of each copy; "" where the framework has none."""
    near: Cut = WHOLE
    """A further copy of the parameters, cut over near ranks, that backward gathers (ZeRO++ hpZ)."""
    is_kept: bool = False
    """Whether cut parameters, once gathered for a forward, stay whole until their backward."""

    def cut(self, state: str) -> Cut:
        """Returns the cut of one of ``STATES``."""
        cuts: Mapping[str, Cut] = {
            "parameters": self.parameters,
            "gradients": self.gradients,
            "optimizer": self.optimizer,
        }
        return cuts[state]

    @property
    def cut_states(self) -> tuple[str, ...]:
        """The states that are cut over more than one rank."""
        return tuple(state for state in STATES if not self.cut(state).is_whole)

    def copies_of(self, state: str) -> int:
        """Returns how many copies of a state there are among the ranks that train it."""
        return self.data.ranks // self.cut(state).ranks


@dataclass(frozen=True)
class Sharding:
    """Holds what ranks share of parameters, gradients and optimizer state under one ZeRO stage.

    >>> nothing = Sharding(0, StateCuts("dense", Cut(("dp",), 8)), "stage: 0", "deepspeed 0.19.8")
    >>> [cuts.cut_states for cuts in nothing.each]
    [()]
    """

    stage: int
    """The stage that it comes nearest to, 0 to 3."""
    dense: StateCuts
    """How all weights are cut, or those outside experts where ``expert`` says of these."""
    spelled: str
    """What the framework's own configuration calls it."""
    source: str
    """Package, version and file that the rule was read from."""
    expert: StateCuts | None = None
    """How experts' weights are cut, where there are any of their own."""
    levels: tuple[str, ...] = ()
    """Group kinds that a gather of parameters goes through one after the other (MiCS)."""
    padding: Sentence | None = None
    """What the framework adds so that every rank's part is as large as the others'."""
    notes: tuple[Sentence, ...] = ()
    """What else is to be known of the stage in this framework."""

    @property
    def each(self) -> tuple[StateCuts, ...]:
        """The cuts of dense weights, and those of experts where there are any."""
        return (self.dense,) if self.expert is None else (self.dense, self.expert)
