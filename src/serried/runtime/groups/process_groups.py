"""Real process groups from any Layout: every group of every kind, in one order on every rank.

    kinds in the framework's order     tp     [0 1] [2 3] …   new_group, with the time-out
    groups of a kind in theirs         pp     [0 4] [1 5] …   new_group, with the time-out
                                       embd   [0 4] [1 5] …   new_group: a rule, no mesh has it
    a rank keeps those it is in   ->   LiveLayout.of("tp"), .groups("embd"), .mesh("dense")

Kinds that a framework makes in one loop are made group by group: a group and its gloo twin, a
pipeline and its embedding groups (pp 0, embd 0, pp 1, embd 1 …, as Megatron does).

A DeviceMesh is made of the groups along its axes and makes none of its own: those would
ignore the time-out (gloo then waits 30 minutes). torch sorts the members of a group, so a
rank's place within is its place among the sorted, whatever order a framework lists them in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

from serried.errors import InputError, listed
from serried.mesh import GroupKind, Layout
from serried.mesh.rule import Ends, First


class Initialised(NamedTuple):
    """Holds what each of InternLM's initialisers returns, in its order.

    ``mode`` is the value of ParallelMode, such as ``zero1``. The CPU group is None unless twins
    were asked for; where the group itself is gloo's it is its own twin, as in InternLM.
    """

    local_rank: int
    group_size: int
    process_group: dist.ProcessGroup
    cpu_group: dist.ProcessGroup | None
    ranks_in_group: list[int]
    mode: str


@dataclass(frozen=True, eq=False)
class LiveGroup:
    """Holds one real group that this rank is in."""

    kind: str
    number: int
    """Which group of its kind, as the Layout counts them."""
    members: tuple[int, ...]
    """Global ranks, as the Layout lists them."""
    rank: int
    """The caller's place within, as torch counts: among the sorted members."""
    group: dist.ProcessGroup
    cpu_group: dist.ProcessGroup | None
    """A gloo group of the same ranks, where twins were asked for."""

    @property
    def size(self) -> int:
        """How many ranks the group has."""
        return len(self.members)

    @property
    def name(self) -> str:
        """The group as a sentence names it: kind, number and members."""
        return f"{self.kind} group {self.number} [{listed(self.members).replace(',', '')}]"


@dataclass(frozen=True, eq=False)
class LiveLayout:
    """Holds every group that one rank is in, by kind, in the framework's creation order."""

    layout: Layout
    rank: int
    device: torch.device
    kinds: Mapping[str, tuple[LiveGroup, ...]]
    """Most often one group a kind; none where a kind leaves this rank out, several where
    groups overlap."""

    def groups(self, kind: str) -> tuple[LiveGroup, ...]:
        """Returns this rank's groups of ``kind``; raises InputError for an unknown kind."""
        return self.kinds[self.layout.kind(kind).name]

    def of(self, kind: str) -> LiveGroup:
        """Returns this rank's one group of ``kind``; raises InputError where it is not one."""
        found = self.groups(kind)
        if len(found) == 1:
            return found[0]
        raise InputError(
            "rank {rank} is in {count} groups of {kind}, not in one; look at groups('{kind}')",
            rank=self.rank,
            count=len(found),
            kind=kind,
        )

    def initialised(self, kind: str) -> Initialised:
        """Returns what InternLM's initialiser of this mode returns."""
        mine = self.of(kind)
        return Initialised(
            mine.rank, mine.size, mine.group, mine.cpu_group, sorted(mine.members), kind
        )

    @cached_property
    def meshes(self) -> Mapping[str, DeviceMesh]:
        """A DeviceMesh for each of the layout's meshes that holds this rank.

        Its axes are those that the framework makes groups along; it is made of these very groups.
        """
        meshes = {name: self._device_mesh(name) for name in self.layout.meshes}
        return {name: mesh for name, mesh in meshes.items() if mesh is not None}

    def close(self) -> None:
        """Destroys these groups and leaves all others; all ranks call it together."""
        own = [each for groups in self.kinds.values() for each in groups]
        handles = {each.group for each in own} | {each.cpu_group for each in own}
        for handle in handles - {None, dist.group.WORLD}:
            dist.destroy_process_group(handle)

    def _device_mesh(self, name: str) -> DeviceMesh | None:
        mesh = self.layout.meshes[name]
        along = self._along(name)
        if self.rank not in mesh or not along:
            return None
        # from_group takes the part of the mesh that this rank lies in: whole along axes that have
        # groups, at the rank's own place along all others.
        place = mesh.coordinates(self.rank)
        cut = tuple(slice(None) if axis in along else place[axis] for axis in mesh.axes)
        axes = tuple(axis for axis in mesh.axes if axis in along)
        return DeviceMesh.from_group(
            [along[axis].group for axis in axes],
            self.device.type,
            torch.from_numpy(mesh.ranks[cut].copy()),
            mesh_dim_names=axes,
        )

    def _along(self, mesh: str) -> dict[str, LiveGroup]:
        """Returns this rank's group along each axis of a mesh, of the first kind that has it."""
        along: dict[str, LiveGroup] = {}
        for kind in self.layout.kinds:
            is_axis = type(kind) is GroupKind and len(kind.axes) == 1 and kind.rule is None
            if is_axis and kind.mesh == mesh and not kind.twin_of and self.kinds[kind.name]:
                along.setdefault(kind.axes[0], self.of(kind.name))
        return along


def init(
    layout: Layout,
    *,
    timeout_s: float = 300.0,
    device: str = "cpu",
    cpu_twins: bool | Collection[str] = False,
) -> LiveLayout:
    """Makes every group of ``layout``, each with its time-out; all ranks call it together.

    ``cpu_twins`` asks for a gloo group beside each group: of all kinds, or of those named.
    torch.distributed must be up; the layout's world is the job's. Raises InputError where it
    is not, or where the framework's own groups reach beyond the world.
    """
    _check_world(layout)
    rank, timeout = dist.get_rank(), timedelta(seconds=timeout_s)
    kinds: dict[str, list[LiveGroup]] = {kind.name: [] for kind in layout.kinds}
    for kind, number in creation_order(layout):
        is_twinned = cpu_twins if isinstance(cpu_twins, bool) else kind.name in cpu_twins
        members = layout.groups(kind.name)[number].tolist()
        if made := _made(kind, number, members, rank, timeout, is_twinned):
            kinds[kind.name].append(made)
    own = {name: tuple(groups) for name, groups in kinds.items()}
    return LiveLayout(layout, rank, torch.device(device), own)


def creation_order(layout: Layout) -> Iterator[tuple[GroupKind, int]]:
    """Yields every group, as its kind and number, in the order in which the framework makes them.

    A kind is made in one loop with the one before it when it is its gloo twin or takes members
    of its groups one by one (first, last), as embedding groups do of pipelines.
    """
    loops: list[list[GroupKind]] = []
    for kind in layout.kinds:
        if loops and _is_of_one_loop(loops[-1][0], kind, layout):
            loops[-1].append(kind)
        else:
            loops.append([kind])
    # Of pipelines and their embedding groups: pp 0, embd 0, pos_embd 0, pp 1, embd 1 …
    for loop in loops:
        for number in range(len(layout.groups(loop[0].name))):
            yield from ((kind, number) for kind in loop)


def _is_of_one_loop(base: GroupKind, kind: GroupKind, layout: Layout) -> bool:
    # A loop goes over the numbers of groups, so its kinds have as many of them.
    if len(layout.groups(base.name)) != len(layout.groups(kind.name)):
        return False
    if kind.twin_of is not None:
        return kind.twin_of == base.name
    return isinstance(kind.rule, First | Ends) and (kind.axes, kind.mesh) == (base.axes, base.mesh)


def _made(
    kind: GroupKind,
    number: int,
    members: list[int],
    rank: int,
    timeout: timedelta,
    is_twinned: bool,
) -> LiveGroup | None:
    """Makes one group, as every rank must, and returns it to those that are in it."""
    # On CPU every group is gloo's: only beside NCCL has a twin a backend of its own.
    is_on_gpu = dist.get_backend() == "nccl"
    backend = "gloo" if is_on_gpu and _is_gloo_twin(kind) else None
    group = cpu_group = _new(members, kind, number, timeout, backend)
    if is_twinned and is_on_gpu:
        cpu_group = _new(members, kind, number, timeout, "gloo")
    if rank not in members:
        return None
    place = sorted(members).index(rank)
    twin = cpu_group if is_twinned else None
    return LiveGroup(kind.name, number, tuple(members), place, group, twin)


def _new(
    members: list[int], kind: GroupKind, number: int, timeout: timedelta, backend: str | None
) -> dist.ProcessGroup:
    description = f"{kind.name} {number}"  # shown in NCCL's logs and by the flight recorder
    group: dist.ProcessGroup = dist.new_group(
        members, timeout=timeout, backend=backend, group_desc=description
    )
    return group


def _is_gloo_twin(kind: GroupKind) -> bool:
    return kind.twin_of is not None and "gloo" in kind.name.lower()


def _check_world(layout: Layout) -> None:
    if not dist.is_initialized():
        raise InputError(
            "torch.distributed is not up yet; call torch.distributed.init_process_group first"
        )
    world = dist.get_world_size()
    if layout.world_size != world:
        raise InputError(
            "the layout is of {asked} ranks and the job has {world}; start {asked} ranks, or "
            "give the sizes of {world}",
            asked=layout.world_size,
            world=world,
        )
    for kind in layout.kinds:
        highest = int(layout.groups(kind.name).members.max(initial=0))
        if highest >= world:
            raise InputError(
                "{framework} puts rank {rank} into a {kind} group, beyond the last of the {world} "
                "ranks; such groups cannot be made",
                framework=layout.framework,
                rank=highest,
                kind=kind.name,
                world=world,
            )
