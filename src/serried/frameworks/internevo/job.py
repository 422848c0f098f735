"""The sizes of an InternEvo job, derived ones included, and what InternEvo refuses of them.

Read from the PyPI wheels InternEvo 0.3.10 to 0.5.2 and the develop branch, as ``internevo``:
internlm/core/context/parallel_context.py (_set_parallel_size_from_config, check_sanity) and
internlm/initialize/launch.py (args_sanity_check).
"""

from __future__ import annotations

from dataclasses import dataclass

from serried.errors import InputError
from serried.frameworks.framework import choice, number, split_world, switch
from serried.frameworks.internlm import (
    check_ep,
    check_launch,
    check_zero1,
    expert_size,
    nettest_size,
    num_experts,
)
from serried.mesh.sizes import Sizes

DEVELOP_2024, DEVELOP_2025 = "develop-2024-12", "develop-2025-01"


@dataclass(frozen=True)
class InternEvoJob:
    """Holds every size of one InternEvo job, derived ones included."""

    world: int
    mode: str
    tp: int
    pp: int
    dp: int
    wp: int
    wdp: int
    zero1: int
    num_experts: int
    ep: int
    etp: int
    ewp: int
    edp: int
    nettest: int

    @property
    def is_isp(self) -> bool:
        """Whether weights are shared along the weight grid."""
        return self.mode == "isp"


def job_of(sizes: Sizes, version: str) -> InternEvoJob:
    """Returns the job that the sizes and settings make; raises InputError where refused."""
    dp = split_world(sizes.world_size, {"tp": sizes.tp, "pp": sizes.pp}, sizes.dp)
    mode = choice(sizes, "tensor.mode", ("mtp", "msp", "fsp", "isp"))
    wp = number(sizes, "weight.size", 1)
    wdp = split_world(sizes.world_size, {"pp": sizes.pp, "weight.size": wp}, None)
    # In mode isp the optimizer is sharded over weight_data groups, in all others over data groups.
    whole, name = (wdp, "weight_data") if mode == "isp" else (dp, "dp")
    zero1 = whole if sizes.zero1 in (None, -1) else max(1, sizes.zero1 or 0)
    check_zero1(zero1, whole, name)
    experts = num_experts(sizes)
    fits = expert_size(experts, dp)
    ep, etp, ewp, edp = fits, sizes.tp, 1, dp // fits
    if version.startswith("develop"):
        ep, etp, ewp, edp = _expert_grid(sizes, mode, experts, dp)
    check_ep(sizes, ep)
    return InternEvoJob(
        world=sizes.world_size,
        mode=mode,
        tp=sizes.tp,
        pp=sizes.pp,
        dp=dp,
        wp=wp,
        wdp=wdp,
        zero1=zero1,
        num_experts=experts,
        ep=ep,
        etp=etp,
        ewp=ewp,
        edp=edp,
        nettest=nettest_size(sizes.nettest),
    )


def _expert_grid(sizes: Sizes, mode: str, experts: int, dp: int) -> tuple[int, int, int, int]:
    """Returns expert, expert tensor, expert weight and expert data size of the develop branch."""
    etp = 1 if switch(sizes, "expert.no_tp") else sizes.tp
    asked = number(sizes, "expert.size", -1)
    # -1 asks for as many expert ranks as a stage has room for, and no more than there are experts.
    ep = min(dp * sizes.tp // etp, experts) if asked == -1 else asked
    ewp = number(sizes, "expert_weight.size", 1)
    if experts % ep:
        raise InputError(
            "num_experts={experts} cannot be placed evenly on expert.size={ep}; "
            "expert.size divides num_experts",
            experts=experts,
            ep=ep,
        )
    shared = {"expert_weight.size": ewp} if mode == "isp" else {"expert tensor": etp}
    factors = {"pp": sizes.pp} | shared | {"expert.size": ep}
    return ep, etp, ewp, split_world(sizes.world_size, factors, None)


def refuse_develop_options(sizes: Sizes, version: str) -> None:
    """Raises InputError for a setting of the develop branch where a wheel is asked for."""
    if version.startswith("develop"):
        return
    for key in sizes.options:
        if key.startswith(("expert.", "expert_", "sequence_2D.", "num_kv_")):
            raise InputError(
                "internevo {version} has no setting '{key}'; {known} has it",
                version=version,
                key=key,
                known=DEVELOP_2025,
            )


def check_fsdp(sizes: Sizes, job: InternEvoJob, version: str) -> None:
    """Raises InputError for sharded parameters or few heads where the version fails with them."""
    heads = number(sizes, "num_kv_attention_heads", job.tp)
    if version == DEVELOP_2025 and heads < job.tp:
        raise InputError(
            "internevo {version} fails with num_kv_attention_heads={heads} below tp={tp}; "
            "heads of at least tp work",
            version=version,
            heads=heads,
            tp=job.tp,
        )
    if not switch(sizes, "zero1.fsdp"):
        return
    if version == DEVELOP_2025:
        raise InputError(
            "internevo {version} fails with zero1.fsdp=true (KeyError ZERO3_DP); "
            "{other} or a wheel can do it",
            version=version,
            other=DEVELOP_2024,
        )
    check_zero1(job.zero1, job.dp, "dp")


def check_starts(sizes: Sizes, job: InternEvoJob) -> None:
    """Raises InputError where internlm/initialize/launch.py refuses."""
    check_launch(sizes, zero1_fits=sizes.zero1 in (None, -1, job.dp))
    if switch(sizes, "zero1.fsdp") and job.is_isp:
        raise InputError("zero1.fsdp=true does not go with tensor.mode=isp; choose one of them")
    if job.wp > 1 and not job.is_isp:
        raise InputError(
            "weight.size={size} needs tensor.mode=isp; the mode is {mode}",
            size=job.wp,
            mode=job.mode,
        )
    chunks = number(sizes, "num_chunks", 1)
    if chunks > 1 and not switch(sizes, "pipeline.interleaved_overlap"):
        raise InputError(
            "num_chunks={chunks} needs pipeline.interleaved_overlap=true", chunks=chunks
        )
