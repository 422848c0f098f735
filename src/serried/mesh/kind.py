"""Group kinds: a name, a set of axes of one mesh, and at most one named rule (see ``rule``)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from serried.mesh.groups import Groups
from serried.mesh.members import Members
from serried.mesh.mesh import Mesh
from serried.mesh.rule import Chain, JoinRuns, Leading, RankWindows, Rule


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

    @property
    def is_in_rank_order(self) -> bool:
        """Whether ranks, from 0 on, come upon the groups in their order, by the kind's very form.

        Groups along axes ascend by their lowest rank; a rule, or ``by``, may order them otherwise.
        """
        return self.rule is None and not self.by

    def groups(self, mesh: Mesh) -> Groups:
        """Returns the groups of this kind over ``mesh``."""
        # Where most groups are never made (Megatron with an axis named twice), only the rows that
        # the first of several rules keeps are computed.
        first = self.rule.rules[0] if isinstance(self.rule, Chain) else self.rule
        leading = first.count if isinstance(first, Leading) else None
        table = mesh.groups(*self.axes, by=self.by, within=self.within, leading=leading)
        return self.rule(table) if self.rule else Groups.even(table)

    def shape(self, mesh: Mesh) -> tuple[int, int]:
        """Returns how many axis groups there are, and how many ranks each has."""
        size = math.prod(mesh.sizes[axis] for axis in self.axes)
        return mesh.num_ranks // size, size

    def over(self, meshes: Mapping[str, Mesh]) -> Groups:
        """Returns the groups of this kind over the layout's meshes."""
        return self.groups(meshes[self.mesh])

    def of(self, rank: int, meshes: Mapping[str, Mesh]) -> list[Sequence[int]]:
        """Returns the groups that ``rank`` is in, making only the axis groups they need."""
        mesh = meshes[self.mesh]
        if rank not in mesh:
            return []
        if isinstance(self.rule, RankWindows) and not mesh.explicit:
            return [self.rule.around(rank, mesh)[1]]  # windows cross axes: no row holds one
        row = mesh.row(rank, *self.axes, by=self.by)
        rows: tuple[range, ...] | None = (range(row, row + 1),)
        if self.rule is not None:
            rows = self.rule.rows_needed(row, self.shape(mesh))
        if rows is None:
            return holding(self.groups(mesh), rank)
        # Axis groups as they are, and whole runs of them, may be as large as the world, so their
        # members are left to be computed when they are looked at.
        if self.rule is None or isinstance(self.rule, JoinRuns):
            return [Members(mesh, part, self.axes, self.by, self.within) for part in rows]
        return [ranks for part in rows for ranks in holding(self._made_of(part, mesh), rank)]

    def _made_of(self, rows: range, mesh: Mesh) -> Groups:
        """Returns the groups that some rows make by themselves."""
        table = mesh.rows(rows, *self.axes, by=self.by, within=self.within)
        return self.rule.on_rows_needed(table) if self.rule else Groups.even(table)

    def numbers(self, rank: int, meshes: Mapping[str, Mesh]) -> list[int]:
        """Returns the numbers of the groups that ``rank`` is in, by arithmetic where it goes."""
        mesh = meshes[self.mesh]
        if rank not in mesh:
            return []
        if isinstance(self.rule, RankWindows) and not mesh.explicit:
            return [self.rule.around(rank, mesh)[0]]
        row = mesh.row(rank, *self.axes, by=self.by)
        if self.rule is None:
            return [row]  # without a rule a row is a group
        shape = self.shape(mesh)
        first, rows = self.rule.first_number(row, shape), self.rule.rows_needed(row, shape)
        if first is None or rows is None:
            return self.over(meshes).containing(rank)
        return [first + i for part in rows for i in self._made_of(part, mesh).containing(rank)]


def holding(groups: Groups, rank: int) -> list[Sequence[int]]:
    """Returns those groups that hold ``rank``, as lists.

    >>> holding(Groups.of([[0, 1], [2], [1, 2]]), 1)
    [[0, 1], [1, 2]]
    """
    return [groups[number].tolist() for number in groups.containing(rank)]


@dataclass(frozen=True)
class ModulesKind(GroupKind):
    """Stands the groups of several modules, each with its own window of ranks, end to end."""

    parts: tuple[GroupKind, ...] = ()

    def over(self, meshes: Mapping[str, Mesh]) -> Groups:
        """Returns the groups of all parts, part after part."""
        return Groups.joined([part.over(meshes) for part in self.parts])

    def of(self, rank: int, meshes: Mapping[str, Mesh]) -> list[Sequence[int]]:
        """Returns the groups of ``rank`` in the part it belongs to."""
        return [ranks for part in self.parts for ranks in part.of(rank, meshes)]

    def numbers(self, rank: int, meshes: Mapping[str, Mesh]) -> list[int]:
        """Returns the numbers of the groups that ``rank`` is in, all parts counted through."""
        return self.over(meshes).containing(rank)


@dataclass(frozen=True)
class FixedKind(GroupKind):
    """Holds groups that are listed, not derived."""

    lists: tuple[tuple[int, ...], ...] = ()

    def over(self, meshes: Mapping[str, Mesh]) -> Groups:
        """Returns the listed groups."""
        return Groups.of(self.lists)

    def of(self, rank: int, meshes: Mapping[str, Mesh]) -> list[Sequence[int]]:
        """Returns the listed groups that hold ``rank``."""
        return [list(ranks) for ranks in self.lists if rank in ranks]

    def numbers(self, rank: int, meshes: Mapping[str, Mesh]) -> list[int]:
        """Returns the numbers of the listed groups that hold ``rank``."""
        return [number for number, ranks in enumerate(self.lists) if rank in ranks]
