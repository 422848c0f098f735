"""What holds for every framework's layout: dimensions, partitions, and one rank's own groups."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from serried import frameworks
from serried.errors import InputError
from serried.frameworks import FRAMEWORKS, Framework, Sizes
from serried.mesh import Layout, Mesh, Placement
from serried.mesh.rank import place_of
from serried.views.layout.document import groups_csv
from serried.views.web.wire.stages import stages
from tests.frameworks.asking import asked
from tests.frameworks.test_findings import LINES as QUIRKS

WINDOWS = "sequence_2D.head_size=2 sequence_2D.context_size=4 sequence_2D.window_size=2"
LINES = (
    "megatron 32 tp=2 pp=4 ep=4",
    "megatron 32 tp=2 pp=2 cp=2 ep=8 etp=1 num_distributed_optimizer_instances=2",
    "megatron 16 tp=2 pp=2 order=pp-dp-tp names=variables",
    "megatron 64 tp=2 cp=8 hierarchical_context_parallel_sizes='2 4' names=recorded",
    "megatron 24 tp=2 hybrid_context_parallel=true create_all_gather_group=true",
    "megatron@0.19.0 32 tp=2 pp=2 gtp_remat_size=2 expert_gtp_remat_size=2 ep=2",
    "megatron@0.19.0 24 tp=2 pp=2 rank_offset=8 local_world_size=8",
    "megatron@0.13.0 32 tp=2 pp=4 pipeline_model_parallel_split_rank=2",
    "megatron@0.8.0 32 tp=2 cp=2 pp=2 ep=2 order=tp-cp-pp-ep-dp",
    "megatron@0.4.0 32 tp=2 pp=2 ep=2",
    "internlm 80 tp=2 pp=4 zero1=5 dummy=true",
    "internlm 16 zero1=4 zero1.fsdp=true",
    "internlm@0.1.0 16 tp=2 num_experts=4",
    "internevo 32 tp=4 pp=2 tensor.mode=isp weight.size=2 zero1=2",
    "internevo 96 tp=3 gqa=true",
    "paddle 16 pp=4 tp=2 sharding_degree=2 four_directions_p2p=true",
    "internevo@develop-2024-12 32 tp=2 tensor.mode=isp weight.size=2 num_experts=4",
    "internevo@develop-2024-12 32 tp=4 num_experts=8 expert.no_tp=true",
    f"internevo@develop-2025-01 32 tp=8 pp=2 sequence_2D.enable=true {WINDOWS}",
    f"internevo@develop-2025-01 16 tp=8 sequence_2D.enable=1 sequence_2D.interleaved=1 {WINDOWS}",
    "deepspeed 32 pp=4 tp=2 ep=2",
    "deepspeed 24 topology=default",
    "deepspeed 24 axes=pipe,data,other dims=2,3,4",
    "deepspeed 32 kind=moe tp=2 ep=4 use_data_before_expert_parallel=true",
    "deepspeed 32 autoep_size=8 tp=2",
    "deepspeed 32 autotp_size=4",
    "deepspeed 32 sequence_parallel_size=4 data_parallel_size=8",
    "deepspeed 32 kind=qgz",
    "deepspeed 20 kind=qgz names=keys",
    "deepspeed 32 zero_hpz_partition_size=8",
    "deepspeed@0.18.9 32 kind=mics mics_shard_size=16 mics_hierarchical_params_gather=true",
    "deepspeed 6 hostfile='a slots=4\\nb slots=2' exclude=a:0",
    "torchtitan 32 tp=2 pp=2 cp=2 ep=4",
    "torchtitan 32 tp=2 spmd_backend=partial_dtensor data_parallel_replicate_degree=2",
    "torchtitan@0.2.2 32 tp=2 ep=4 etp=2",
    "torchtitan@0.2.0 32 tp=2 ep=4 etp=1",
    "torchtitan@0.1.0 32 tp=2 cp=2 pp=2",
    "devicemesh 16 mesh_shape=2,4 mesh_dim_names=dp,tp flatten=all=dp+tp",
    "devicemesh 16 mesh=[[3,1],[0,2]]",
    "devicemesh 16 mesh_shape=16 mesh_dim_names=world unflatten=world=pp:2+dp:4+tp:2 "
    "'flatten=m=pp+dp;dp_tp=dp+tp' concatenate=n=tp+pp",
    "accelerate 32 tp=2 cp=2 dp_shard_size=4 dp_replicate_size=2",
    "accelerate 32 sp_size=4",
    "fsdp 32 dp_shard=8",
    "colossalai 32 tp=2 pp=2 sp_size=2 sequence_parallelism_mode=all_to_all",
    "colossalai 32 tp=2 ep=4 moe_dp_outside=false",
    "colossalai 32 plugin=gemini tp=2 extra_dp_size=2",
    "colossalai 32 plugin=low_level_zero extra_dp_size=4",
    "nanotron 32 tp=2 pp=2 cp=2",
    "nanotron@0.4 32 tp=2 pp=2 ep=2",
    "paddle 32 tp=2 pp=2 sharding_degree=2 sep_degree=2 order=dp,sharding,pp,sep,mp",
    "paddle 16 pp=2 ep=4 sharding_degree=4 mp_degree=2 moe_sharding_degree=2 cp_degree=2",
    "custom 32 'axes=pp=4 dp=4 tp=2' 'groups=model=pp+tp'",
    "custom 16 'axes=pp=2 dp=4' 'ranks=9 2 15 4 5 11 0 7'",
)

UNEVEN = (
    "megatron@0.13.0 36 tp=4 pp=3 encoder_tensor_model_parallel_size=2 "
    "encoder_pipeline_model_parallel_size=3 num_distributed_optimizer_instances=2",
    "megatron@0.12.0 40 tp=4 pp=2 encoder_tensor_model_parallel_size=2 "
    "encoder_pipeline_model_parallel_size=1 pipeline_model_parallel_split_rank=1",
)
"""Encoder and decoder make groups of their own sizes."""
EVERY = (*LINES, *UNEVEN, *QUIRKS)


@pytest.mark.parametrize("line", EVERY)
def test_a_rank_is_told_the_very_groups_that_all_ranks_are(line: str) -> None:
    made = asked(line)
    for rank in range(made.world_size):
        told = made.groups_of(rank)
        for kind in made.kinds:
            groups = made.groups(kind.name)
            assert told[kind.name] == [groups[g].tolist() for g in groups.containing(rank)]


@pytest.mark.parametrize("line", EVERY)
def test_a_rank_is_told_the_numbers_of_its_groups(line: str) -> None:
    made = asked(line)
    for rank in range(made.world_size):
        for kind in made.kinds:
            assert made.numbers_of(kind.name, rank) == made.groups(kind.name).containing(rank)


@pytest.mark.parametrize("line", EVERY)
def test_a_ranks_groups_are_found_without_those_of_the_others(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = asked(line)

    def enumerated(*_: object, **__: object) -> None:
        raise AssertionError("all groups were made")

    monkeypatch.setattr(Mesh, "groups", enumerated)
    assert made.groups_of(made.world_size - 1)


@pytest.mark.parametrize("line", EVERY)
def test_each_dimension_has_a_kind_and_a_size(line: str) -> None:
    made = asked(line)
    names = {kind.name for kind in made.kinds}
    assert {*made.dims.values()} <= names
    assert made.dp_with_cp is None or made.dp_with_cp in names
    assert len(names) == len(made.kinds)
    assert {*made.dims} <= {*made.sizes}


@pytest.mark.parametrize("line", LINES)
def test_the_groups_of_a_dimension_are_as_large_as_its_size(line: str) -> None:
    made = asked(line)
    for dim, kind in made.dims.items():
        assert {*made.groups(kind).sizes.tolist()} == {made.sizes[dim]}


VERSIONS = [f"{each.name}@{version}" for each in FRAMEWORKS.values() for version in each.versions]


@pytest.mark.parametrize("name", VERSIONS)
def test_a_lone_rank_is_a_job_in_every_version(name: str) -> None:
    made = frameworks.layout(name, Sizes(1))
    assert all({*made.groups(kind.name).members.tolist()} == {0} for kind in made.kinds)


SIZES = st.sampled_from((1, 1, 2, 2, 3, 4))
NAMES = st.sampled_from(VERSIONS)


@given(NAMES, SIZES, SIZES, SIZES, SIZES, st.sampled_from((1, 2, 4)))
def test_the_groups_of_a_dimension_hold_every_rank_once(
    name: str, tp: int, pp: int, cp: int, dp: int, ep: int
) -> None:
    world = tp * pp * cp * dp * (ep if name == "nanotron@0.4" else 1)
    made = _layout(name, Sizes(world, tp=tp, pp=pp, cp=cp, ep=ep))
    assume(made is not None and not made.findings)
    assert made is not None
    for kind in made.dims.values():
        assert sorted(made.groups(kind).members.tolist()) == list(range(world))


def _layout(name: str, sizes: Sizes) -> Layout | None:
    try:
        return frameworks.layout(name, sizes)
    except InputError:
        return None


def test_a_version_between_two_that_were_read_is_known() -> None:
    assert frameworks.find("megatron@0.9.2").version == "0.9.2"
    assert frameworks.find("megatron@0.19.7").version == "0.19.7"


def test_a_version_may_be_written_as_a_tag_or_by_its_beginning() -> None:
    assert frameworks.find("megatron@core_v0.19.0").version == "0.19.0"
    assert frameworks.find("internlm@v0.1.0").version == "0.1.0"
    assert frameworks.find("nanotron@main").version == "main-2411b022"


@pytest.mark.parametrize(
    "name", ["megatron@0.20.0", "megatron@0.3.9", "internevo@develop", "custom@2"]
)
def test_a_version_beyond_those_that_were_read_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="is not known; versions that are"):
        frameworks.find(name)


@pytest.mark.parametrize("framework", FRAMEWORKS.values(), ids=lambda each: each.name)
def test_a_framework_says_what_it_was_read_from(framework: Framework) -> None:
    assert framework.source
    assert framework.version in (framework.versions or (framework.version,))
    assert framework.default_order in framework.orders
    assert all(about and not about.endswith(".") for about in framework.options.values())


def test_a_deepspeed_feature_switched_off_makes_no_groups() -> None:
    def kinds(value: str) -> list[str]:
        options = {"zero_quantized_gradients": value}
        return [
            kind.name for kind in frameworks.layout("deepspeed", Sizes(16, options=options)).kinds
        ]

    assert "local" in kinds("true")
    assert "local" not in kinds("false")


def test_a_lone_stage_is_in_its_own_pair_once() -> None:
    made = asked("deepspeed 4")
    assert made.groups("p2p").lists() == [[0, 0], [1, 1], [2, 2], [3, 3]]
    assert made.groups_of(2)["p2p"] == [[2, 2]]
    assert made.numbers_of("p2p", 2) == [2]


def test_a_rank_within_an_unsorted_row_is_the_one_that_torch_gives() -> None:
    """new_group sorts: mesh.get_local_rank() of rank 3 is 1 in the row [3, 1]."""
    made = asked("devicemesh 4 mesh=[[3,1],[0,2]] mesh_dim_names=pp,tp")
    assert made.groups("tp").lists() == [[3, 1], [0, 2]]
    place = place_of(made, Placement(4, 8), 3)
    assert place.within == {"pp": [1], "tp": [1]}
    assert (place.stage, place.previous) == (1, 0)
    assert stages(made).tolist() == [0, 0, 1, 1]
    rows = "".join(groups_csv(made, ["tp"])).splitlines()[1:]
    assert rows == ["tp,0,1,3", "tp,0,0,1", "tp,1,0,0", "tp,1,1,2"]
