"""Writes groups as JSON, some hundred thousand ranks at a time, without a Python number each.

Every rank has a row of bytes in a table, its digits and what parts it from the next; a group is
the rows of its members, its last one closed by a bracket, and the bytes that are zero left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from serried.mesh import Groups

if TYPE_CHECKING:
    from numpy.typing import NDArray

PART_RANKS = 1 << 16
"""About how many ranks are written at once; groups stay whole."""
Bytes: TypeAlias = "NDArray[np.uint8]"
NEXT, CLOSE, END = (np.frombuffer(text, np.uint8) for text in (b", \0\0", b"], [", b"]]\0\0"))
"""What stands after a member, after the last of a group, and after the last of all."""


def parts(groups: Groups) -> Iterator[str]:
    """Yields ``json.dumps(groups.lists())`` in parts.

    >>> "".join(parts(Groups.of([[0, 1], [2, 130]])))
    '[[0, 1], [2, 130]]'
    """
    bounds, count = groups.bounds, len(groups)
    if not count or not groups.sizes.all():
        yield json.dumps(groups.lists())
        return
    # Every rank's row ends in ", "; the last of a group is overwritten by "], [" and the very last
    # by "]]". Rows are of one width, and the zero bytes that fill them up are dropped in the end.
    words = _words(int(groups.members.max()) + 1)
    yield "[["
    start = 0
    while start < count:
        beyond = int(np.searchsorted(bounds, bounds[start] + PART_RANKS))
        stop = min(max(start + 1, beyond), count)
        first = bounds[start]
        rows = words[groups.members[first : bounds[stop]]]
        rows[bounds[start + 1 : stop + 1] - first - 1, -len(CLOSE) :] = CLOSE
        if stop == count:
            rows[-1, -len(END) :] = END
        flat = rows.reshape(-1)
        yield flat[flat != 0].tobytes().decode("ascii")
        start = stop


@lru_cache(maxsize=1)
def _words(count: int) -> Bytes:
    """Returns a row of bytes for each rank below ``count``, zeros before the first digit."""
    ranks = np.arange(count, dtype=np.int32)
    digits = len(str(count - 1))
    words = np.zeros((count, digits + len(NEXT)), dtype=np.uint8)
    for place in range(digits):
        least = 10**place if place else 0
        words[least:, digits - 1 - place] = ranks[least:] // 10**place % 10 + ord("0")
    words[:, digits:] = NEXT
    return words
