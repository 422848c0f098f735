"""Runs with one injected straggler, simulated, and what the same run costs without it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from serried.trace.model.trace import Trace
from tests.trace.simulated_run import BACKWARD, FORWARD, simulated_run

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


def unequal(seed: int, *, spread: float) -> Trace:
    """Returns a run whose microbatches differ in length, forwards and backwards alike."""
    draws = np.random.default_rng(seed)
    length = np.exp(spread * draws.normal(size=(2, 12, 8)))
    noise = np.random.default_rng(seed + 1)

    def took(usual: int, pipeline: int, step: int, microbatch: int) -> int:
        return int(usual * length[pipeline, step, microbatch] * (1 + NOISE * noise.normal()))

    return simulated_run(
        num_steps=12,
        forward=lambda pipeline, step, _, i: took(FORWARD, pipeline, step, i),
        backward=lambda pipeline, step, _, i: took(BACKWARD, pipeline, step, i),
    )


def on_a_busy_host(seed: int, *, stalls: int = 0, spells: float = 0.0) -> Trace:
    """Returns a run whose host holds up single microbatches, or all that it does for a while.

    ``stalls`` microbatches are long in both directions; of four microbatches one after the other
    the lengths are alike, and vary by ``spells`` from four to four.
    """
    noise = np.random.default_rng(seed)
    held = {(0, 1 + i % 10, (3 * i) % 8) for i in range(stalls)}
    of_spells = np.exp(spells * noise.normal(size=(2, 12, 2)))

    def took(usual: int, pipeline: int, step: int, microbatch: int) -> int:
        longer = 8.0 if (pipeline, step, microbatch) in held else 1.0
        longer *= of_spells[pipeline, step, microbatch // 4]
        return int(usual * longer * (1 + NOISE * noise.normal()))

    return simulated_run(
        num_steps=12,
        forward=lambda pipeline, step, _, i: took(FORWARD, pipeline, step, i),
        backward=lambda pipeline, step, _, i: took(BACKWARD, pipeline, step, i),
    )


def nothing(*_: int) -> float:
    return 1.0


def step_ns(trace: Trace) -> float:
    """Returns the mean length of a step, from begin to begin."""
    begins = [int(trace.spans.start_ns[trace.spans.step == step].min()) for step in steps_of(trace)]
    return float(np.mean(np.diff(begins)))


def steps_of(trace: Trace) -> list[int]:
    return [int(step) for step in np.unique(trace.spans.step)]
