"""Kinds of groups that have no name: by how many ranks they hold, and how far these are apart.

    number  ranks    kind
    1       0 1      2 ranks, 1 apart
    2       2 3      2 ranks, 1 apart         stands for what rank 0 does in group 1
    3       0 1      2 ranks, 1 apart #2      the second such of ranks 0 and 1

>>> shapes = Shapes()
>>> [shapes.kind(ranks) for ranks in ((0, 1), (2, 3), (0, 2), (0, 1))]
['2 ranks, 1 apart', '2 ranks, 1 apart', '2 ranks, 2 apart', '2 ranks, 1 apart #2']
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

UNNAMED = frozenset({"", "undefined"})
"""What torch calls groups to which nobody gave a name."""


class Shapes:
    """Tells the kinds of groups, which are asked for in the order in which the job made them."""

    def __init__(self) -> None:
        self._alike: Counter[tuple[int, tuple[int, int]]] = Counter()

    def kind(self, ranks: tuple[int, ...]) -> str:
        """Returns the kind of the next group, by its shape and how many such its ranks are in."""
        apart = {b - a for a, b in pairwise(ranks)}
        shape = len(ranks), apart.pop() if len(apart) == 1 else 0
        nth = max((self._alike[rank, shape] for rank in ranks), default=0)
        for rank in ranks:
            self._alike[rank, shape] = nth + 1
        return f"{shape[0]} ranks, {shape[1]} apart" + (f" #{nth + 1}" if nth else "")
