"""DeepSpeed's expert groups, native and AutoEP, in their five layouts and the folded one.

Read from deepspeed 0.19.8: utils/groups.py (_create_expert_and_data_parallel,
_get_expert_parallel_ranks) and module_inject/auto_ep_folding.py. Fastest axis first:

    tp 1                           ep  edp pp         expert [0 1 2 3]  expert_data [0 4 8 12]
    tp 1, data before expert       edp ep  pp         expert [0 4 8 12] expert_data [0 1 2 3]
    tp > 1 (Megatron's mpu)        tp  ep  edp pp     expert [0 2 4 6]  expert_data [0 8]
    tp > 1, data before expert     tp  edp ep  pp
    Ulysses (sp > 1)               ep  edp pp, over neighbouring ranks
    AutoEP + AutoTP                tp contiguous; ep contiguous across the tp lanes
"""

from __future__ import annotations

from serried.errors import InputError, listed
from serried.frameworks.deepspeed_feature import Feature, require_divides
from serried.frameworks.framework import Sizes, divisors, number, switch
from serried.mesh import GroupKind, Mesh

EXPERT, EXPERT_DATA = "other experts", "same experts, other tokens"


def mixture(sizes: Sizes, version: str) -> Feature:
    """Returns the expert groups of ``MoE(ep_size=…)``; raises InputError where refused."""
    data_first = switch(sizes, "use_data_before_expert_parallel")
    sp = number(sizes, "sequence_parallel_size", 1)
    if sp > 1 and data_first:
        raise InputError(
            "use_data_before_expert_parallel=true does not go with "
            "sequence_parallel_size={sp}; leave one of them out",
            sp=sp,
        )
    require_divides("pp", sizes.pp, sizes.world_size)
    lanes = sizes.tp if sp == 1 else 1
    stage = sizes.world_size // sizes.pp
    require_divides("tp", lanes, stage)
    require_divides("ep", sizes.ep, stage // lanes)
    edp = stage // lanes // sizes.ep
    inner = {"ep": sizes.ep, "edp": edp} if data_first else {"edp": edp, "ep": sizes.ep}
    mesh = Mesh({"pp": sizes.pp} | inner | {"lane": lanes})
    kinds = [
        GroupKind("expert", ("ep",), "expert", about=EXPERT, by=("pp", "lane", "edp")),
        GroupKind("expert_data", ("edp",), "expert", about=EXPERT_DATA, by=("pp", "lane", "ep")),
    ]
    if lanes == 1 and sp == 1:
        kinds.reverse()
    dims = {"ep": "expert", "dp": "expert_data"}
    return Feature({"expert": mesh}, tuple(kinds), dims, order="lane,ep,edp,pp")


def folded(sizes: Sizes, version: str) -> Feature:
    """Returns the groups of AutoEP folded with AutoTP; raises InputError where refused."""
    tp = number(sizes, "autotp_size", sizes.tp)
    ep = number(sizes, "autoep_size", sizes.ep)
    etp = number(sizes, "expert_tensor_parallel_size", 1)
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
    meshes = {
        "dense": Mesh({"pp": sizes.pp, "dp": stage // tp, "tp": tp}),
        "expert": Mesh({"pp": sizes.pp, "edp": stage // ep, "ep": ep}),
    }
    kinds = (
        GroupKind("tp", ("tp",), about="parts of every layer"),
        GroupKind("dense_dp", ("dp",), about="same dense weights"),
        GroupKind("ep", ("ep",), "expert", about=EXPERT),
        GroupKind("edp", ("edp",), "expert", about=EXPERT_DATA),
    )
    return Feature(meshes, kinds, {"dp": "dense_dp", "tp": "tp", "ep": "ep"}, order="pp,dp,tp")


def _check_folding(sizes: Sizes, *, tp: int, ep: int, etp: int) -> None:
    if etp != 1:
        raise InputError(
            "expert_tensor_parallel_size={etp} is reserved; AutoEP takes 1 only", etp=etp
        )
    if tp == 1:
        return
    sp = number(sizes, "sequence_parallel_size", 1)
    refused = {
        "pp={value}": (sizes.pp, sizes.pp > 1),
        "sequence_parallel_size={value}": (sp, sp > 1),
        "autoep_size={value}": (ep, ep == 1),
        "ZeRO stage {value}": (sizes.zero, sizes.zero == 3),
        "use_data_before_expert_parallel={value}": (
            "true",
            switch(sizes, "use_data_before_expert_parallel"),
        ),
    }
    for name, (value, is_refused) in refused.items():
        if is_refused:
            raise InputError(
                "AutoEP with autotp_size={tp} does not go with {setting}; it needs pp=1, no "
                "sequence parallelism, autoep_size above 1, a ZeRO stage below 3, experts first",
                tp=tp,
                setting=name.format(value=value),
            )
