"""What simpler ways make of the same rows: FLOPs over a fitted share of the peak, in five steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from serried.plan.calibration.rows import Measured
from serried.plan.model.flops import model_flops
from serried.plan.time.rates import peak

_BITS = {"fp8": "8", "fp8-ds": "8", "fp8-cs": "8", "mxfp8": "8", "nvfp4": "4"}


def roofline(row: Measured) -> float:
    """Returns seconds at the peak of the row's format, causal FLOPs; a LoRA step has two thirds."""
    asked = row.request
    flops = model_flops(asked.model, asked.sequence, "causal") * asked.sequence * asked.global_batch
    share = 2 / 3 if asked.lora is not None else 1.0
    gpu = asked.cluster.gpu
    each = peak(gpu, _BITS.get(asked.compute, "16"))
    return float(flops * share / asked.degrees.world_size / each)


def with_overheads(row: Measured) -> float:
    """Returns the roofline, longer by full recomputation and by the pipeline's bubble."""
    asked = row.request
    again = 4 / 3 if asked.recompute.kind == "full" else 1.0
    bubble = (asked.degrees.pp - 1) / asked.num_microbatches / asked.degrees.chunks
    return roofline(row) * again * (1 + bubble)


def _family(row: Measured) -> str:
    return f"{row.gpu}:{_BITS.get(row.request.compute, '16')}"


def _family_and_kind(row: Measured) -> str:
    return f"{_family(row)}:{row.request.model.experts is not None}:{row.request.lora is not None}"


BASELINES: Mapping[str, tuple[Callable[[Measured], float], Callable[[Measured], str] | None]] = {
    "roofline at peak": (roofline, None),
    "one MFU for all": (roofline, lambda row: "all"),
    "MFU by GPU and precision": (roofline, _family),
    "  and dense, MoE or LoRA": (roofline, _family_and_kind),
    "  and recompute, bubble": (with_overheads, _family_and_kind),
}
"""How a baseline times a row, and by which group of rows its one factor is fitted; None: none."""


def predicted(name: str, rows: Sequence[Measured]) -> np.ndarray:
    """Returns a baseline's seconds, its factors being medians over the same rows."""
    time, group = BASELINES[name]
    raw = np.array([time(row) for row in rows])
    if group is None:
        return raw
    groups = np.array([group(row) for row in rows])
    ratio = np.array([row.step_s or np.nan for row in rows]) / raw
    found = np.empty_like(raw)
    for each in np.unique(groups):
        chosen = groups == each
        found[chosen] = raw[chosen] * np.median(ratio[chosen])
    return found
