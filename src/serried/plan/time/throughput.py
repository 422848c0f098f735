"""A step's time as throughput: tokens per second and GPU, FLOP/s, MFU and HFU, by convention.

    MFU = FLOPs of the model on a step's tokens / (seconds x GPUs x peak)    by a named convention
    HFU = FLOPs that run, recomputation counted / the same                   causal keys

One step gives different figures by different conventions: a printed MFU without one cannot be
compared. The peak is that of the format that linear layers are multiplied in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from serried.plan.model.flops import CONVENTIONS, hardware_flops, model_flops, utilization
from serried.plan.request import PlanRequest
from serried.plan.time.rates import peak

_BITS = {"fp8": "8", "fp8-ds": "8", "fp8-cs": "8", "mxfp8": "8", "nvfp4": "4"}


@dataclass(frozen=True)
class StepThroughput:
    """Holds what a job of some seconds a step reaches."""

    tokens_per_s: float
    """Tokens of the whole job."""
    tokens_per_s_gpu: float
    peak_flops: float
    """What MFU is a share of: a GPU's peak in the job's number format."""
    mfu: Mapping[str, float]
    """By convention of ``plan.model.flops``, as a share."""
    hfu: float
    """Share of the peak that really ran, recomputation counted and hidden keys not."""

    def flops_per_gpu(self, convention: str) -> float:
        """Returns FLOP/s of each GPU by a convention."""
        return self.mfu[convention] * self.peak_flops


def throughput(request: PlanRequest, step_s: float) -> StepThroughput:
    """Returns tokens, MFU and HFU of a job whose step takes so many seconds.

    >>> from serried.plan.catalog import cluster_named, model_named
    >>> job = PlanRequest(model_named("llama3-8b"), cluster_named("h100"), global_batch=16)
    >>> found = throughput(job, 4.0)
    >>> round(found.tokens_per_s_gpu), round(found.mfu["causal"], 3), round(found.mfu["full"], 3)
    (16384, 0.799, 0.853)
    """
    gpus = request.degrees.world_size
    tokens = float(request.sequence * request.global_batch)
    most = peak(request.cluster.gpu, _BITS.get(request.compute, "16"))

    def share(flops: float) -> float:
        return utilization(flops, tokens=tokens, seconds=step_s, gpus=gpus, peak_flops=most)

    return StepThroughput(
        tokens_per_s=tokens / step_s,
        tokens_per_s_gpu=tokens / step_s / gpus,
        peak_flops=most,
        mfu={by: share(model_flops(request.model, request.sequence, by)) for by in CONVENTIONS},
        hfu=share(hardware_flops(request.model, request.sequence, request.recompute.kind)),
    )
