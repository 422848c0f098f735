"""What several recorded runs of one job show together, as one: what each alone cannot tell apart.

run 1   4 sequences a microbatch, dp 2            ┐   fixed + sequences x layer, fitted
run 2   1 sequence  a microbatch, pp 4            ├─> hops of those that have stages
run 3   2 sequences a microbatch, tp 2            ┘   sums of replicas, exchanges of tp
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from serried.errors import InputError
from serried.plan.retime.observed import WORK, ObservedRun, StageWork


def together(runs: Sequence[ObservedRun]) -> ObservedRun:
    """Returns what runs of one model show; the sizes and schedule are those of the first.

    Raises InputError for no run, and for runs of different models.
    """
    if not runs:
        raise InputError("no run is given; at least one is needed")
    base = runs[0]
    for other in runs[1:]:
        if (other.num_layers, other.compute) != (base.num_layers, base.compute):
            raise InputError(
                "run {run} has {layers} layers and {compute} compute, and run {other} has {others} "
                "and {its}; give runs of one model",
                run=base.run,
                layers=base.num_layers,
                compute=base.compute,
                other=other.run,
                others=other.num_layers,
                its=other.compute,
            )
    layer, fixed = _fitted(runs)
    staged = [run.hop for run in runs if run.sizes.get("pp", 1) > 1]
    sums = [run.sums for run in runs if run.sums is not None]
    exchanges = [run.exchange for run in runs if run.exchange is not None]
    return replace(
        base,
        layer=layer,
        fixed=fixed,
        first=_mean([run.first for run in runs]),
        last=_mean([run.last for run in runs]),
        exchange=_mean(exchanges) if exchanges else None,
        hop=float(np.mean(staged)) if staged else base.hop,
        gap=float(np.mean([run.gap for run in runs])),
        sums=float(np.mean(sums)) if sums else None,
        around=float(np.mean([run.around for run in runs])),
        has_halves=any(run.has_halves for run in runs),
    )


def _fitted(runs: Sequence[ObservedRun]) -> tuple[StageWork, StageWork]:
    """Returns what a layer takes of each sequence, and of a microbatch whatever it holds.

    Both are at least 0. Where all runs have equal microbatches nothing tells the two apart, and
    emulated compute has no fixed part.
    """
    held = np.array([run.sequences for run in runs], dtype=np.float64)
    layer, fixed = [], []
    for name in WORK:
        # What one run calls a layer's time of a sequence has its share of the fixed part in it.
        taken = np.array([getattr(run.layer, name) for run in runs]) * held
        slope, start = float(np.mean(taken / held)), 0.0
        if len(set(held.tolist())) > 1 and runs[0].compute != "emulated":
            slope, start = np.polyfit(held, taken, 1).tolist()
            if start < 0:
                slope, start = float((taken * held).sum() / (held**2).sum()), 0.0
            elif slope < 0:
                slope, start = 0.0, float(taken.mean())
        layer.append(slope)
        fixed.append(start)
    return StageWork(*layer), StageWork(*fixed)


def _mean(works: Sequence[StageWork]) -> StageWork:
    rows = np.array([[getattr(each, name) for name in WORK] for each in works])
    return StageWork(*rows.mean(axis=0).tolist())
