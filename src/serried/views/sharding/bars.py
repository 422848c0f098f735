"""Bars of what each rank holds: the whole outlined, the part of one rank filled at its place.

    rank 0            rank 1            … 60 more …    rank 63
    P ▁  G ▁  O ▁     P ▁  G ▁  O ▂                    P ▁  G ▁  O ▇      where its part begins

Of many ranks the first and the last are drawn, and how many lie between.
"""

from __future__ import annotations

from dataclasses import dataclass

from serried.mesh import Layout
from serried.mesh.sharding import STATES, Cut, StateCuts
from serried.plan.model_states import ModelStates
from serried.plan.precision import Precision

FIRST, LAST = 6, 2
"""Ranks drawn at each end where there are more than both together."""


@dataclass(frozen=True)
class StateBar:
    """Draws one state of one rank: ``start`` and ``share`` are parts of the whole."""

    state: str
    start: float
    share: float
    weight: float
    """How tall the whole is beside the tallest of the picture, 0 to 1."""


@dataclass(frozen=True)
class RankBars:
    """Draws one rank; of ranks left out ``count`` says how many, and there are no bars."""

    rank: int
    bars: tuple[StateBar, ...] = ()
    count: int = 0


@dataclass(frozen=True)
class BarsRow:
    """Draws the ranks that train the same weights, and what the bars of each stand for."""

    weights: str
    ranks: tuple[RankBars, ...]


def bars_rows(layout: Layout, precision: Precision, states: ModelStates | None) -> list[BarsRow]:
    """Returns a row for dense weights, and one for experts where they are cut otherwise.

    Without a number of parameters bars are as tall as the bytes of one parameter.
    """
    sharding = layout.sharding
    assert sharding is not None
    rows = []
    for number, cuts in enumerate(sharding.each):
        count = states.each[number].num_parameters if states else 1
        if not count:  # no parameters of the model are in experts
            continue
        tallest = max(each.num_parameters for each in states.each) if states else 1
        members = data_ranks(layout, cuts)
        drawn = [_bars(layout, cuts, rank, precision, count / tallest) for rank in _ends(members)]
        if len(members) > len(drawn):
            drawn.insert(FIRST, RankBars(-1, count=len(members) - len(drawn)))
        rows.append(BarsRow(cuts.weights, tuple(drawn)))
    return rows


def data_ranks(layout: Layout, cuts: StateCuts) -> list[int]:
    """Returns the ranks that train the same weights as rank 0, ascending."""
    found = {0}
    for kind in cuts.data.over:
        found |= {member for rank in found for member in _group(layout, kind, rank)}
    return sorted(found) if cuts.data.over else list(range(layout.world_size))


def place_in(layout: Layout, cut: Cut, rank: int) -> int:
    """Returns which part of a cut a rank holds, counted from 0 in the order of its groups.

    >>> from serried.frameworks import Sizes, layout
    >>> place_in(layout("megatron", Sizes(16, tp=2)), Cut(("dp_cp",), 8), 6)
    3
    """
    place = 0
    for kind in cut.over if cut.ranks > 1 else ():
        members = sorted(_group(layout, kind, rank))
        place = place * len(members) + members.index(rank)
    return place


def _group(layout: Layout, kind: str, rank: int) -> list[int]:
    found = layout.kind(kind).of(rank, layout.meshes)
    return list(found[0]) if found else [rank]


def _ends(members: list[int]) -> list[int]:
    return members if len(members) <= FIRST + LAST else members[:FIRST] + members[-LAST:]


def _bars(
    layout: Layout, cuts: StateCuts, rank: int, precision: Precision, weight: float
) -> RankBars:
    sizes = {
        "parameters": precision.parameter_bytes,
        "gradients": precision.gradient_bytes,
        "optimizer": precision.optimizer_bytes,
    }
    tallest = max(sizes.values())
    bars = []
    for state in STATES:
        cut = cuts.cut(state)
        start = place_in(layout, cut, rank) * cut.share
        bars.append(StateBar(state, start, cut.share, weight * sizes[state] / tallest))
    return RankBars(rank, tuple(bars))
