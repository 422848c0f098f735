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
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from serried.errors import InputError, listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

Ranks: TypeAlias = "NDArray[np.int32]"


@dataclass(frozen=True)
class Mesh:
    """Arranges ``prod(sizes)`` consecutive ranks, from ``offset`` on, along named axes.

    ``sizes`` maps an axis name to its size, slowest axis first. ``explicit`` names the ranks
    in mesh order where they are not consecutive, as ``DeviceMesh(mesh=[[3, 1], …])`` does.

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
    explicit: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for axis, size in self.sizes.items():
            if size < 1:
                raise InputError("{axis}={size}; a size is at least 1", axis=axis, size=size)

    def __hash__(self) -> int:
        return hash((tuple(self.sizes.items()), self.offset, self.explicit))

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
        if self.explicit:
            return np.array(self.explicit, dtype=np.int32).reshape(self.shape)
        return np.arange(self.offset, self.offset + self.num_ranks, dtype=np.int32).reshape(
            self.shape
        )

    def holds_world(self, world_size: int) -> bool:
        """Tells whether the ranks of the mesh are those from 0 to ``world_size``, each once."""
        return self.offset == 0 and self.num_ranks == world_size and not self.explicit

    def __contains__(self, rank: int) -> bool:
        if self.explicit:
            return rank in self.explicit
        return self.offset <= rank < self.offset + self.num_ranks

    def groups(
        self,
        *keep: str,
        by: tuple[str, ...] = (),
        within: tuple[str, ...] = (),
        leading: int | None = None,
    ) -> Ranks:
        """Returns the groups along the axes ``keep``: shape (groups, ranks in a group).

        It moves the kept axes last and reshapes. Groups and members both run with the
        fastest axis first, whatever the order of ``keep``, so members ascend. ``by`` and
        ``within`` name dropped and kept axes, slowest first, where another order is used;
        ``leading`` is how many of the groups are wanted, all when None.

        >>> Mesh({"pp": 2, "dp": 2, "tp": 2}).groups("tp", "pp").tolist()
        [[0, 1, 4, 5], [2, 3, 6, 7]]
        >>> Mesh({"pp": 2, "dp": 2, "tp": 2}).groups("dp", by=("tp", "pp")).tolist()
        [[0, 2], [4, 6], [1, 3], [5, 7]]
        """
        dropped, kept = self._split(keep, by, within)
        size = math.prod(self.shape[i] for i in kept)
        view = self.ranks.transpose(*dropped, *kept)
        if leading is None:
            return view.reshape(-1, size)
        return view[self._corner(dropped, leading)].reshape(-1, size)[:leading]

    def _corner(self, dropped: list[int], count: int) -> tuple[slice, ...]:
        """Returns the part of the dropped axes that holds the first ``count`` groups."""
        # Groups run with the fastest axis first. While the faster axes hold enough groups, one
        # place of a slower axis will do; of the first axis where they do not, as many places as
        # it takes, and the faster axes whole.
        wanted = []
        for place, i in enumerate(dropped):
            faster = math.prod(self.shape[j] for j in dropped[place + 1 :])
            wanted.append(slice(min(self.shape[i], -(-count // faster))))
            if count > faster:
                break
        return tuple(wanted)

    def row(self, rank: int, *keep: str, by: tuple[str, ...] = ()) -> int:
        """Returns which row of ``groups(*keep, by=by)`` holds ``rank``, without making them."""
        dropped, _ = self._split(keep, by, ())
        place = tuple(self.coordinates(rank).values())
        number = 0
        for i in dropped:
            number = number * self.shape[i] + place[i]
        return number

    def member(
        self,
        number: int,
        place: int,
        *keep: str,
        by: tuple[str, ...] = (),
        within: tuple[str, ...] = (),
    ) -> int:
        """Returns the member at ``place`` of row ``number``, without making the row.

        >>> Mesh({"pp": 2, "dp": 2, "tp": 2}).member(1, 1, "dp")
        3
        """
        found = 0
        # The row's number gives the places on the dropped axes and the member's place those on the
        # kept ones, the fastest axis first.
        for axes, left in zip(self._split(keep, by, within), (number, place), strict=True):
            for i in reversed(axes):
                left, at = divmod(left, self.shape[i])
                found += at * math.prod(self.shape[i + 1 :])
        return self.explicit[found] if self.explicit else self.offset + found

    def rows(
        self,
        numbers: range,
        *keep: str,
        by: tuple[str, ...] = (),
        within: tuple[str, ...] = (),
    ) -> Ranks:
        """Returns these rows of ``groups(*keep, by=by, within=within)``, without the others.

        >>> Mesh({"pp": 2, "dp": 2, "tp": 2}).rows(range(1, 3), "dp").tolist()
        [[1, 3], [4, 6]]
        """
        # A member's rank is a sum over axes of coordinate x stride: the dropped axes give each row
        # its first member, and each kept axis then spreads all there are by its own steps.
        dropped, kept = self._split(keep, by, within)
        strides = [math.prod(self.shape[i + 1 :]) for i in range(len(self.shape))]
        left = np.arange(numbers.start, numbers.stop, numbers.step, dtype=np.int32)
        places = np.zeros((len(left), 1), dtype=np.int32)
        for i in reversed(dropped):
            left, at = np.divmod(left, self.shape[i])
            places += at[:, None] * strides[i]
        for i in kept:
            steps = np.arange(self.shape[i], dtype=np.int32) * strides[i]
            width = places.shape[1] * self.shape[i]
            places = (places[:, :, None] + steps).reshape(len(places), width)
        if self.explicit:
            return np.array(self.explicit, dtype=np.int32)[places]
        return places + self.offset if self.offset else places

    def _split(
        self, keep: tuple[str, ...], by: tuple[str, ...], within: tuple[str, ...]
    ) -> tuple[list[int], list[int]]:
        """Returns the positions of the dropped and of the kept axes, slowest first."""
        self._require(keep)
        dropped = by or tuple(axis for axis in self.axes if axis not in keep)
        kept = within or tuple(axis for axis in self.axes if axis in keep)
        return [self.axes.index(axis) for axis in dropped], [self.axes.index(a) for a in kept]

    def coordinates(self, rank: int) -> dict[str, int]:
        """Returns the coordinate of ``rank`` on each axis. Raises InputError outside the mesh."""
        if rank not in self:
            raise InputError(
                "rank {rank} is outside the world; ranks run from {first} to {last}",
                rank=rank,
                first=min(self.explicit, default=self.offset),
                last=max(self.explicit, default=self.offset + self.num_ranks - 1),
            )
        number = self.explicit.index(rank) if self.explicit else rank - self.offset
        place: dict[str, int] = {}
        # Axes are listed slowest first, so the fastest is taken off first: rank 5 of dp=2, tp=4 has
        # tp=1, then dp=1.
        for axis in reversed(self.axes):
            number, place[axis] = divmod(number, self.sizes[axis])
        return {axis: place[axis] for axis in self.axes}

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
