"""A Mesh: a named n-D array of ranks, from which every axis group follows.

Axes are listed slowest first, as numpy, JAX and DeviceMesh do, so a rank is the
mixed-radix number of its coordinates. With sizes s0, s1, s2 of axes a0, a1, a2:

    rank = offset + (i0 * s1 + i1) * s2 + i2

         tp 0   1                           groups("tp")   [0 1] [2 3] [4 5] [6 7]
    dp 0 [[0    1]       pp = 0             groups("dp")   [0 2] [1 3] [4 6] [5 7]
       1  [2    3]]                         groups("pp")   [0 4] [1 5] [2 6] [3 7]
    dp 0 [[4    5]       pp = 1             groups("dp", "tp")  [0 1 2 3] [4 5 6 7]
       1  [6    7]]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from serried.errors import InputError, listed

Ranks = NDArray[np.int32]


@dataclass(frozen=True)
class Mesh:
    """Arranges ``prod(sizes)`` consecutive ranks, from ``offset`` on, along named axes.

    ``sizes`` maps an axis name to its size, slowest axis first.

    >>> mesh = Mesh({"pp": 2, "dp": 2, "tp": 2})
    >>> mesh.groups("tp").tolist()
    [[0, 1], [2, 3], [4, 5], [6, 7]]
    >>> mesh.coordinates(6)
    {'pp': 1, 'dp': 1, 'tp': 0}
    >>> mesh.rank(pp=1, dp=1, tp=0)
    6

    Raises InputError when a size is below one.
    """

    sizes: Mapping[str, int]
    offset: int = 0

    def __post_init__(self) -> None:
        for axis, size in self.sizes.items():
            if size < 1:
                raise InputError("{axis}={size}; a size is at least 1", axis=axis, size=size)

    def __hash__(self) -> int:
        return hash((tuple(self.sizes.items()), self.offset))

    @property
    def axes(self) -> tuple[str, ...]:
        """Axis names, slowest first."""
        return tuple(self.sizes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Axis sizes, slowest first."""
        return tuple(self.sizes.values())

    @property
    def num_ranks(self) -> int:
        """How many ranks the mesh holds."""
        return math.prod(self.shape)

    @cached_property
    def ranks(self) -> Ranks:
        """All ranks as an array of shape ``shape``."""
        return np.arange(self.offset, self.offset + self.num_ranks, dtype=np.int32).reshape(
            self.shape
        )

    def groups(self, *keep: str) -> Ranks:
        """Returns the groups along the axes ``keep``: shape (groups, ranks in a group).

        It moves the kept axes last and reshapes. Groups and members both run with the
        fastest axis first, whatever the order of ``keep``, so members ascend.

        >>> Mesh({"pp": 2, "dp": 2, "tp": 2}).groups("tp", "pp").tolist()
        [[0, 1, 4, 5], [2, 3, 6, 7]]
        """
        self._require(keep)
        dropped = [i for i, axis in enumerate(self.axes) if axis not in keep]
        kept = [i for i, axis in enumerate(self.axes) if axis in keep]
        size = math.prod(self.shape[i] for i in kept)
        return self.ranks.transpose(*dropped, *kept).reshape(-1, size)

    def coordinates(self, rank: int) -> dict[str, int]:
        """Returns the coordinate of ``rank`` on each axis. Raises InputError outside the mesh."""
        last = self.offset + self.num_ranks - 1
        if not self.offset <= rank <= last:
            raise InputError(
                "rank {rank} is outside the world; ranks run from {first} to {last}",
                rank=rank,
                first=self.offset,
                last=last,
            )
        place = np.unravel_index(rank - self.offset, self.shape)
        return dict(zip(self.axes, map(int, place), strict=True))

    def rank(self, **coordinates: int) -> int:
        """Returns the rank at ``coordinates``; axes left out count as 0."""
        self._require(tuple(coordinates))
        place = tuple(coordinates.get(axis, 0) for axis in self.axes)
        return int(self.ranks[place])

    def along(self, axis: str) -> Ranks:
        """Returns each rank's coordinate on ``axis``: shape (num_ranks,).

        >>> Mesh({"pp": 2, "tp": 2}).along("pp").tolist()
        [0, 0, 1, 1]
        """
        self._require((axis,))
        position = self.axes.index(axis)
        slower = math.prod(self.shape[:position])
        faster = math.prod(self.shape[position + 1 :])
        steps = np.arange(self.shape[position], dtype=np.int32)
        return np.tile(np.repeat(steps, faster), slower)

    def _require(self, axes: tuple[str, ...]) -> None:
        for axis in axes:
            if axis not in self.sizes:
                raise InputError(
                    "this mesh has no axis '{axis}'; its axes are {axes}",
                    axis=axis,
                    axes=listed(self.axes),
                )
