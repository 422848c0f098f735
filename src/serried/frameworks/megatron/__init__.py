"""Megatron-core from 0.10 on: two grids over the same ranks, one order string, twenty kinds.

Read from megatron-core 0.10.0 to 0.16.1 (PyPI) and core_v0.19.0, megatron/core/parallel_state.py
(RankGenerator and initialize_model_parallel). From 0.14 on kinds are named as the fields of
ProcessGroupCollection, before that as the module's variables (``names``).

    order  tp-cp-ep-dp-pp       fastest first; this file turns it around, nobody else knows
    dense  grid   tp · cp · dp · pp         dp  = world / (tp cp pp),   ep = 1
    expert grid   etp · ep · edp · pp       edp = world / (etp ep pp),  cp = 1

    16 ranks, tp 2, pp 4      tp [0 1] [2 3] …    dp [0 2] [1 3] [4 6] …    pp [0 4 8 12] …

From 0.19 on an axis gtp_remat stands after tp (dense) and after ep (expert). Versions before
0.10 are in ``old``, the encoder windows of 0.9 to 0.13 in ``encoder``.
"""

from __future__ import annotations

from serried.errors import InputError
from serried.frameworks.framework import (
    Framework,
    at_least,
    number,
    refuse_foreign_sizes,
    refuse_unknown_options,
    split_world,
)
from serried.frameworks.megatron.encoder import Encoder
from serried.frameworks.megatron.kinds import MegatronJob, kinds_of, limited
from serried.frameworks.megatron.names import DP_CP, dims_of, named
from serried.frameworks.megatron.order import (
    ORDER,
    TP_PP_DP,
    AxisOrder,
    check_pipelines,
    read_order,
)
from serried.frameworks.megatron.rules import (
    ARGUMENTS,
    check_arguments,
    check_instances,
    check_sharp,
    check_virtual_stages,
    findings_of,
    refuse_options_of_other_versions,
)
from serried.mesh import Conventions, Layout, Mesh
from serried.mesh.sizes import Sizes

OPTIONS = {
    "use_tp_pp_dp_mapping": "true puts data parallelism outside pipelines (default false)",
    "virtual_pipeline_model_parallel_size": "model chunks per rank (default none)",
    "allow_repeated_axes": "true lets an order name an axis twice, as the package does",
    "names": "fields, variables or recorded: what kinds are called "
    "(default: fields; variables before 0.14)",
    "pipeline_model_parallel_split_rank": "first decoder stage, until 0.13 (default none)",
    "encoder_tensor_model_parallel_size": "tp of a separate encoder, 0.9 to 0.13 (default 0)",
    "encoder_pipeline_model_parallel_size": "pp of a separate encoder, 0.9 to 0.13 (default 0)",
    "num_distributed_optimizer_instances": "copies of the sharded optimizer state (default 1)",
    "hierarchical_context_parallel_sizes": "levels of the context group, such as '2 4'",
    "hybrid_context_parallel": "true adds context groups of 2, 4, 8 … (default false)",
    "create_gloo_process_groups": "false leaves out the gloo twins (default true)",
    "create_all_gather_group": "true adds a second dp_cp for all-gathers, 0.16 and 0.17 (false)",
    "use_sharp": "true lets the network reduce one group kind (default false)",
    "sharp_enabled_group": "dp or dp_replica: which kind SHARP serves",
    "rank_offset": "first rank of this module's window, from 0.17 on (default 0)",
    "local_world_size": "ranks of this module's window, from 0.17 on (default the world)",
    "gtp_remat_size": "weight shards beyond tp, from 0.19 on (default 1)",
    "expert_gtp_remat_size": "expert weight shards beyond etp, from 0.19 on (default 1)",
} | ARGUMENTS


def layout(sizes: Sizes, version: str) -> Layout:
    """Returns Megatron's layout; raises InputError wherever Megatron-core would refuse."""
    refuse_unknown_options(sizes, "megatron", OPTIONS)
    refuse_foreign_sizes(sizes, "megatron", ("tp", "cp", "pp", "dp", "ep", "etp"))
    refuse_options_of_other_versions(sizes, version)
    check_arguments(sizes)
    # Until 0.9 there is one grid, on which experts are cut from data parallelism.
    if not at_least(version, "0.10"):
        from serried.frameworks.megatron import old

        return old.layout(sizes, version)
    encoder = Encoder.of(sizes, version)
    order = read_order(sizes, with_gtp=at_least(version, "0.19"))
    job = _job(sizes, version, encoder)
    check_virtual_stages(sizes)
    check_sharp(sizes, job)
    meshes = _meshes(job, order, encoder)
    check_pipelines(order, meshes, job.pp, dp=job.dp, edp=job.edp, strict=at_least(version, "0.11"))
    kinds = kinds_of(sizes, job)
    if order.is_repeated:
        kinds = limited(kinds, meshes, job)
    if encoder.is_used:
        from serried.frameworks.megatron.join import with_encoder  # few jobs have an encoder

        meshes, kinds = with_encoder(kinds, meshes, encoder, order, version)
    kinds = named(kinds, sizes, version)
    return Layout(
        framework="megatron",
        version=version,
        world_size=sizes.world_size,
        sizes=_sizes(job),
        order=order.text,
        meshes=meshes,
        kinds=kinds,
        dims=dims_of(kinds),
        dp_with_cp=next(kind.name for kind in kinds if kind.name in DP_CP),
        findings=(*order.findings, *findings_of(sizes, kinds, job), *encoder.findings(kinds)),
    )


def _sizes(job: MegatronJob) -> dict[str, int]:
    sizes = {"tp": job.tp, "cp": job.cp, "pp": job.pp, "dp": job.dp}
    sizes |= {"ep": job.ep, "etp": job.etp, "edp": job.edp}
    return sizes | ({"gtp_remat": job.gtp, "expert_gtp_remat": job.egtp} if job.has_gtp else {})


def _job(sizes: Sizes, version: str, encoder: Encoder) -> MegatronJob:
    """Returns the sizes of the job, derived ones included; refuses those that do not divide."""
    window, offset = _window(sizes)
    gtp, egtp = number(sizes, "gtp_remat_size", 1), number(sizes, "expert_gtp_remat_size", 1)
    etp = sizes.tp if sizes.etp is None else sizes.etp
    instances = number(sizes, "num_distributed_optimizer_instances", 1)
    if encoder.is_used:
        # Encoder ranks come first: the decoder's window begins behind them and is so much smaller.
        dp = encoder.data_parallel(sizes)
        window -= encoder.num_ranks(dp)
    else:
        factors = {"tp": sizes.tp, "cp": sizes.cp, "pp": sizes.pp, "gtp_remat": gtp}
        dp = split_world(window, factors, sizes.dp)
    experts = {"pp": sizes.pp, "etp": etp, "ep": sizes.ep, "expert_gtp_remat": egtp}
    edp = split_world(window, experts, None)
    job = MegatronJob(
        version=version,
        world=window,
        offset=encoder.num_ranks(dp) if encoder.is_used else offset,
        tp=sizes.tp,
        cp=sizes.cp,
        pp=sizes.pp,
        dp=dp,
        ep=sizes.ep,
        etp=etp,
        edp=edp,
        gtp=gtp,
        egtp=egtp,
        instances=instances,
    )
    check_instances(job)
    if encoder.is_used:
        encoder.check(job)
    return job


def _window(sizes: Sizes) -> tuple[int, int]:
    """Returns how many ranks the module owns and the first of them."""
    offset = number(sizes, "rank_offset", 0, least=0)
    window = number(sizes, "local_world_size", sizes.world_size - offset)
    if offset + window > sizes.world_size or window < 1:
        raise InputError(
            "a window of {window} ranks from rank {offset} on leaves the world of {world}; "
            "rank_offset + local_world_size is at most {world}",
            window=window,
            offset=offset,
            world=sizes.world_size,
        )
    return window, offset


def _meshes(job: MegatronJob, order: AxisOrder, encoder: Encoder) -> dict[str, Mesh]:
    dense = {"tp": job.tp, "gtp_remat": job.gtp, "cp": job.cp, "ep": 1, "dp": job.dp, "pp": job.pp}
    expert = {"tp": job.etp, "cp": 1, "ep": job.ep, "gtp_remat": job.egtp}
    expert |= {"dp": job.edp, "pp": job.pp}
    return {
        "dense": order.mesh(dense, job.offset, gtp_after="tp"),
        "expert": order.mesh(expert, job.offset, gtp_after="ep"),
    }


TRAFFIC_SETTINGS = {
    "sequence_parallel": ("true", "false"),
    "cp_comm_type": ("p2p", "all_gather", "a2a", "a2a+p2p"),
    "moe_token_dispatcher_type": ("allgather", "alltoall", "alltoall_seq", "flex"),
}
"""Settings on which what travels depends, but no group, with their values."""

TRAFFIC_ABOUT = {
    "sequence_parallel": "true splits activations over tp too: all-gather, reduce-scatter",
    "cp_comm_type": "p2p, all_gather, a2a or a2a+p2p: how K and V travel (default p2p)",
    "moe_token_dispatcher_type": "allgather, alltoall or flex (default allgather)",
}


MEGATRON = Framework(
    name="megatron",
    title="Megatron-core",
    version="0.16.1",
    source="megatron-core megatron/core/parallel_state.py",
    dims=("dp", "tp", "pp", "cp", "ep"),
    options=OPTIONS | TRAFFIC_ABOUT,
    default_order=ORDER,
    orders=(ORDER, TP_PP_DP),
    make=layout,
    traffic_settings=TRAFFIC_SETTINGS,
    versions=(
        *("0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "0.9.0", "0.10.0", "0.11.0", "0.12.0"),
        *("0.13.0", "0.14.0", "0.15.0", "0.16.1", "0.17.0", "0.18.0", "0.19.0"),
    ),
    conventions=Conventions(divides_layers=True),
)
