"""What simpler ways make of the same rows: FLOPs over a fitted share of the peak, and a ridge."""

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


RIDGE = "ridge, 12 features and GPU"


def ridge(rows: Sequence[Measured]) -> np.ndarray:
    """Returns seconds by a log-linear regression on the rows' sizes, fitted to these rows."""
    steps = np.log([row.step_s or np.nan for row in rows])
    sizes = np.array([_features(row) for row in rows])
    sizes = (sizes - sizes.mean(axis=0)) / np.maximum(sizes.std(axis=0), 1e-9)
    families = np.array([_family(row) for row in rows])
    types = (families[:, None] == np.unique(families)).astype(float)
    table = np.hstack([sizes, types])
    base = np.log([with_overheads(row) for row in rows])
    curve = table.T @ table + 0.3 * np.eye(table.shape[1])
    return np.asarray(np.exp(base + table @ np.linalg.solve(curve, table.T @ (steps - base))))


def _features(row: Measured) -> list[float]:
    asked = row.request
    degrees, model = asked.degrees, asked.model
    told = (
        *(degrees.tp, degrees.pp, degrees.cp, degrees.ep, degrees.world_size),
        *(asked.micro_batch, asked.num_microbatches, asked.sequence),
        *(model.hidden, model.layers, 1 + (asked.zero >= 3), 1 + (model.experts is not None)),
    )
    return [float(np.log(each)) for each in told]


def predicted(name: str, rows: Sequence[Measured]) -> np.ndarray:
    """Returns a baseline's seconds, its factors being medians over the same rows."""
    if name == RIDGE:
        return ridge(rows)
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
