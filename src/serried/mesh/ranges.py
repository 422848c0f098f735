"""The rules that count ranks on from a group's first, past its end where the sizes say so.

axis groups             [0 1]  [1 2]
RangesFromFirst(2, 3)   [0 1 2] [3 4 5]  [1 2 3] [4 5 6]              counted on from the first
LastAssigned(…)         those of them that some rank still has at the end
"""

from __future__ import annotations

from typing import Final

import numpy as np

from serried.mesh.groups import Groups
from serried.mesh.mesh import Ranks
from serried.mesh.rule import Shape, TableRule


class RangesFromFirst(TableRule):
    """Makes ``count`` ranges of ``size`` consecutive ranks, from each group's first rank on.

    The ranges may run past the group's end: InternEvo cuts tensor groups so, whatever their size.

    >>> RangesFromFirst(2, 2)(np.array([[0, 1], [2, 3]])).lists()
    [[0, 1], [2, 3], [2, 3], [4, 5]]
    """

    def __init__(self, count: int, size: int) -> None:
        self.count: Final = count
        self.size: Final = size

    def __call__(self, table: Ranks, /) -> Groups:
        steps = np.arange(self.count * self.size, dtype=np.int32)
        return Groups.even((table[:, :1] + steps).reshape(-1, self.size))

    def reach(self, shape: Shape) -> int:
        """Returns how many rows of consecutive ranks a row's ranges reach beyond its own."""
        return (self.count * self.size - 1) // shape[1]


class LastAssigned(TableRule):
    """Makes ranges of ranks and keeps those that some rank still has once all are made.

    Each rank has one variable for its group. Where ranges overlap, the one that is made later is
    assigned to it, and an earlier one may be lost to every rank:

        made of [0 1] [2 3]      [0 1]  [2 3]     [2 3]  [4 5]
        rank 0 1 2 3 then has     0 1    lost      2 3    beyond the ranks, so no rank has it

    The axis groups are runs of ranks that stand side by side, as tensor groups are.
    """

    def __init__(self, ranges: RangesFromFirst) -> None:
        self.ranges: Final = ranges

    def __call__(self, table: Ranks, /) -> Groups:
        made = self.ranges(table).table
        ranks = np.sort(table.reshape(-1))
        first = int(ranks[0])
        owner = np.full(int(max(made.max(), ranks[-1])) + 1 - first, -1, dtype=np.int32)
        numbers = np.repeat(np.arange(len(made), dtype=np.int32), made.shape[1])
        # Where a rank stands several times numpy keeps the last of the values assigned to it.
        owner[made.reshape(-1) - first] = numbers
        kept, places = np.unique(owner[ranks - first], return_index=True)
        in_rank_order = kept[np.argsort(places)]
        return Groups.even(made[in_rank_order[in_rank_order >= 0]])

    def rows_needed(self, row: int, shape: Shape, /) -> tuple[range, ...] | None:
        """Returns the rows whose ranges reach here, and those that may have overwritten them."""
        # Such a range begins within ``reach`` rows before this one, and ends within as many after.
        reach = self.ranges.reach(shape) + 1
        return (range(max(0, row - 2 * reach), min(shape[0], row + reach + 1)),)
