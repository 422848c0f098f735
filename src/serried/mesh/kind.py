"""Group kinds: a name, a set of axes of one mesh, and at most one named rule (see ``rule``)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from serried.mesh.groups import Groups
from serried.mesh.mesh import Mesh
from serried.mesh.rule import Rule, Windows


@dataclass(frozen=True)
class GroupKind:
    """Names the groups along ``axes`` of the mesh called ``mesh``, after one rule if any.

    ``name`` is the framework's own. ``twin_of`` marks a second communicator over the same
    ranks, as Megatron's gloo twins are; ``about`` says in a clause what travels in it.
    ``by`` and ``within`` order groups and members, slowest axis first, where the framework
    counts them in another order than the mesh does.
    """

    name: str
    axes: tuple[str, ...]
    mesh: str = "dense"
    rule: Rule | None = None
    twin_of: str | None = None
    about: str = ""
    by: tuple[str, ...] = ()
    within: tuple[str, ...] = ()

    def groups(self, mesh: Mesh) -> Groups:
        """Returns the groups of this kind over ``mesh``."""
        table = mesh.groups(*self.axes, by=self.by, within=self.within)
        return self.rule(table) if self.rule else Groups.even(table)

    def over(self, meshes: Mapping[str, Mesh]) -> Groups:
        """Returns the groups of this kind over the layout's meshes."""
        return self.groups(meshes[self.mesh])

    def of(self, rank: int, meshes: Mapping[str, Mesh]) -> list[list[int]]:
        """Returns the groups that ``rank`` is in, making only the axis groups they need."""
        mesh = meshes[self.mesh]
        if rank not in mesh:
            return []
        if isinstance(self.rule, Windows) and not mesh.explicit:
            return [self.rule.around(rank, mesh)]
        row = mesh.row(rank, *self.axes, by=self.by)
        num_rows = mesh.num_ranks // math.prod(mesh.sizes[axis] for axis in self.axes)
        rows = self.rule.rows(row, num_rows) if self.rule else range(row, row + 1)
        if rows is None:
            return _holding(self.groups(mesh), rank)
        if not rows:
            return []
        table = mesh.rows(rows, *self.axes, by=self.by, within=self.within)
        return _holding(self.rule(table) if self.rule else Groups.even(table), rank)


def _holding(groups: Groups, rank: int) -> list[list[int]]:
    return [groups[number].tolist() for number in groups.containing(rank)]


@dataclass(frozen=True)
class ModulesKind(GroupKind):
    """Stands the groups of several modules, each with its own window of ranks, end to end."""

    parts: tuple[GroupKind, ...] = ()

    def over(self, meshes: Mapping[str, Mesh]) -> Groups:
        """Returns the groups of all parts, part after part."""
        return Groups.joined([part.over(meshes) for part in self.parts])

    def of(self, rank: int, meshes: Mapping[str, Mesh]) -> list[list[int]]:
        """Returns the groups of ``rank`` in the part it belongs to."""
        return [ranks for part in self.parts for ranks in part.of(rank, meshes)]


@dataclass(frozen=True)
class FixedKind(GroupKind):
    """Holds groups that are listed, not derived."""

    lists: tuple[tuple[int, ...], ...] = ()

    def over(self, meshes: Mapping[str, Mesh]) -> Groups:
        """Returns the listed groups."""
        return Groups.of(self.lists)

    def of(self, rank: int, meshes: Mapping[str, Mesh]) -> list[list[int]]:
        """Returns the listed groups that hold ``rank``."""
        return [list(ranks) for ranks in self.lists if rank in ranks]
