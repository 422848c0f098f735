"""What each framework shards under each ZeRO stage: over which kind, how many ranks, how often."""

from __future__ import annotations

import math

import pytest

from serried.errors import InputError
from serried.finding import Sentence
from serried.frameworks import FRAMEWORKS
from serried.frameworks.sharding import MODULES
from serried.mesh.sharding import Cut, Sharding, StateCuts
from tests.frameworks.asking import asked

# P parameters, G gradients, O optimizer state: the kind and how many ranks share one copy, x how
# many copies; then whatever joins the copies.
SHARDED = {
    # Megatron: the distributed optimizer, its instances, Megatron-FSDP, torch's FSDP2
    "megatron 64 tp=4 pp=2 cp=2 zero=0": "0: P x8 G x8 O x8",
    "megatron 64 tp=4 pp=2 cp=2 zero=1": "1: P x8 G x8 O dp_cp/8",
    "megatron 64 tp=4 pp=2 cp=2 zero=2": "2: P x8 G dp_cp/8 O dp_cp/8",
    "megatron 64 tp=4 pp=2 cp=2 zero=3": "3: P dp_cp/8 G dp_cp/8 O dp_cp/8",
    "megatron 64 tp=4 cp=2 ep=4 zero=1": "1: P x16 G x16 O dp_cp/16; P x4 G x4 O expt_dp/4",
    "megatron 64 tp=4 ep=2 zero=1 num_distributed_optimizer_instances=2": (
        "1: P x16 G x16 O intra_dp_cp/8 x2 by inter_dist_opt; "
        "P x8 G x8 O intra_expt_dp/4 x2 by inter_dist_opt"
    ),
    "megatron 16 num_distributed_optimizer_instances=4": (
        "1: P x16 G x16 O intra_dp_cp/4 x4 by inter_dist_opt"
    ),
    "megatron@0.9.0 16 tp=2 zero=1": "1: P x8 G x8 O _DATA_PARALLEL_GROUP_WITH_CP/8",
    "megatron 16 tp=2 use_torch_fsdp2=true": "3: P dp_cp/8 G dp_cp/8 O dp_cp/8",
    # DeepSpeed: stages, Ulysses, experts, hpZ, MiCS
    "deepspeed 16 pp=4 zero=1": "1: P x4 G x4 O data/4",
    "deepspeed 16 zero=2": "2: P x16 G data/16 O data/16",
    "deepspeed 16 zero=3": "3: P data/16 G data/16 O data/16",
    "deepspeed 16 sequence_parallel_size=2 zero=3": (
        "3: P sequence_data/16 G sequence_data/16 O sequence_data/16"
    ),
    "deepspeed 16 ep=4 zero=2": (
        "2: P x16 G data/16 O data/16; P x4 G expert_data/4 O expert_data/4"
    ),
    "deepspeed 16 autotp_size=2 autoep_size=4 zero=3": (
        "3: P dense_dp/8 G dense_dp/8 O dense_dp/8; P edp/4 G edp/4 O edp/4"
    ),
    "deepspeed 16 zero_hpz_partition_size=8": (
        "3: P data/16 G data/16 O data/16, near zero_param_intra/8"
    ),
    "deepspeed 16 zero_hpz_partition_size=8 zero=1": "1: P x16 G x16 O data/16",
    "deepspeed@0.18.9 16 mics_shard_size=4": (
        "3: P shard/4 x4 G shard/4 x4 O shard/4 x4 by replicate"
    ),
    "deepspeed@0.18.9 16 mics_shard_size=4 zero=1": "1: P x16 G x16 O data/16",
    # torch's FSDP2, whoever calls it
    "fsdp 16": "3: P dp_shard/16 G dp_shard/16 O dp_shard/16",
    "fsdp 16 zero=2": "2: P dp_shard/16 G dp_shard/16 O dp_shard/16, kept",
    "fsdp 16 zero=0": "0: P x16 G x16 O x16 by dp_replicate",
    "fsdp 16 sharding_strategy=HYBRID_SHARD": (
        "3: P dp_shard/8 x2 G dp_shard/8 x2 O dp_shard/8 x2 by dp_replicate"
    ),
    "fsdp 16 zero=2 sharding_strategy=HYBRID_SHARD_ZERO2": (
        "2: P dp_shard/8 x2 G dp_shard/8 x2 O dp_shard/8 x2 by dp_replicate, kept"
    ),
    "torchtitan 16 tp=2 ep=4 zero=3": (
        "3: P dp_shard/8 G dp_shard/8 O dp_shard/8; P efsdp/4 G efsdp/4 O efsdp/4"
    ),
    "torchtitan 16 pp=2": "2: P dp_shard/8 G dp_shard/8 O dp_shard/8, kept",
    "torchtitan 16 pp=2 zero=3": "3: P dp_shard/8 G dp_shard/8 O dp_shard/8",
    "torchtitan 16 tp=2 zero=0": "0: P x8 G x8 O x8 by dp_replicate",
    "torchtitan 16 cp=2 data_parallel_replicate_degree=2": (
        "3: P dp_shard+cp/8 x2 G dp_shard+cp/8 x2 O dp_shard+cp/8 x2 by dp_replicate"
    ),
    "accelerate 16 dp_replicate_size=2 dp_shard_size=4 cp=2": (
        "3: P dp_shard_cp/8 x2 G dp_shard_cp/8 x2 O dp_shard_cp/8 x2 by dp_replicate"
    ),
    "accelerate 16 tp=2 zero=3": "3: P dp_shard_cp/8 G dp_shard_cp/8 O dp_shard_cp/8",
    "accelerate 16 dp=16 zero=0": "0: P x16 G x16 O x16 by dp_replicate",
    "accelerate 16 dp_replicate_size=16 zero=3": "0: P x16 G x16 O x16 by dp_replicate",
    "accelerate 16 sp_size=4 zero=1": "1: P x16 G x16 O sequence_data/16",
    # InternLM and InternEvo: zero1, FSDP, weight parallelism
    "internlm 16 tp=2": "1: P x8 G x8 O zero1/8",
    "internlm 16 tp=2 zero1=2": "1: P x8 G x8 O zero1/2 x4",
    "internlm 16 tp=2 zero=0": "0: P x8 G x8 O x8",
    "internlm 16 tp=2 zero=3": "3: P zero1/8 G zero1/8 O zero1/8",
    "internlm 16 tp=2 zero=3 zero1=4": ("3: P zero1/4 x2 G zero1/4 x2 O zero1/4 x2 by zero3_dp"),
    "internevo 16 tp=4 pp=2 zero1=2 tensor.mode=isp weight.size=2": (
        "3: P weight/2 x4 G weight/2 x4 O weight+zero1/4 x2 by weight_data"
    ),
    "internevo 16 tp=2 num_experts=4": "1: P x8 G x8 O zero1/8; P x2 G x2 O x2",
    # ColossalAI's plugins
    "colossalai 16 tp=2 zero=2": "2: P x8 G dp/8 O dp/8",
    "colossalai 16 tp=2 sp_size=2 sequence_parallelism_mode=all_to_all zero=1": (
        "1: P x8 G x8 O mixed_dp(dp+sp)/8"
    ),
    "colossalai 16 ep=4 zero=2": "1: P x16 G x16 O dp/16; P x4 G x4 O moe_dp/4",
    "colossalai 16 plugin=gemini extra_dp_size=2": (
        "3: P zero/8 x2 G zero/8 x2 O zero/8 x2 by extra_dp"
    ),
    "colossalai 16 plugin=low_level_zero zero=2": "2: P x16 G inner_dp/16 O inner_dp/16",
    # nanotron and Paddle
    "nanotron 16 tp=2 cp=2 zero=1": "1: P x8 G x8 O dp_pg/4 x2 by cp_pg",
    "nanotron@0.4 16 tp=2 zero=1": "1: P x8 G x8 O dp_pg/8",
    "paddle 16 tp=2 sharding_degree=4": "1: P x8 G x8 O sharding/4 x2 by data",
    "paddle 16 tp=2 sharding_degree=8 zero=3": "3: P sharding/8 G sharding/8 O sharding/8",
    "paddle 16 tp=2 zero=1": "1: P x8 G x8 O x8 by data",
}


def of(line: str) -> Sharding:
    found = asked(line).sharding
    assert found is not None
    return found


def drawn(found: Sharding) -> str:
    return f"{found.stage}: " + "; ".join(map(drawn_cuts, found.each))


def drawn_cuts(cuts: StateCuts) -> str:
    def one(name: str, cut: Cut) -> str:
        copies = cuts.data.ranks // cut.ranks
        at = [f"{'+'.join(cut.over)}/{cut.ranks}"] if cut.ranks > 1 else []
        return " ".join([name, *at, *([f"x{copies}"] if copies > 1 else [])])

    states = zip("PGO", (cuts.parameters, cuts.gradients, cuts.optimizer), strict=True)
    text = " ".join(one(name, cut) for name, cut in states)
    text += f" by {cuts.across}" if cuts.across else ""
    text += f", near {'+'.join(cuts.near.over)}/{cuts.near.ranks}" if cuts.near.ranks > 1 else ""
    return text + (", kept" if cuts.is_kept else "")


@pytest.mark.parametrize(("line", "picture"), SHARDED.items())
def test_a_stage_shards_over_the_framework_s_own_groups(line: str, picture: str) -> None:
    assert drawn(of(line)) == picture


@pytest.mark.parametrize("line", SHARDED)
def test_cuts_and_copies_are_whole_groups_of_the_layout(line: str) -> None:
    layout, found = asked(line), of(line)
    for cuts in found.each:
        for cut in (cuts.data, cuts.parameters, cuts.gradients, cuts.optimizer, cuts.near):
            sizes = [layout.groups(kind).sizes.tolist() for kind in cut.over]
            assert all(len(set(each)) == 1 for each in sizes)
            # A cut of one rank only names the kind that would share it.
            if cut.ranks > 1:
                assert math.prod(each[0] for each in sizes) == cut.ranks
            assert cuts.data.ranks % cut.ranks == 0
        assert not cuts.across or layout.kind(cuts.across)


@pytest.mark.parametrize("line", SHARDED)
def test_data_ranks_are_what_tensor_and_pipeline_ranks_leave(line: str) -> None:
    layout, dense = asked(line), of(line).dense
    sizes = layout.sizes
    if "weight" in dense.data.over:  # weight parallelism uses tensor ranks for batches of weights
        assert dense.data.ranks * sizes["pp"] == layout.world_size
    else:
        assert dense.data.ranks * sizes.get("tp", 1) * sizes.get("pp", 1) == layout.world_size


@pytest.mark.parametrize("line", SHARDED)
def test_a_later_stage_cuts_what_the_one_before_cuts(line: str) -> None:
    for cuts in of(line).each:
        ranks = cuts.parameters.ranks, cuts.gradients.ranks, cuts.optimizer.ranks
        assert sorted(ranks) == list(ranks)


@pytest.mark.parametrize("name", [name for name in FRAMEWORKS if name in MODULES])
def test_every_framework_that_knows_zero_answers_for_each_stage(name: str) -> None:
    """Each stage has an answer, or a sentence that says which stages there are."""
    told = set()
    for stage in range(4):
        try:
            told.add(of(f"{name} 16 zero={stage}").spelled)
        except InputError as refused:
            told.add(str(refused))
    assert len(told) == 4


@pytest.mark.parametrize("name", ["devicemesh", "custom"])
def test_a_mesh_of_the_user_s_own_leaves_sharding_to_the_program(name: str) -> None:
    assert asked(f"{name} 16 zero=3").sharding is None


def sentences(line: str) -> list[str]:
    """Returns the templates of all that a sharding says in words."""
    found = of(line)
    said: list[Sentence] = [*found.notes, *([found.padding] if found.padding else [])]
    return [each.template for each in said]
