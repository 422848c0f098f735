"""Runs with one injected straggler, simulated, and what the same run costs without it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from serried.trace.model.trace import Trace
from tests.trace.simulated_run import FORWARD, simulated_run

Slower = Callable[[int, int, int, int], float]
"""By what factor a forward takes longer, by pipeline, step, stage and microbatch."""

NOISE = 0.02


def pipelines(slower: Slower, seed: int, *, pp: int = 4, dp: int = 2, steps: int = 24) -> Trace:
    """Returns a run whose forwards vary by 2 % and are longer by what ``slower`` says."""
    draws = np.random.default_rng(seed)

    def forward(pipeline: int, step: int, stage: int, microbatch: int) -> int:
        noise = 1 + NOISE * float(draws.normal())
        return int(FORWARD * noise * slower(pipeline, step, stage, microbatch))

    return simulated_run(pp=pp, dp=dp, num_steps=steps, forward=forward)


def nothing(*_: int) -> float:
    return 1.0


def step_ns(trace: Trace) -> float:
    """Returns the mean length of a step, from begin to begin."""
    begins = [int(trace.spans.start_ns[trace.spans.step == step].min()) for step in steps_of(trace)]
    return float(np.mean(np.diff(begins)))


def steps_of(trace: Trace) -> list[int]:
    return [int(step) for step in np.unique(trace.spans.step)]
