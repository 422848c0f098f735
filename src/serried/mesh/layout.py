"""A Layout: every process group of one job, over all ranks, in its framework's own names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from serried.errors import InputError, listed
from serried.mesh.kind import GroupKind, Groups
from serried.mesh.mesh import Mesh


@dataclass(frozen=True)
class Layout:
    """Holds the meshes and the group kinds that a framework makes from some sizes.

    ``sizes`` uses the neutral short names (``tp pp cp dp ep …``), derived ones included;
    ``kinds`` stand in the framework's creation order; ``dims`` says which kind is *the*
    group of a dimension (``{"tp": "tensor"}`` for InternLM) and ``dp_with_cp`` which kind
    is the data group with context parallelism folded in, where there is one.
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
    _made: dict[str, Groups] = field(default_factory=dict, repr=False, compare=False)

    @property
    def mesh(self) -> Mesh:
        """The mesh that a rank's coordinates are read from: the first one."""
        return next(iter(self.meshes.values()))

    def kind(self, name: str) -> GroupKind:
        """Returns the kind called ``name``; raises InputError naming those there are."""
        for kind in self.kinds:
            if kind.name == name:
                return kind
        raise InputError(
            "{framework} makes no group kind '{kind}' here; it makes {kinds}",
            framework=self.framework,
            kind=name,
            kinds=listed((kind.name for kind in self.kinds), limit=40),
        )

    def groups(self, name: str) -> Groups:
        """Returns all groups of the kind called ``name``, made once and kept."""
        if name not in self._made:
            kind = self.kind(name)
            self._made[name] = self.groups(kind.twin_of) if kind.twin_of else self._make(kind)
        return self._made[name]

    def _make(self, kind: GroupKind) -> Groups:
        return kind.groups(self.meshes[kind.mesh])

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

    def groups_of(self, rank: int) -> dict[str, list[list[int]]]:
        """Returns, kind by kind, the groups that ``rank`` is in (usually one, at times none).

        Raises InputError when ``rank`` is outside the world.
        """
        self.mesh.coordinates(rank)
        found: dict[str, list[list[int]]] = {}
        for kind in self.kinds:
            groups = self.groups(kind.name)
            found[kind.name] = [groups[g].tolist() for g in groups.containing(rank)]
        return found
