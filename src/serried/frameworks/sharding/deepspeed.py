"""What DeepSpeed shards: ZeRO stages 0 to 3, ZeRO++ hpZ and MiCS.

Read from deepspeed 0.18.9 and 0.19.8: runtime/zero/stage_1_and_2.py (real_dp_process_group,
nccl_start_alignment_factor), runtime/zero/stage3.py, runtime/zero/partition_parameters.py
(ds_secondary_tensor), runtime/zero/mics.py (0.18.9) and runtime/pipe/engine.py.

    stage 1, 2, 3   over the data parallel group; experts over theirs (expert_data or edp)
    hpZ             backward gathers within zero_param_intra, from one more copy of the weights
    MiCS            all three over shard; gradients are summed again across replicate
"""

from __future__ import annotations

from serried.finding import Sentence, said
from serried.frameworks.sharding.cuts import by_stage, named, over, refuse_in_pipeline
from serried.mesh import Layout
from serried.mesh.sharding import WHOLE, Cut, Sharding, StateCuts
from serried.mesh.sizes import Sizes

SOURCE = "deepspeed {version} runtime/zero/stage_1_and_2.py, stage3.py"
DATA = ("sequence_data", "data_parallel", "dense_dp", "data", "expert_data")


def settled(framework: str, version: str, sizes: Sizes) -> Sizes:
    """Returns the sizes as they are: a stage is a setting of its own; refuses it in pipelines."""
    refuse_in_pipeline("deepspeed", sizes.zero, sizes.pp, "runtime/pipe/engine.py")
    return sizes


def sharding(layout: Layout) -> Sharding:
    """Returns what DeepSpeed's ranks share; hpZ and MiCS are of stage 3 where none is given."""
    shard, near = named(layout, "shard"), named(layout, "zero_param_intra")
    stage = int(layout.settings.get("zero", 3 if shard or near else 0))
    return Sharding(
        stage,
        _dense(layout, stage, shard, near),
        spelled=f"zero_optimization.stage: {stage}",
        source=SOURCE.format(version=layout.version),
        expert=_expert(layout, stage),
        levels=tuple(filter(None, (named(layout, "inter_node"), named(layout, "intra_node")))),
        padding=_padding(stage),
        notes=tuple(_notes(stage, shard, near)),
    )


def _dense(layout: Layout, stage: int, shard: str, near: str) -> StateCuts:
    if shard and stage == 3:
        copies = named(layout, "replicate")
        return by_stage(
            3,
            weights="dense",
            data=over(layout, shard, copies),
            cut=over(layout, shard),
            across=copies,
        )
    kind = named(layout, *DATA)
    data = over(layout, kind) if kind else Cut((), layout.world_size)
    second = over(layout, near) if near and stage == 3 else WHOLE
    return by_stage(stage, weights="dense", data=data, cut=data, near=second)


def _expert(layout: Layout, stage: int) -> StateCuts | None:
    kind = named(layout, "expert_data", "edp")
    if not kind:
        return None
    data = over(layout, kind)
    return by_stage(stage, weights="expert", data=data, cut=data)


def _padding(stage: int) -> Sentence | None:
    if stage == 3:
        return said("each parameter is padded to a multiple of the ranks that share it")
    if stage:
        return said("each parameter group is padded to a multiple of 2 x the ranks that share it")
    return None


def _notes(stage: int, shard: str, near: str) -> list[Sentence]:
    if stage < 3 and (shard or near):
        setting = "mics_shard_size" if shard else "zero_hpz_partition_size"
        return [said("{setting} does nothing below ZeRO stage 3", setting=setting)]
    return []
