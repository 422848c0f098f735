"""CheckSettings: what a check of real groups is asked for, free of torch."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from serried.errors import InputError, listed
from serried.mesh import GroupKind, Groups, Layout, Mesh, RankWindows
from serried.plan.busbw import OPERATIONS

WINDOWS = "nettest"
"""The kind of fixed windows of consecutive ranks; InternLM makes it itself."""

UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
UNITS |= {"kb": 1000, "mb": 1000**2, "gb": 1000**3}


@dataclass(frozen=True)
class CheckSettings:
    """Describes one check: the layout, what is timed, and for how long ranks wait.

    Raises InputError for values that cannot be, with values that can.
    """

    layout: Layout
    kinds: tuple[str, ...] = ()
    """Kinds to time; all when none is named. Members are checked of every kind."""
    operations: tuple[str, ...] = OPERATIONS
    sizes_bytes: tuple[int, ...] = (4 << 10, 1 << 20)
    iterations: int = 4
    """Times that an operation runs in a round; the fastest counts against slow links."""
    rounds: int = 4
    """A link is slow only when it is in every round."""
    window_size: int = 32
    """Ranks in a network-test window; only where the layout has no nettest groups itself."""
    ranks_per_node: int | None = None
    """Pretends nodes of so many ranks; None asks where ranks really are."""
    timeout_s: float = 30.0
    device: Literal["auto", "cpu", "cuda"] = "auto"

    def __post_init__(self) -> None:
        for name in ("iterations", "rounds", "window_size"):
            if getattr(self, name) < 1:
                raise InputError(
                    "{name}={value}; it is at least 1", name=name, value=getattr(self, name)
                )
        if not 0 < self.timeout_s < math.inf:
            raise InputError(
                "{name}={value}; it is above zero", name="timeout", value=self.timeout_s
            )
        for name in self.operations:
            if name not in OPERATIONS:
                raise InputError(
                    "operation '{name}' is not timed; those that are: {known}",
                    name=name,
                    known=listed(OPERATIONS),
                )
        for name in self.kinds:
            self.whole.kind(name)

    @property
    def world_size(self) -> int:
        """How many ranks the layout has."""
        return self.layout.world_size

    @cached_property
    def whole(self) -> Layout:
        """The layout, with network-test windows where its framework makes none."""
        layout = self.layout
        if any(kind.name == WINDOWS for kind in layout.kinds) or layout.world_size == 1:
            return layout
        rule = RankWindows(self.window_size)
        windows = GroupKind(
            WINDOWS, ("rank",), "windows", rule, about="windows of the network test"
        )
        # Groups that are made are kept in _made: the copy must not put its windows among the
        # other's.
        meshes = {**layout.meshes, "windows": Mesh({"rank": layout.world_size})}
        return replace(layout, meshes=meshes, kinds=(*layout.kinds, windows), _made={})

    @cached_property
    def same_as(self) -> dict[str, str]:
        """Kinds whose groups another kind has too, each with the first that has them."""
        first: dict[frozenset[tuple[int, ...]], str] = {}
        same = {}
        for kind in self.whole.kinds:
            groups = frozenset(tuple(sorted(r)) for r in self.whole.groups(kind.name).lists())
            if first.setdefault(groups, kind.name) != kind.name:
                same[kind.name] = first[groups]
        return same

    @property
    def timed(self) -> tuple[str, ...]:
        """Kinds that are timed, of those asked for: each set of groups once, no lone ranks."""
        # Of kinds asked for that have the same groups, the one named last is timed for all.
        named = {self.same_as.get(name, name): name for name in self.kinds}
        names = list(named.values()) or [
            kind.name for kind in self.whole.kinds if kind.name not in self.same_as
        ]
        return tuple(name for name in names if self.whole.groups(name).sizes.max(initial=0) > 1)


def waves(groups: Groups) -> list[list[int]]:
    """Returns the numbers of groups that can run at once: those of a wave share no rank.

    >>> waves(Groups.of([[0, 1], [2, 3], [1, 2]]))
    [[0, 1], [2]]
    """
    made: list[tuple[set[int], list[int]]] = []
    for number, members in enumerate(groups.lists()):
        ranks = set(members)
        # Groups that share no rank make one wave, so this is quadratic for overlapping kinds only.
        for taken, numbers in made:
            if not taken & ranks:
                taken |= ranks
                numbers.append(number)
                break
        else:
            made.append((ranks, [number]))
    return [numbers for _, numbers in made]


def sizes_of(text: str) -> tuple[int, ...]:
    """Returns the bytes of sizes such as ``4KiB,1MiB``, ascending; raises InputError.

    >>> sizes_of("1MiB,4KiB,512")
    (512, 4096, 1048576)
    """
    sizes = []
    for word in text.replace(" ", "").split(","):
        match = re.fullmatch(r"(\d+)([a-z]*)", word.lower())
        if match is None or match[2] not in UNITS or not int(match[1]):
            raise InputError(
                "--sizes takes sizes such as 4KiB,1MiB,16MiB; it got '{word}'", word=word
            )
        sizes.append(int(match[1]) * UNITS[match[2]])
    return tuple(sorted(set(sizes)))
