"""DeepSpeed's expert groups: those of its own MoE layer, and those of AutoEP.

Read from deepspeed 0.15.0 to 0.19.8: moe/layer.py (_create_process_groups), utils/groups.py
(_create_expert_and_data_parallel, _get_expert_parallel_ranks), runtime/engine.py
(_configure_expert_parallel, _validate_zero3_moe_compatibility) and module_inject/auto_ep*.py.
Fastest axis first; the groups are those of 16 ranks, ep 4:

    MoE layer (its default)          ep  edp pp         expert [0 1 2 3]  expert_data [0 4 8 12]
    data before expert               edp ep  pp         expert [0 4 8 12] expert_data [0 1 2 3]
    experts in tensor parts, tp 2    tp  ep  edp pp     expert [0 2 4 6]  expert_data [0 8]
    the same, data before expert     tp  edp ep  pp     expert [0 4 8 12] expert_data [0 2]
    AutoEP                           ep  edp pp, with AutoTP across its lanes

The MoE layer asks for expert tensor parallelism only where ``enable_expert_tensor_parallelism``
is set; without it expert groups run over neighbouring ranks, those of one tensor group included.
"""

from __future__ import annotations

from collections.abc import Iterator

from serried.errors import InputError, listed
from serried.frameworks.deepspeed.feature import Feature, require_divides
from serried.frameworks.framework import at_least, divisors, number, switch
from serried.mesh import GroupKind, Mesh
from serried.mesh.sizes import Sizes

EXPERT, EXPERT_DATA = "other experts", "same experts, other tokens"
DATA_FIRST = "use_data_before_expert_parallel"


def mixture(sizes: Sizes, version: str) -> Feature:
    """Returns the expert groups of ``MoE(ep_size=…)``; raises InputError where refused."""
    if sizes.zero == 3:
        raise InputError(
            "DeepSpeed's own MoE layers do not go with ZeRO stage 3; take stage 0, 1 or 2, or "
            "AutoEP from 0.19.3 on (autoep_size)"
        )
    # Without a model-parallel unit (groups.mpu) there is nothing to cut by.
    in_parts = switch(sizes, "enable_expert_tensor_parallelism") and sizes.tp * sizes.pp > 1
    require_divides("pp", sizes.pp, sizes.world_size)
    stage = sizes.world_size // sizes.pp
    require_divides("tp", sizes.tp, stage)
    lanes = sizes.tp if in_parts else 1
    if in_parts:
        # Sequence ranks are not data ranks to the model-parallel unit that is asked here.
        sp = number(sizes, "sequence_parallel_size", 1)
        require_divides("ep", sizes.ep, max(1, stage // lanes // sp))
    require_divides("ep", sizes.ep, stage // lanes)
    mesh = _grid(sizes, stage // lanes, sizes.ep, lanes)
    kinds = [
        GroupKind("expert", ("ep",), "expert", about=EXPERT, by=("pp", "lane", "edp")),
        GroupKind("expert_data", ("edp",), "expert", about=EXPERT_DATA, by=("pp", "lane", "ep")),
    ]
    if not in_parts:
        kinds.reverse()  # _create_expert_and_data_parallel makes the data groups first
    dims = {"ep": "expert", "dp": "expert_data"}
    order = ",".join(axis for axis in reversed(mesh.axes) if axis != "lane" or in_parts)
    return Feature({"expert": mesh}, tuple(kinds), dims, order=order)


def folded(sizes: Sizes, version: str) -> Feature:
    """Returns the groups of AutoEP, folded with AutoTP or not; raises InputError where refused."""
    tp = number(sizes, "autotp_size", sizes.tp)
    ep = number(sizes, "autoep_size", sizes.ep)
    _check_version(tp, version)
    # 0.19.2 does not read the setting.
    etp = number(sizes, "expert_tensor_parallel_size", 1) if at_least(version, "0.19.3") else 1
    require_divides("pp", sizes.pp, sizes.world_size)
    stage = sizes.world_size // sizes.pp
    require_divides("autotp_size", tp, stage)
    if stage % (ep * etp):
        raise InputError(
            "autoep_size={ep} x expert_tensor_parallel_size={etp} does not divide the "
            "{stage} ranks of a stage; widths that do: {fits}",
            ep=ep,
            etp=etp,
            stage=stage,
            fits=listed(divisors(stage), limit=24),
        )
    _check_folding(sizes, tp=tp, ep=ep, etp=etp)
    _check_stage_3(sizes, version, tp)
    meshes = {
        "dense": Mesh({"pp": sizes.pp, "dp": stage // tp, "tp": tp}),
        "expert": _grid(sizes, stage, ep),
    }
    experts = [
        GroupKind("edp", ("edp",), "expert", about=EXPERT_DATA, by=("pp", "ep")),
        GroupKind("ep", ("ep",), "expert", about=EXPERT, by=("pp", "edp")),
    ]
    if tp > 1 or number(sizes, "sequence_parallel_size", 1) > 1:
        experts.reverse()
    dense = (
        GroupKind("dense_dp", ("dp",), about="same dense weights"),
        GroupKind("tp", ("tp",), about="parts of every layer"),
    )
    dims = {"dp": "dense_dp", "tp": "tp", "ep": "ep"}
    return Feature(meshes, (*experts, *dense), dims, order="pp,dp,tp")


def _grid(sizes: Sizes, stage: int, ep: int, lanes: int | None = None) -> Mesh:
    """Returns the grid of experts: ``stage`` ranks of each lane in groups of ``ep``."""
    inner = {"edp": stage // ep, "ep": ep}
    if switch(sizes, DATA_FIRST):
        inner = {"ep": ep, "edp": stage // ep}
    return Mesh({"pp": sizes.pp} | inner | ({} if lanes is None else {"lane": lanes}))


# ----------------------------------------------------------------------- validity of AutoEP


def _check_version(tp: int, version: str) -> None:
    since = "0.19.3" if tp > 1 else "0.19.2"
    if at_least(version, since):
        return
    if tp > 1:
        raise InputError(
            "deepspeed {version} has no AutoEP beside AutoTP (autotp_size={tp}); 0.19.3 and newer "
            "have it",
            version=version,
            tp=tp,
        )
    raise InputError("deepspeed {version} has no AutoEP; 0.19.2 and newer have it", version=version)


def _check_folding(sizes: Sizes, *, tp: int, ep: int, etp: int) -> None:
    if etp != 1:
        raise InputError(
            "expert_tensor_parallel_size={etp} is reserved; AutoEP takes 1 only", etp=etp
        )
    sp = number(sizes, "sequence_parallel_size", 1)
    if tp == 1 and sp > 1 and switch(sizes, DATA_FIRST):
        raise InputError(
            "AutoEP with sequence_parallel_size={sp} does not go with "
            "use_data_before_expert_parallel=true; leave one of them out",
            sp=sp,
        )
    # All that follows is for folding: with AutoTP, expert groups reach across the tensor ranks.
    if tp == 1:
        return
    refused = {
        "pp={value}": (sizes.pp, sizes.pp > 1),
        "sequence_parallel_size={value}": (sp, sp > 1),
        "autoep_size={value}": (ep, ep == 1),
        f"{DATA_FIRST}={{value}}": ("true", switch(sizes, DATA_FIRST)),
    }
    for name, (value, is_refused) in refused.items():
        if is_refused:
            raise InputError(
                "AutoEP with autotp_size={tp} does not go with {setting}; it needs pp=1, no "
                "sequence parallelism, autoep_size above 1, experts first",
                tp=tp,
                setting=name.format(value=value),
            )


def _check_stage_3(sizes: Sizes, version: str, tp: int) -> None:
    """Raises InputError for what AutoEP does not do yet at ZeRO stage 3."""
    if sizes.zero != 3:
        return
    for setting, since in _beyond_stage_2(sizes, version, tp):
        if since:
            raise InputError(
                "AutoEP with {setting} does not go with ZeRO stage 3 in deepspeed {version}; "
                "{since} and newer take it, and any takes stage 0, 1 or 2",
                setting=setting,
                version=version,
                since=since,
            )
        raise InputError(
            "AutoEP at ZeRO stage 3 does not go with {setting}; leave it out, or take stage 0, 1 "
            "or 2",
            setting=setting,
        )


def _beyond_stage_2(sizes: Sizes, version: str, tp: int) -> Iterator[tuple[str, str]]:
    """Yields what stage 3 refuses, and the version that takes it where one does."""
    if not at_least(version, "0.19.3"):
        yield f"autoep_size={sizes.options.get('autoep_size', sizes.ep)}", "0.19.3"
    if tp > 1 and not at_least(version, "0.19.8"):
        yield f"autotp_size={tp}", "0.19.8"
    for key in ("sequence_parallel_size", "mics_shard_size", "zero_hpz_partition_size"):
        if number(sizes, key, 1) > 1:
            yield f"{key}={sizes.options[key]}", ""
    if switch(sizes, "zero_quantized_gradients"):
        yield "zero_quantized_gradients=true", ""
