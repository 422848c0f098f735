"""Groups for tests of collectives: numbers of ranks, and nodes of drawn sizes."""

from __future__ import annotations

from hypothesis import strategies as st

from serried.collective.placed_group import PlacedGroup

MOST_RANKS = 64
FEW = (*range(1, 34), 47, 48, 63, 64)
"""Numbers of ranks of `make test`: all small ones, and some up to the most, prime and even."""
EVERY = range(1, MOST_RANKS + 1)
"""Numbers of ranks of `make soak`; what 64 ranks do takes eight times as long as what 32 do."""


@st.composite
def drawn_groups(draw: st.DrawFn) -> PlacedGroup:
    """Draws up to 64 ranks on nodes of drawn sizes, a node's ranks not always together."""
    nodes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=8))
    places = [node for node, size in enumerate(nodes) for _ in range(size)][:MOST_RANKS]
    if draw(st.booleans()):
        places = draw(st.permutations(places))
    return PlacedGroup(tuple(range(len(places))), tuple(places))
