"""What several recorded runs of one job show together, as one: what each alone cannot tell apart.

run 1   4 sequences a microbatch, dp 2            ┐   layer, microbatch and stage apart, fitted
run 2   1 sequence  a microbatch, pp 4            ├─> hops of those that have stages
run 3   2 sequences a microbatch, tp 2            ├─> sums of replicas, exchanges and shares of tp
run 4   backwards in halves                       ┘   what these take of whole ones
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import inf

import numpy as np
from numpy.typing import NDArray

from serried.errors import InputError
from serried.plan.retime.observed import WORK, ObservedRun, SplitBackward, StageWork

Columns = NDArray[np.float64]


def together(runs: Sequence[ObservedRun]) -> ObservedRun:
    """Returns what runs of one model show; the sizes and schedule are those of the first.

    Raises InputError for no run, and for runs of different models.
    """
    _require_one_model(runs)
    # Layers that tp cuts take more than their share, so that whole ones tell what a layer takes.
    uncut = [run for run in runs if run.sizes.get("tp", 1) == 1] or list(runs)
    whole = [run for run in uncut if not run.has_halves]
    split = [run for run in uncut if run.has_halves] if whole else []
    layer, fixed, stage = _fitted(uncut, whole or uncut)
    staged = [run.hop for run in runs if run.sizes.get("pp", 1) > 1]
    sums = [run.sums for run in runs if run.sums is not None]
    exchanges = [run.exchange for run in runs if run.exchange is not None]
    base = runs[0]
    return replace(
        base,
        layer=layer,
        fixed=fixed,
        stage=stage,
        first=_mean([run.first for run in whole or uncut]),
        last=_mean([run.last for run in whole or uncut]),
        exchange=_mean(exchanges) if exchanges else None,
        hop=float(np.mean(staged)) if staged else base.hop,
        gap=float(np.mean([run.gap for run in runs])),
        sums=float(np.mean(sums)) if sums else None,
        around=float(np.mean([run.around for run in runs])),
        has_halves=any(run.has_halves for run in runs),
        halves=_halves(split, layer, fixed, stage) if split else None,
        share_of_tp=_share_of_tp([run for run in runs if run not in uncut], layer, fixed, stage),
    )


def _require_one_model(runs: Sequence[ObservedRun]) -> None:
    """Raises InputError for no run, and for runs of different models."""
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


def _share_of_tp(
    cut: Sequence[ObservedRun], layer: StageWork, fixed: StageWork, stage: StageWork
) -> StageWork | None:
    """Returns how often their even share layers take that tensor-parallel ranks cut.

    None without such a run, and of emulated compute, whose times are given.
    """
    if not cut or cut[0].compute == "emulated":
        return None
    shares = []
    for run in cut:
        held = _layers_of_a_stage(run)
        whole = layer.times(run.sequences).plus(fixed).plus(stage.times(1 / held))
        seen = run.layer.times(run.sequences)
        # Whole backwards tell nothing of their halves, so that both have the share of both.
        forward, backward = seen.forward / whole.forward, seen.backward / whole.backward
        shares.append(StageWork(forward, backward, backward))
    return _mean(shares)


def _halves(
    split: Sequence[ObservedRun], layer: StageWork, fixed: StageWork, stage: StageWork
) -> SplitBackward:
    """Returns what halves take of the whole backward that layers of as many sequences have."""
    shares = []
    for run in split:
        held = _layers_of_a_stage(run)
        alone = (fixed.backward + stage.backward / held) / run.sequences
        both = layer.backward + alone
        ends = (getattr(run.first, name) / held for name in ("input_grad", "weight_grad"))
        half = (run.layer.input_grad, run.layer.weight_grad)
        at_first = (max(0.0, one + end) for one, end in zip(half, ends, strict=True))
        shares.append([each / both for each in (*half, *at_first)])
    return SplitBackward(*np.mean(np.array(shares), axis=0).tolist())


def _fitted(
    runs: Sequence[ObservedRun], whole: Sequence[ObservedRun]
) -> tuple[StageWork, StageWork, StageWork]:
    """Returns what a layer takes of each sequence, a layer of a microbatch, and a stage of one.

        seconds of a stage's microbatch = layers x (sequences x layer + fixed) + stage

    None is below 0. Where all runs have equal microbatches, or equal stages, nothing tells these
    apart, and emulated compute has neither. Backwards are those of ``whole``, which have no halves.
    """
    parts: dict[str, list[float]] = {name: [] for name in ("layer", "fixed", "stage")}
    for name in WORK:
        shown = runs if name == "forward" else whole
        layers = np.array([_layers_of_a_stage(run) for run in shown])
        sequences = np.array([run.sequences for run in shown], dtype=np.float64)
        # What one run calls a layer's time of a sequence has its share of the rest in it.
        taken = np.array([getattr(run.layer, name) for run in shown]) * sequences * layers
        columns = np.stack([layers * sequences, layers, np.ones_like(layers)], axis=1)
        most = 1 if runs[0].compute == "emulated" else 3
        for part, value in zip(parts, _not_below_0(columns, taken, most), strict=True):
            parts[part].append(value)
    layer, fixed, stage = (StageWork(*each) for each in parts.values())
    return layer, fixed, stage


def _layers_of_a_stage(run: ObservedRun) -> float:
    return run.num_layers / (run.chunks * run.sizes.get("pp", 1)) / run.sizes.get("tp", 1)


def _not_below_0(columns: Columns, taken: Columns, most: int) -> list[float]:
    """Returns the factors of columns that fit best, relative to what was taken; none below 0.

    Of as few columns as the rows can tell apart, and at most as many as ``most``; the first always.
    """
    told = columns / taken[:, None]
    best, found = inf, [float(1 / told[:, 0].mean()), 0.0, 0.0]
    for size in range(1, most + 1):
        for chosen in combinations(range(columns.shape[1]), size):
            part = told[:, list(chosen)]
            if 0 not in chosen or np.linalg.matrix_rank(part, tol=1e-6 * part.max()) < size:
                continue
            factors = np.linalg.lstsq(part, np.ones(len(taken)), rcond=None)[0]
            off = float(((part @ factors - 1) ** 2).sum())
            if factors.min() >= 0 and off < best - 1e-9:
                best = off
                found = [0.0] * columns.shape[1]
                for place, factor in zip(chosen, factors.tolist(), strict=True):
                    found[place] = factor
    return found


def _mean(works: Sequence[StageWork]) -> StageWork:
    rows = np.array([[getattr(each, name) for name in WORK] for each in works])
    return StageWork(*rows.mean(axis=0).tolist())
