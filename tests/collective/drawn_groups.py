"""Groups for tests of collectives: every number of ranks, and nodes of drawn sizes."""

from __future__ import annotations

from hypothesis import strategies as st

from serried.collective.placed_group import PlacedGroup

MOST_RANKS = 64


@st.composite
def drawn_groups(draw: st.DrawFn) -> PlacedGroup:
    """Draws up to 64 ranks on nodes of drawn sizes, a node's ranks not always together."""
    nodes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=8))
    places = [node for node, size in enumerate(nodes) for _ in range(size)][:MOST_RANKS]
    if draw(st.booleans()):
        places = draw(st.permutations(places))
    return PlacedGroup(tuple(range(len(places))), tuple(places))
