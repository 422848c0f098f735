"""Process groups of a run: made from the Layout, checked against it, worn as a DeviceMesh.

A Layout says who belongs together; torch.distributed makes exactly those groups:

    Layout.groups("tp") [0 1] [2 3] …   ->  new_group per row  ->  DeviceMesh (pp, dp, tp)
    Layout.mesh, turned to (pp, dp, tp) ->  the mesh's array of ranks

The mesh wears these groups instead of making its own: groups that a DeviceMesh makes
ignore the run's time-out (gloo then waits 30 minutes).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

from serried.mesh import Layout, Ranks
from serried.runtime.settings import AXES


@dataclass(frozen=True, eq=False)
class RankGroups:
    """Holds what one rank needs of the layout: its coordinates, its groups and the mesh."""

    rank: int
    layout: Layout
    mesh: DeviceMesh
    device: torch.device

    def group(self, axis: str) -> dist.ProcessGroup:
        """Returns this rank's group along ``axis``."""
        group: dist.ProcessGroup = self.mesh.get_group(axis)
        return group

    def size(self, axis: str) -> int:
        """Returns how many ranks this rank's group along ``axis`` has."""
        return self.mesh.size(AXES.index(axis))

    def coordinate(self, axis: str) -> int:
        """Returns this rank's place on ``axis``."""
        return self.mesh.get_local_rank(axis)

    def members(self, axis: str) -> tuple[int, ...]:
        """Returns the global ranks in this rank's group along ``axis``, as torch holds them."""
        return tuple(dist.get_process_group_ranks(self.group(axis)))


def make_groups(layout: Layout, device: torch.device, timeout: timedelta) -> RankGroups:
    """Makes every group along pp, dp and tp; all ranks call it together.

    Raises AssertionError when torch's groups are not the Layout's.
    """
    rank = dist.get_rank()
    own = [_own_group(layout, axis, timeout) for axis in AXES]
    cube = torch.from_numpy(_cube(layout))
    mesh = DeviceMesh.from_group(own, device.type, cube, mesh_dim_names=AXES)
    groups = RankGroups(rank, layout, mesh, device)
    _check(groups)
    return groups


def _cube(layout: Layout) -> Ranks:
    """Returns the layout's ranks as an array over (pp, dp, tp); its other axes have size 1."""
    mesh = layout.mesh
    kept = [mesh.axes.index(axis) for axis in AXES]
    rest = [i for i in range(len(mesh.axes)) if i not in kept]
    sizes = [mesh.sizes[axis] for axis in AXES]
    return np.ascontiguousarray(mesh.ranks.transpose(*rest, *kept).reshape(sizes))


def _own_group(layout: Layout, axis: str, timeout: timedelta) -> dist.ProcessGroup:
    """Makes all groups along ``axis``, as every rank must, and returns the caller's."""
    own: dist.ProcessGroup | None = None
    for members in _member_lists(layout, axis):
        group = dist.new_group(members, timeout=timeout)
        own = group if dist.get_rank() in members else own
    assert own is not None, f"rank {dist.get_rank()} is in no {axis} group"
    return own


def _member_lists(layout: Layout, axis: str) -> list[list[int]]:
    """Returns the layout's groups along ``axis``; InternLM makes none for a pipeline of one."""
    if axis in layout.dims:
        return layout.groups(layout.kind_of(axis)).lists()
    return [[rank] for rank in range(layout.world_size)]


def _check(groups: RankGroups) -> None:
    """Asserts that groups and coordinates agree with the Layout."""
    place = groups.layout.mesh.coordinates(groups.rank)
    for axis in AXES:
        members = groups.members(axis)
        wanted = next(ranks for ranks in _member_lists(groups.layout, axis) if groups.rank in ranks)
        assert list(members) == wanted, f"{axis}: torch holds {members}, the layout {wanted}"
        assert groups.coordinate(axis) == place[axis], f"{axis}: {groups.mesh} at {place}"
