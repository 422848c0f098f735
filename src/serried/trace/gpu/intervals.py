"""Unions of intervals: how long at least one operation ran, and how long two kinds ran at once.

a  ├────┤  ├──┤           union of a and b  ├──────┤├──┤   of a in b     ├─┤
b     ├────┤
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from serried.trace.gpu.activity import Operations, Whole


class Union(NamedTuple):
    """Holds intervals that neither touch nor overlap, by start."""

    start: Whole
    end: Whole

    @property
    def length(self) -> int:
        """How long they are together."""
        return int((self.end - self.start).sum())


def union_of(operations: Operations) -> Union:
    """Returns the moments in which at least one of ``operations`` ran."""
    return union(operations.start_ns, operations.end_ns)


def union(start: Whole, end: Whole) -> Union:
    """Returns the union of intervals given in any order.

    >>> union(np.array([5, 0, 8]), np.array([7, 6, 9]))._asdict()
    {'start': array([0, 8]), 'end': array([7, 9])}
    """
    if not len(start):
        return Union(start, end)
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    # One begins where all before it have ended, and the one before ends there.
    first = np.concatenate(([True], start[1:] > end[:-1]))
    last = np.concatenate((first[1:], [True]))
    return Union(start[first], end[last])


def common_length(one: Union, other: Union) -> int:
    """Returns how long two unions share their moments.

    >>> a, b = union(np.array([0, 10]), np.array([4, 12])), union(np.array([2]), np.array([11]))
    >>> common_length(a, b)
    3
    """
    return one.length + other.length - joined(one, other).length


def joined(*unions: Union) -> Union:
    """Returns the union of unions."""
    return union(
        np.concatenate([each.start for each in unions]),
        np.concatenate([each.end for each in unions]),
    )
