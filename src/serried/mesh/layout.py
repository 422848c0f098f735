"""A Layout: every process group of one job, over all ranks, in its framework's own names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from serried.errors import InputError, listed
from serried.finding import Finding
from serried.mesh.groups import Groups
from serried.mesh.kind import GroupKind
from serried.mesh.mesh import Mesh
from serried.shown import Displayed

if TYPE_CHECKING:
    from serried.mesh.sharding import Sharding


class Conventions(NamedTuple):
    """Says what a framework does beside making groups: with equal ones, and with layers."""

    shares_equal: bool = False
    """Keeps one communicator for equal lists of ranks."""
    left_over: str = "first"
    """Which pipeline positions hold the layers left over: first, middle or last."""
    divides_layers: bool = False
    """Refuses layers that the stages do not divide."""


PLAIN = Conventions()
"""Those of most frameworks."""


@dataclass(frozen=True)
class Layout(Displayed):
    """Holds the meshes and the group kinds that a framework makes from some sizes.

    ``sizes`` uses the neutral short names (``tp pp cp dp ep …``), derived ones included;
    ``kinds`` stand in the framework's creation order; ``dims`` says which kind is *the*
    group of a dimension (``{"tp": "tensor"}`` for InternLM) and ``dp_with_cp`` which kind
    is the data group with context parallelism folded in, where there is one. ``findings``
    say where the framework itself makes groups that overlap, miss ranks or leave the world;
    ``conventions`` what else it does. ``settings`` are those it was asked for, under the
    framework's own names, with the ZeRO stage as ``zero``: no group depends on some, but what
    travels does.
    """

    framework: str
    version: str
    world_size: int
    sizes: Mapping[str, int]
    order: str
    meshes: Mapping[str, Mesh]
    kinds: tuple[GroupKind, ...]
    dims: Mapping[str, str]
    dp_with_cp: str | None = None
    findings: tuple[Finding, ...] = ()
    conventions: Conventions = PLAIN
    ranks_per_host: tuple[int, ...] = ()
    """How many ranks each host has, where the framework's own settings name the hosts."""
    settings: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    sharding_of: Callable[[Layout], Sharding | None] | None = field(
        default=None, repr=False, compare=False
    )
    """The framework's rule of what ranks share, which ``sharding`` asks."""
    _made: dict[str, Groups] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def sharding(self) -> Sharding | None:
        """What ranks share of parameters, gradients and optimizer state, by the ZeRO stage.

        None where the framework leaves that to a program of the user's.
        """
        return self.sharding_of(self) if self.sharding_of else None

    @property
    def mesh(self) -> Mesh:
        """The mesh that a rank's coordinates are read from: the first one."""
        return next(iter(self.meshes.values()))

    def kind(self, name: str) -> GroupKind:
        """Returns the kind called ``name``; raises InputError naming those there are."""
        if name in self._by_name:
            return self._by_name[name]
        raise InputError(
            "{framework} makes no group kind '{kind}' here; it makes {kinds}",
            framework=self.framework,
            kind=name,
            kinds=listed((kind.name for kind in self.kinds), limit=40),
        )

    @cached_property
    def _by_name(self) -> dict[str, GroupKind]:
        return {kind.name: kind for kind in self.kinds}

    def groups(self, name: str) -> Groups:
        """Returns all groups of the kind called ``name``, made once and kept."""
        if name not in self._made:
            kind = self.kind(name)
            self._made[name] = self.groups(kind.twin_of) if kind.twin_of else kind.over(self.meshes)
        return self._made[name]

    def is_partition(self, name: str) -> bool:
        """Tells whether a kind holds every rank once by its very form, without looking at groups.

        That is so for all groups along axes of a mesh that is the whole world.
        """
        kind = self.kind(name)
        mesh = self.meshes.get(kind.mesh)
        is_plain = type(kind) is GroupKind and kind.rule is None and mesh is not None
        return is_plain and mesh is not None and mesh.holds_world(self.world_size)

    def coordinates(self, rank: int) -> dict[str, int]:
        """Returns the coordinates of ``rank`` on the first mesh that holds it; none may.

        Raises InputError when ``rank`` is outside the world.
        """
        if not 0 <= rank < self.world_size:
            raise InputError(
                "rank {rank} is outside the world; ranks run from {first} to {last}",
                rank=rank,
                first=0,
                last=self.world_size - 1,
            )
        mesh = next((mesh for mesh in self.meshes.values() if rank in mesh), None)
        return mesh.coordinates(rank) if mesh else {}

    def kind_of(self, dim: str, *, with_cp: bool = False) -> str:
        """Returns the kind that carries a dimension: ``dp`` with or without ``cp`` folded in.

        Raises InputError for a dimension that this framework does not have.
        """
        if dim == "dp" and with_cp and self.dp_with_cp:
            return self.dp_with_cp
        if dim not in self.dims:
            raise InputError(
                "{framework} has no {dim} groups; its dimensions are {dims}",
                framework=self.framework,
                dim=dim,
                dims=listed(self.dims),
            )
        return self.dims[dim]

    def numbers_of(self, name: str, rank: int) -> list[int]:
        """Returns the numbers of the groups of a kind that ``rank`` is in, counted from 0."""
        kind = self.kind(name)
        return (self.kind(kind.twin_of) if kind.twin_of else kind).numbers(rank, self.meshes)

    def groups_of(self, rank: int) -> dict[str, list[Sequence[int]]]:
        """Returns, kind by kind, the groups that ``rank`` is in (usually one, at times none).

        It makes only the groups of this rank. Raises InputError outside the world.
        """
        self.coordinates(rank)
        found: dict[str, list[Sequence[int]]] = {}
        for kind in self.kinds:
            twin = found.get(kind.twin_of or "")
            found[kind.name] = kind.of(rank, self.meshes) if twin is None else twin
        return found
