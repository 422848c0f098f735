"""Every group of every framework made for real, on 8 gloo ranks, and pretended on 1,024."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from serried.errors import InputError
from serried.frameworks import FRAMEWORKS
from serried.runtime import init
from serried.runtime.groups.process_groups import LiveLayout, creation_order
from tests.frameworks.asking import asked
from tests.runtime.rank_jobs import on_ranks

PLANE = "sequence_2D.enable=true sequence_2D.head_size=2 sequence_2D.context_size=4"
LINES = (
    "megatron 8 tp=2 pp=2",
    "megatron 8 tp=2 cp=2 ep=2 num_distributed_optimizer_instances=2",
    "megatron 8 order=pp-dp-tp tp=2 pp=2 names=variables",
    "megatron 8 cp=8 hierarchical_context_parallel_sizes='2 4'",
    "megatron 8 hybrid_context_parallel=true create_all_gather_group=true",
    "megatron@0.19.0 8 tp=2 pp=2 gtp_remat_size=2",
    "megatron@0.19.0 8 tp=2 rank_offset=4 local_world_size=4",
    "megatron@0.10.0 8 cp=2 num_distributed_optimizer_instances=2",
    "megatron@0.9.0 6 tp=2 pp=2 encoder_tensor_model_parallel_size=2 "
    "encoder_pipeline_model_parallel_size=1",
    "megatron@0.8.0 8 tp=2 pp=2 ep=2 order=tp-cp-pp-ep-dp",
    "internlm 8 tp=2 pp=2 zero1=2 nettest=3 dummy=true",
    "internlm 8 zero1=4 zero1.fsdp=true",
    "internlm@0.1.0 8 tp=2 num_experts=4",
    "internevo 8 tp=4 pp=2 tensor.mode=isp weight.size=2 zero1=2 nettest=5",
    "internevo@develop-2024-12 8 tp=4 num_experts=8 expert.no_tp=true",
    f"internevo@develop-2025-01 8 tp=8 {PLANE} sequence_2D.window_size=2",
    "deepspeed 8 pp=2 tp=2",
    "deepspeed 8 kind=moe tp=2 ep=2 use_data_before_expert_parallel=true",
    "deepspeed 8 kind=qgz devices_per_node=4",
    "deepspeed 6 hostfile='a slots=4\\nb slots=2'",
    "torchtitan 8 tp=2 pp=2 cp=2",
    "torchtitan@0.2.2 8 tp=2 ep=4 etp=2",
    "devicemesh 8 mesh_shape=2,4 mesh_dim_names=dp,tp flatten=all=dp+tp",
    "devicemesh 8 mesh=[[3,1],[0,2]]",
    "accelerate 8 tp=2 cp=2 dp_shard_size=2",
    "fsdp 8 dp_shard=4",
    "colossalai 8 tp=2 pp=2 sp_size=2 sequence_parallelism_mode=all_to_all",
    "colossalai 8 sp_size=8 sequence_parallelism_mode=ring_attn inner_ring_size=2",
    "nanotron 8 tp=2 pp=2 cp=2",
    "paddle 8 tp=2 pp=2 sharding_degree=2 order=dp,sharding,pp,sep,mp",
    "custom 8 'axes=pp=2 dp=2 tp=2' 'groups=model=pp+tp'",
)


def seen(live: LiveLayout) -> dict[str, list[tuple[list[int], int, int]]]:
    """Returns what torch holds of a rank's groups: its members, the rank within, the size."""
    return {
        kind: [
            (
                dist.get_process_group_ranks(each.group),
                dist.get_rank(each.group),
                dist.get_world_size(each.group),
            )
            for each in groups
        ]
        for kind, groups in live.kinds.items()
    }


def expected(line: str, rank: int) -> dict[str, list[tuple[list[int], int, int]]]:
    """Returns the same of the pure Layout; torch sorts the members of a group."""
    return {
        kind: [(sorted(r), sorted(r).index(rank), len(r)) for r in groups]
        for kind, groups in asked(line).groups_of(rank).items()
    }


def of_every_line(rank: int) -> dict[str, Any]:
    """Makes all groups of each layout in turn, and lists the members over them."""
    found = {}
    for line in LINES:
        layout = asked(line)
        if layout.world_size != dist.get_world_size():
            continue
        live = init(layout, timeout_s=60)
        told: dict[tuple[int, ...], list[int]] = {}
        for each in (each for groups in live.kinds.values() for each in groups):
            members = tuple(sorted(each.members))
            if members not in told:  # kinds with the same ranks are asked once
                told[members] = members_over(each.group, rank, each.size)
        meshes = {n: (m.mesh_dim_names, m.get_coordinate()) for n, m in live.meshes.items()}
        found[line] = (seen(live), told, meshes)
        live.close()
    return found


def members_over(group: dist.ProcessGroup, rank: int, size: int) -> list[int]:
    ranks = torch.empty(size, dtype=torch.int64)
    dist.all_gather_single(ranks, torch.tensor([rank]), group=group)
    return ranks.tolist()


@pytest.fixture(scope="module")
def found() -> dict[int, list[dict[str, Any]]]:
    """Returns what each real rank saw, by world size."""
    return {world: on_ranks(world, of_every_line) for world in (8, 6)}


def test_every_framework_is_among_the_layouts() -> None:
    assert {line.partition("@")[0].split()[0] for line in LINES} == set(FRAMEWORKS)


@pytest.mark.parametrize("line", LINES)
def test_every_rank_holds_the_groups_of_the_pure_layout(
    line: str, found: dict[int, list[dict[str, Any]]]
) -> None:
    for rank, answers in enumerate(found[asked(line).world_size]):
        assert answers[line][0] == expected(line, rank)


@pytest.mark.parametrize("line", LINES)
def test_what_travels_in_a_group_comes_from_its_members_in_their_order(
    line: str, found: dict[int, list[dict[str, Any]]]
) -> None:
    layout = asked(line)
    for rank, answers in enumerate(found[layout.world_size]):
        own = [sorted(r) for groups in layout.groups_of(rank).values() for r in groups]
        assert answers[line][1] == {tuple(ranks): ranks for ranks in own}


@pytest.mark.parametrize("line", LINES)
def test_a_mesh_wears_the_groups_along_its_axes(
    line: str, found: dict[int, list[dict[str, Any]]]
) -> None:
    layout = asked(line)
    for rank, answers in enumerate(found[layout.world_size]):
        for name, (axes, place) in answers[line][2].items():
            coordinates = layout.meshes[name].coordinates(rank)
            assert tuple(place) == tuple(coordinates[axis] for axis in axes)


def test_meshes_have_the_axes_that_groups_are_made_along(
    found: dict[int, list[dict[str, Any]]],
) -> None:
    axes = {
        line: {n: axes for n, (axes, _) in found[8][5][line][2].items()} for line in found[8][5]
    }
    assert axes["megatron 8 tp=2 pp=2"] == {
        "dense": ("pp", "dp", "cp", "tp"),
        "expert": ("dp", "ep", "tp"),
    }
    assert axes["internlm 8 zero1=4 zero1.fsdp=true"] == {"dense": ("dp", "tp")}


# ------------------------------------------------------------------------------- 1,024 ranks

BIG = (
    "megatron 1024 tp=8 pp=8 cp=2 ep=8 num_distributed_optimizer_instances=2",
    "internlm 1024 tp=8 pp=4 num_experts=4 nettest=96",
    "internevo 1024 tp=8 pp=4 tensor.mode=isp weight.size=4 zero1=8",
    "deepspeed 1024 pp=8 tp=8",
    "torchtitan 1024 tp=8 pp=4 cp=2 ep=16",
    "colossalai 1024 tp=8 pp=4 sp_size=2 sequence_parallelism_mode=all_to_all",
    "nanotron 1024 tp=8 pp=4 cp=2",
    "paddle 1024 tp=8 pp=4 sharding_degree=8",
)


@contextmanager
def pretending(rank: int, world_size: int) -> Iterator[None]:
    """Is ``rank`` among ranks that are only pretended: torch's fake backend sends nothing."""
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world_size)
    try:
        yield
    finally:
        dist.destroy_process_group()


def check_pretended(line: str, rank: int) -> None:
    layout = asked(line)
    with pretending(rank, layout.world_size):
        assert seen(init(layout)) == expected(line, rank)


@pytest.mark.parametrize("rank", [0, 601, 1023])
@pytest.mark.parametrize("line", BIG)
def test_a_rank_of_1024_holds_the_groups_of_the_pure_layout(line: str, rank: int) -> None:
    check_pretended(line, rank)


@pytest.mark.soak
@pytest.mark.parametrize("line", BIG)
def test_each_of_1024_ranks_holds_the_groups_of_the_pure_layout(line: str) -> None:
    for rank in range(1024):
        check_pretended(line, rank)


# ------------------------------------------------------------------------------- InternLM


def initialised(rank: int) -> dict[str, Any]:
    """Returns what each mode's initialiser would, handles as the ranks they hold."""
    live = init(asked("internlm 4 tp=2 zero1=1 nettest=3"), cpu_twins={"data", "nettest"})
    told = {}
    for kind in live.kinds:
        each = live.initialised(kind)
        handles = (each.process_group, each.cpu_group)
        held = [handle and dist.get_process_group_ranks(handle) for handle in handles]
        told[kind] = (each.local_rank, each.group_size, *held, each.ranks_in_group, each.mode)
    return told


def test_each_mode_gives_what_internlm_s_initialiser_returns() -> None:
    told = on_ranks(4, initialised)
    assert told[3] == {
        "global": (3, 4, [0, 1, 2, 3], None, [0, 1, 2, 3], "global"),
        "data": (1, 2, [1, 3], [1, 3], [1, 3], "data"),
        "model": (1, 2, [2, 3], None, [2, 3], "model"),
        "tensor": (1, 2, [2, 3], None, [2, 3], "tensor"),
        "zero1": (0, 1, [3], None, [3], "zero1"),
        "nettest": (0, 1, [3], [3], [3], "nettest"),
    }
    assert told[1]["nettest"] == (1, 3, [0, 1, 2], [0, 1, 2], [0, 1, 2], "nettest")


# ------------------------------------------------------------------------------- time-outs


AXIS_AND_RULE = ("data", "nettest")
"""Kinds of a layout of 4 InternLM ranks: along an axis, and by a rule."""


def late(rank: int) -> dict[str, str]:
    """Lets rank 3 stay away from a collective of an axis group and of a rule group."""
    live = init(asked("internlm 4 nettest=4"), timeout_s=1)
    for kind in AXIS_AND_RULE:  # they meet once, so that nobody waits to connect
        dist.all_reduce(torch.zeros(1), group=live.of(kind).group)
    return {kind: _heard(live, kind) for kind in AXIS_AND_RULE if rank != 3}


def _heard(live: LiveLayout, kind: str) -> str:
    with pytest.raises(RuntimeError) as heard:
        dist.all_reduce(torch.zeros(1), group=live.of(kind).group)
    return str(heard.value)


def test_a_rank_that_never_joins_is_waited_for_no_longer_than_the_time_out() -> None:
    heard = on_ranks(4, late)
    for kind in AXIS_AND_RULE:
        assert any("Timed out waiting 1000ms" in told[kind] for told in heard[:3])


# ------------------------------------------------------------------------------- refusals


def refusal(line: str, world_size: int) -> str:
    with pretending(0, world_size), pytest.raises(InputError) as refused:
        init(asked(line))
    return str(refused.value)


def test_a_layout_of_another_world_is_refused() -> None:
    assert refusal("megatron 16 tp=2", 8) == (
        "the layout is of 16 ranks and the job has 8; start 16 ranks, or give the sizes of 8"
    )


def test_groups_that_leave_the_world_are_refused() -> None:
    assert refusal("internevo 64 tp=2 gqa=true", 64) == (
        "internevo puts rank 65 into a gqa group, beyond the last of the 64 ranks; "
        "such groups cannot be made"
    )


def test_without_torch_distributed_there_are_no_groups() -> None:
    with pytest.raises(InputError) as refused:
        init(asked("megatron 1"))
    assert str(refused.value) == (
        "torch.distributed is not up yet; call torch.distributed.init_process_group first"
    )


def test_a_kind_that_leaves_a_rank_out_gives_it_no_group() -> None:
    line = "colossalai 8 sp_size=8 sequence_parallelism_mode=ring_attn inner_ring_size=2"
    with pretending(7, 8):
        live = init(asked(line))
        (kind,) = [name for name, groups in live.kinds.items() if not groups]
        with pytest.raises(InputError) as refused:
            live.of(kind)
    assert str(refused.value) == (
        f"rank 7 is in 0 groups of {kind}, not in one; look at groups('{kind}')"
    )


def test_groups_are_described_by_kind_and_number() -> None:
    with pretending(3, 4):
        live = init(asked("megatron 4 tp=2"), timeout_s=timedelta(minutes=2).total_seconds())
        assert live.of("tp").group.group_desc == "tp 1"


def test_groups_of_one_loop_are_made_one_after_another_as_megatron_makes_them() -> None:
    order = [(kind.name, number) for kind, number in creation_order(asked("megatron 8 tp=2 pp=2"))]
    assert order[:4] == [("dp_cp", 0), ("dp_cp_gloo", 0), ("dp_cp", 1), ("dp_cp_gloo", 1)]
    first = order.index(("pp", 0))
    assert order[first : first + 6] == [
        *(("pp", 0), ("embd", 0), ("pos_embd", 0)),
        *(("pp", 1), ("embd", 1), ("pos_embd", 1)),
    ]
    assert len(set(order)) == len(order)


def test_every_group_is_made_once() -> None:
    layout = asked("internlm 8 tp=2 pp=2 zero1=2 nettest=3")
    made = sorted((kind.name, number) for kind, number in creation_order(layout))
    assert made == sorted(
        (kind.name, number)
        for kind in layout.kinds
        for number in range(len(layout.groups(kind.name)))
    )
