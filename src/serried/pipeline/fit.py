"""Fit: the costs of a recorded run, so that a plan is timed as the run was."""

from __future__ import annotations

import numpy as np

from serried.action import ActionKind, Spans
from serried.errors import InputError, listed
from serried.pipeline.costs import Costs


def fit(spans: Spans) -> Costs:
    """Returns each stage's median durations in nanoseconds, from the run's own actions.

    Where the run has whole backwards only, each half is taken as half of one. Messages are left
    at no time: a recorded wait holds the sender's delay as well.

    Raises InputError when a stage has no forward or no backward.
    """
    num_stages = int(spans.stage.max()) + 1 if len(spans) else 0
    medians = {
        kind: [_median(spans, kind, stage) for stage in range(num_stages)]
        for kind in (ActionKind.F, ActionKind.B, ActionKind.I, ActionKind.W)
    }
    forward = medians[ActionKind.F]
    backward, inputs, weights = [], [], []
    for whole, i, w in zip(*(medians[kind] for kind in _BACKWARD), strict=True):
        if whole is None and i is not None and w is not None:
            whole = i + w
        half = whole // 2 if whole is not None else None
        backward.append(whole)
        inputs.append(i if i is not None else half)
        weights.append(w if w is not None else half)
    missing = [s for s in range(num_stages) if forward[s] is None or backward[s] is None]
    if missing or not num_stages:
        raise InputError(
            "the run has no forward or no backward of stage {stages}, so their time is unknown; "
            "it takes a run of at least one whole step",
            stages=listed(missing or [0]),
        )
    times = [tuple(each or 0 for each in times) for times in (forward, inputs, weights, backward)]
    return Costs(times[0], times[1], times[2], times[3])


_BACKWARD = (ActionKind.B, ActionKind.I, ActionKind.W)


def _median(spans: Spans, kind: ActionKind, stage: int) -> int | None:
    rows = (spans.kind == kind) & (spans.stage == stage)
    if not rows.any():
        return None
    return int(np.median(spans.end_ns[rows] - spans.start_ns[rows]))
