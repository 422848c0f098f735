"""The groups that a training reduces and sends over, made from its Layout, as a DeviceMesh.

    dense mesh     pp x dp x cp x tp      tp, pp, cp, dp and dp_cp: dp x cp as one
    what FSDP sees pp x replicate x shard x tp, where replicate x shard = dp x cp
    expert mesh    pp x edp x ep          tp x cp x dp = edp x ep; experts are not cut by tp
    stage          all ranks of a stage: dp x cp x tp, or edp x ep
    embd           the ranks of the first and the last stage, where they differ

The mesh is made of groups that were made first: groups that a DeviceMesh makes ignore the run's
time-out (gloo then waits 30 minutes). Equal lists of ranks share one group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

from serried.mesh import Layout, Ranks
from serried.runtime.job.parallel import require_known_axes
from serried.runtime.job.settings import AXES, TrainSettings

MESH_AXES = ("pp", "replicate", "shard", "tp")
"""Axes of the mesh that FSDP and DTensor see, slowest first."""


@dataclass(frozen=True, eq=False)
class TrainMesh:
    """Holds what one rank needs of the layout: its groups, its places in them, and meshes."""

    rank: int
    layout: Layout
    device: torch.device
    mesh: DeviceMesh
    """This rank's mesh over MESH_AXES."""
    experts: DeviceMesh
    """This rank's mesh over ``edp``, which holds the same experts."""
    groups: Mapping[str, dist.ProcessGroup]
    zero: int = 0
    """The ZeRO stage that ``shard`` is made for."""
    timeout_s: float = 300.0
    """How long ranks wait for one another in these groups."""

    def group(self, axis: str) -> dist.ProcessGroup:
        """Returns this rank's group along ``axis``: of AXES, MESH_AXES, or named above."""
        return self.groups[axis]

    def members(self, axis: str) -> tuple[int, ...]:
        """Returns the global ranks in this rank's group along ``axis``, as torch holds them."""
        return tuple(dist.get_process_group_ranks(self.groups[axis]))

    def size(self, axis: str) -> int:
        """Returns how many ranks this rank's group along ``axis`` has."""
        return self.groups[axis].size()

    def coordinate(self, axis: str) -> int:
        """Returns this rank's place on ``axis``."""
        return self.groups[axis].rank()


def make_train_mesh(settings: TrainSettings, device: torch.device, timeout: timedelta) -> TrainMesh:
    """Makes every group of a run of the reference training; all ranks call it together."""
    rank_of = settings.pipeline.placement.rank_of[0]
    return make_groups(
        settings.layout,
        device,
        timeout,
        zero=settings.zero,
        shard=settings.zero_shard,
        has_experts=settings.model.experts > 0,
        ends=(int(rank_of[0]), int(rank_of[-1])),
    )


def make_groups(
    layout: Layout,
    device: torch.device,
    timeout: timedelta,
    *,
    zero: int = 0,
    shard: int | None = None,
    has_experts: bool = False,
    ends: tuple[int, int] = (0, -1),
) -> TrainMesh:
    """Makes the groups of ``layout`` that a training needs; all ranks call it together.

    ``shard`` says how many ranks of dp x cp share one copy from ZeRO stage 1 on, None that all
    do; with ``zero`` 0 each has its own. ``ends`` are the places on pp of the first and the last
    stage. Raises InputError where the framework places ranks along other axes than AXES, and
    AssertionError when torch's groups are not the Layout's.
    """
    require_known_axes(layout)
    rank = dist.get_rank()
    made: dict[tuple[int, ...], dist.ProcessGroup] = {}
    own: dict[str, dist.ProcessGroup] = {}
    ranks = _cube(layout, shard if zero else 1)
    for axis, rows in _rows(layout, ranks, ends, has_experts=has_experts):
        for members in rows:
            # new_group is called by all ranks in one order; axes with the same ranks share a group.
            if members not in made:
                made[members] = dist.new_group(list(members), timeout=timeout)
            if rank in members:
                own[axis] = made[members]
    mesh = DeviceMesh.from_group(
        [own[axis] for axis in MESH_AXES],
        device.type,
        torch.from_numpy(ranks),
        mesh_dim_names=MESH_AXES,
    )
    experts = DeviceMesh.from_group(own["edp"], device.type, mesh_dim_names=("edp",))
    held = TrainMesh(rank, layout, device, mesh, experts, own, zero, timeout.total_seconds())
    _check(held)
    return held


def _rows(
    layout: Layout, cube: Ranks, ends: tuple[int, int], *, has_experts: bool
) -> Iterator[tuple[str, list[tuple[int, ...]]]]:
    """Yields each axis with all groups along it, each as its ranks in order."""
    for axis in AXES:
        yield axis, _tuples(_layout_rows(layout, axis))
    both = cube.transpose(0, 3, 1, 2)
    yield "dp_cp", _tuples(both.reshape(-1, cube.shape[1] * cube.shape[2]).tolist())
    yield "shard", _tuples(both.reshape(-1, cube.shape[2]).tolist())
    yield "replicate", _tuples(cube.transpose(0, 3, 2, 1).reshape(-1, cube.shape[1]).tolist())
    yield "stage", _tuples(np.sort(cube.reshape(cube.shape[0], -1), axis=1).tolist())
    yield from _expert_rows(layout, has_experts=has_experts)
    pipelines = np.array(_layout_rows(layout, "pp"))
    places = {end % pipelines.shape[1] for end in ends}
    yield "embd", _tuples(pipelines[:, sorted(places)].tolist())


def _tuples(rows: list[list[int]]) -> list[tuple[int, ...]]:
    return [tuple(row) for row in rows]


def _layout_rows(layout: Layout, axis: str) -> list[list[int]]:
    """Returns the layout's groups along ``axis``; some frameworks make none of size one."""
    if axis in layout.dims:
        return layout.groups(layout.kind_of(axis)).lists()
    return [[rank] for rank in range(layout.world_size)]


def _expert_rows(
    layout: Layout, *, has_experts: bool
) -> Iterator[tuple[str, list[tuple[int, ...]]]]:
    """Yields the groups over which experts are spread, and those that hold the same."""
    expert = layout.meshes.get("expert")
    if has_experts and expert is not None:
        yield "ep", _tuples(expert.groups("ep").tolist())
        same = "edp" if "edp" in expert.axes else "dp"
        yield "edp", _tuples(expert.groups(same).tolist())
    else:
        # Without experts every rank is alone on both axes, so that users of them need not ask.
        alone = _tuples([[rank] for rank in range(layout.world_size)])
        yield from (("ep", alone), ("edp", alone))


def _cube(layout: Layout, shard: int | None) -> Ranks:
    """Returns the ranks as an array over MESH_AXES; members of each group ascend."""
    mesh = layout.mesh
    data = [axis for axis in mesh.axes if axis in ("dp", "cp")]
    # An axis that a framework leaves out has size one, which the shape below puts back.
    kept = [mesh.axes.index(axis) for axis in ("pp", *data, "tp") if axis in mesh.axes]
    rest = [i for i in range(len(mesh.axes)) if i not in kept]
    sizes = {axis: mesh.sizes.get(axis, 1) for axis in AXES}
    shape = (sizes["pp"], -1, shard or sizes["dp"] * sizes["cp"], sizes["tp"])
    return np.ascontiguousarray(mesh.ranks.transpose(*rest, *kept).reshape(shape))


def _check(held: TrainMesh) -> None:
    """Asserts that groups and coordinates agree with the Layout."""
    place = held.layout.mesh.coordinates(held.rank)
    for axis in AXES:
        rows = _layout_rows(held.layout, axis)
        wanted = next(ranks for ranks in rows if held.rank in ranks)
        members = held.members(axis)
        assert list(members) == wanted, f"{axis}: torch holds {members}, the layout {wanted}"
        assert held.coordinate(axis) == place.get(axis, 0), f"{axis}: {members} at {place}"
    if held.layout.dp_with_cp:
        rows = held.layout.groups(held.layout.dp_with_cp).lists()
        wanted = next(ranks for ranks in rows if held.rank in ranks)
        assert list(held.members("dp_cp")) == wanted, f"dp_cp: {held.members('dp_cp')}, {wanted}"
