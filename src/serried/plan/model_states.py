"""Model states: what parameters, gradients and optimizer take on one rank under a sharding.

    P parameters of the model, N = P / parts those of one rank's part of it, where
    parts = ranks of the world / ranks that train the same weights: tp pp, of experts etp ep pp

    parameters   p ceil(N / a)     a, b, c ranks share one copy of each state; p, g, o its bytes
    gradients    g ceil(N / b)     by the recipe of precision
    optimizer    o ceil(N / c)
    near         e ceil(N / h)     ZeRO++ hpZ: one more copy of the parameters as computed, over h
    gathered     e N               while a step runs, where gathered parameters stay whole

Layers are taken as cut evenly, norms as cut like the rest, and what frameworks pad is left out:
a prediction of one stage of a real model is ``reference.memory``'s. ZeRO's own figures are these
with N = P and fp16-adam: 2N + 2N + 12N/d at stage 1, 2N + 14N/d at stage 2, 16N/d at stage 3
(arXiv 1910.02054, section 5 and Table 1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any

from serried.errors import InputError
from serried.limits import PARAMETERS
from serried.mesh import Layout
from serried.mesh.sharding import Sharding, StateCuts
from serried.plan.precision import DEFAULT, Precision, recipe

_UNITS = {"": 0, "K": 3, "M": 6, "G": 9, "B": 9, "T": 12}
_COUNT = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,12}))?(?:[eE]\+?([0-9]{1,2}))?([KMGBTkmgbt]?)")


def read_parameters(text: str) -> int:
    """Returns the number of parameters that a text says; raises InputError for what is none.

    >>> read_parameters("7.5B"), read_parameters("1e9"), read_parameters("350M")
    (7500000000, 1000000000, 350000000)
    """
    found = _COUNT.fullmatch(text.strip().replace(",", "").replace("_", ""))
    if found:
        whole, part, exponent, unit = found.groups("")
        power = int(exponent or 0) + _UNITS[unit.upper()]
        count = int(whole + part) * int(10**power) // int(10 ** len(part))
        if 0 < count <= PARAMETERS.most:
            return count
    raise InputError(
        "'{text}' is not a number of parameters; one reads 7.5B, 350M or 1e9, from 1 to {most}",
        text=text[:40],
        most=PARAMETERS.most,
    )


@dataclass(frozen=True)
class HeldStates:
    """Holds the bytes that one rank has of each state of some weights."""

    parameters: int = 0
    gradients: int = 0
    optimizer: int = 0
    near: int = 0
    """One more copy of the parameters, cut over near ranks (hpZ)."""
    gathered: int = 0
    """Parameters gathered whole that stay from forward to backward; none between steps."""

    @property
    def total(self) -> int:
        """All of it, at its most."""
        return sum(getattr(self, each.name) for each in fields(self))

    def __add__(self, other: HeldStates) -> HeldStates:
        return HeldStates(
            *(getattr(self, each.name) + getattr(other, each.name) for each in fields(self))
        )


@dataclass(frozen=True)
class WeightStates:
    """Holds what one rank has of some weights, and what it would have if nothing were shared."""

    cuts: StateCuts
    num_parameters: int
    """Parameters of the rank's part of the model: those that its data ranks train too."""
    held: HeldStates
    whole: HeldStates


@dataclass(frozen=True)
class ModelStates:
    """Holds what one rank has of all weights under a sharding and a recipe of precision.

    >>> from serried.frameworks import Sizes, layout
    >>> states = model_states(layout("megatron", Sizes(64, zero=3)), 7_500_000_000)
    >>> states.held.total, states.whole.total
    (1875000000, 120000000000)
    """

    sharding: Sharding
    precision: Precision
    num_parameters: int
    """Parameters of the whole model, those of experts among them."""
    each: tuple[WeightStates, ...]
    """Dense weights, then experts where they are cut otherwise."""

    @property
    def held(self) -> HeldStates:
        """What one rank has of each state."""
        return sum((each.held for each in self.each), HeldStates())

    @property
    def whole(self) -> HeldStates:
        """What it would have of each state if nothing were shared: stage 0."""
        return sum((each.whole for each in self.each), HeldStates())


def model_states(
    layout: Layout,
    parameters: int,
    precision: Precision | str = DEFAULT,
    *,
    expert_parameters: int = 0,
) -> ModelStates:
    """Returns what one rank holds of a model of so many parameters, some of them in experts.

    Raises InputError where the framework leaves sharding to the user's program, or where experts
    are said to have more parameters than the model.
    """
    if layout.sharding is None:
        raise InputError(
            "{framework} lays out ranks alone, and what they share is up to the program; ask a "
            "framework that shards, such as megatron, deepspeed or fsdp",
            framework=layout.framework,
        )
    if expert_parameters >= parameters:
        raise InputError(
            "experts have {experts} of {all} parameters; give less of them than of the model",
            experts=expert_parameters,
            all=parameters,
        )
    kept = recipe(precision) if isinstance(precision, str) else precision
    counts = [parameters - expert_parameters, expert_parameters]
    cuts = layout.sharding.each
    if len(cuts) == 1:  # experts lie as all other weights do
        counts = [parameters]
    several = zip(cuts, counts, strict=True)
    states = tuple(_weights(each, layout.world_size, count, kept) for each, count in several)
    return ModelStates(layout.sharding, kept, parameters, states)


def _weights(cuts: StateCuts, world_size: int, count: int, kept: Precision) -> WeightStates:
    own = -(-count * cuts.data.ranks // world_size)
    held = HeldStates(
        parameters=kept.parameter_bytes * largest_share(own, cuts.parameters.ranks),
        gradients=kept.gradient_bytes * largest_share(own, cuts.gradients.ranks),
        optimizer=kept.optimizer_bytes * largest_share(own, cuts.optimizer.ranks),
        near=0 if cuts.near.is_whole else kept.computed_bytes * largest_share(own, cuts.near.ranks),
        gathered=kept.computed_bytes * own if cuts.is_kept else 0,
    )
    whole = HeldStates(
        kept.parameter_bytes * own, kept.gradient_bytes * own, kept.optimizer_bytes * own
    )
    return WeightStates(cuts, own, held, whole)


def largest_share(count: Any, ranks: Any) -> Any:
    """Returns the largest part of ``count`` numbers cut over ``ranks`` ranks, of arrays as well."""
    return -(-count // ranks)
