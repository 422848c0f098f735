"""A recorded run as a job that was measured: what it asks of a plan, and how long its step took.

    recording ─┬─> sizes, schedule, microbatches ─┐
               ├─> the model's sizes              ├─> PlanRequest ─┐
               ├─> device, cores, ranks of a host ┘                ├─> constants, fitted
               └─> steps after warm-up ──────────────> seconds ────┘

``serried train --trace-dir`` records all of it. A run of another recorder says no sizes of its
model, and those are asked for. Ranks that share cores each count as their part of one: compute of
n ranks on c cores is c / n as fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from serried.errors import InputError, listed
from serried.finding import Sentence, said
from serried.mesh.layers import evenly
from serried.plan.catalog import cluster_named, cluster_names
from serried.plan.cluster.cluster import Cluster
from serried.plan.degrees import Degrees
from serried.plan.model.shape import ExpertShape, ModelShape
from serried.plan.request import PlanRequest
from serried.plan.retime.observed import step_seconds
from serried.plan.retime.own_cores import cores_of
from serried.trace.model.trace import Trace

NEEDED = ("hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab")
"""Sizes of a model without which no plan is made."""
COMPUTE: Mapping[str, str] = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "": "bf16"}
"""Formats of a plan by torch's names; bf16 where the run does not say."""


@dataclass(frozen=True)
class RecordedJob:
    """Holds the job of a run and the median seconds of its steps."""

    name: str
    request: PlanRequest
    step_s: float


def recorded_job(
    trace: Trace, *, model: ModelShape | None = None, cluster: Cluster | None = None
) -> RecordedJob:
    """Returns the job of a run; ``model`` and ``cluster`` are of runs that do not say theirs.

    Raises InputError for a run whose compute is emulated or planned, one that says neither its
    model nor its device where none is given, and one of fewer than four steps.
    """
    if trace.is_emulated or trace.is_planned:
        raise InputError(
            "run {run} has {compute} compute, which tells nothing of hardware; give a run that "
            "computed for real",
            run=trace.run,
            compute=trace.job.compute,
        )
    job = trace.job
    sizes = {axis: job.sizes.get(axis, 1) for axis in ("tp", "pp", "cp", "ep", "etp")}
    dp = job.world_size // (sizes["tp"] * sizes["pp"] * sizes["cp"])
    stages = max(sizes["pp"], int(trace.spans.stage.max(initial=0)) + 1)
    chunks = stages // sizes["pp"]
    shape = _model(trace, model)
    sequences, tokens = (job.work.get(name, 0) for name in ("sequences", "tokens"))
    if not sequences or not tokens:
        raise _untold(trace, said("sequences and tokens of a microbatch"))
    zero = int(job.training.get("zero", "0"))
    uneven = evenly(shape.layers, pp=stages).counts if shape.layers % stages else None
    request = PlanRequest(
        shape,
        _cluster(trace, cluster),
        Degrees(**sizes, dp=dp, chunks=chunks),
        framework=job.framework.partition("@")[0],
        sequence=tokens,
        micro_batch=sequences,
        global_batch=sequences * job.num_microbatches * dp,
        schedule=job.schedule,
        stage_layers=tuple(uneven) if uneven else None,
        zero=zero,
        compute=COMPUTE.get(job.training.get("dtype", ""), "bf16"),
    )
    return RecordedJob(trace.run, request, step_seconds(trace))


def _model(trace: Trace, given: ModelShape | None) -> ModelShape:
    told = trace.job.model
    if not all(told.get(name) for name in NEEDED):
        if given is None:
            raise _untold(trace, said("the sizes of its model"))
        return given
    experts = None
    if told.get("experts"):
        experts = ExpertShape(count=told["experts"], top_k=told["top_k"], ffn=told["ffn"])
    return ModelShape(
        "recorded",
        layers=trace.job.work.get("layers", 1),
        hidden=told["hidden"],
        heads=told["heads"],
        kv_heads=told["kv_heads"],
        head_dim=told["head_dim"],
        ffn=told["ffn"],
        vocab=told["vocab"],
        is_gated=bool(told.get("gated", 1)),
        is_tied=bool(told.get("tied", 0)),
        experts=experts,
    )


def _cluster(trace: Trace, given: Cluster | None) -> Cluster:
    """Returns the machine that it ran on, its ranks' shares of cores taken for what they have."""
    found = given or _by_device(trace)
    most = max(len(host.ranks) for host in trace.hosts)
    found = replace(found, gpus_per_node=most, nvlink_domain=max(most, found.nvlink_domain))
    cores = cores_of(trace)
    share = min(1.0, cores / most) if cores else 1.0
    if share == 1.0:
        return found
    gpu = found.gpu
    slower = replace(
        gpu,
        peak_flops={name: flops * share for name, flops in gpu.peak_flops.items()},
        memory_bytes_per_s=gpu.memory_bytes_per_s * share,
    )
    return replace(found, gpu=slower)


def _by_device(trace: Trace) -> Cluster:
    device = trace.job.device
    if not device:
        raise _untold(trace, said("what it ran on"))
    words = device.lower().replace("-", " ").split()
    named = [name for name in cluster_names() if name in words]
    for word in (*named, *(word for word in words if any(each.isdigit() for each in word))):
        try:
            return cluster_named(word)
        except InputError:
            continue
    raise InputError(
        "run {run} ran on {device}, which serried does not know; name its cluster by --cluster, "
        "such as {known}, or a TOML file with its figures",
        run=trace.run,
        device=device[:60],
        known=listed(("h100", "b200", "mi300x")),
    )


def _untold(trace: Trace, what: Sentence) -> InputError:
    return InputError(
        "run {run} does not say {what}; a run of serried train does, and --model and --cluster say "
        "it of others",
        run=trace.run,
        what=what,
    )
