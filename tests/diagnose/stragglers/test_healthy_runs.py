"""A hundred simulated runs in which nothing is wrong, drawn at random: nobody is accused."""

from __future__ import annotations

import random

import numpy as np
import pytest

from serried.diagnose.gathered import Evidence
from serried.diagnose.reason import diagnosed
from serried.trace.model.trace import Trace
from tests.diagnose.stragglers.layout_runs import Sized, layout_run
from tests.diagnose.stragglers.meeting_runs import Meets, meeting_run
from tests.trace.simulated_run import BACKWARD, FORWARD, simulated_run

NUM_RUNS = 100
SAVES_MS = 500.0
"""How long all ranks save, in some runs every tenth step."""


def pipeline(draw: random.Random, noise: float) -> Trace:
    """Returns a run of drawn sizes whose actions vary by ``noise``, some steps longer for all."""
    draws = np.random.default_rng(draw.randrange(2**32))
    microbatches = draw.choice([4, 8])
    # Now and then all microbatches of a step are longer, as with longer sequences.
    of_step = 1 + draw.choice([0.0, 0.3]) * draws.random(40)

    def took(usual: int, step: int) -> int:
        return int(usual * of_step[step] * (1 + noise * draws.normal()))

    return simulated_run(
        pp=draw.choice([2, 4, 6]),
        dp=draw.choice([1, 2, 4]),
        num_microbatches=microbatches,
        num_steps=draw.randrange(3, 16),
        forward=lambda _, step, __, ___: took(FORWARD, step),
        backward=lambda _, step, __, ___: took(BACKWARD, step),
        transfer=draw.choice([None, lambda *_: FORWARD // 20]),
    )


def meeting(draw: random.Random, noise: float) -> Trace:
    """Returns a run without a pipeline, in which all save now and then."""
    saves = draw.choice([0.0, SAVES_MS])
    return meeting_run(
        draw.choice([*Meets]),
        lambda *_: 1.0,
        draw.randrange(2**32),
        world=draw.choice([1, 2, 3, 4, 8]),
        steps=draw.randrange(3, 40),
        noise=noise,
        pause=lambda step: saves if step % 10 == 9 else 0.0,
    )


def laid_out(draw: random.Random, noise: float) -> Trace:
    """Returns a run of several kinds of groups under any of the usual schedules."""
    sizes = draw.choice([(2, 2, 1), (2, 1, 2), (4, 1, 2), (1, 4, 2), (2, 2, 2), (1, 2, 1)])
    return layout_run(
        Sized(*sizes, draw.choice(["gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zbv"])),
        draw.randrange(2**32),
        noise=noise,
        steps=draw.randrange(3, 24),
        with_messages=draw.random() < 0.5,
    )


@pytest.mark.parametrize(
    "first", [0, 20, *(pytest.param(n, marks=pytest.mark.soak) for n in range(40, NUM_RUNS, 20))]
)
def test_no_rank_is_at_fault_in_a_healthy_run(first: int) -> None:
    accused = {}
    for seed in range(first, first + 20):
        draw = random.Random(seed)
        make = draw.choice([pipeline, meeting, laid_out])
        trace = make(draw, draw.choice([0.005, 0.02, 0.05, 0.1, 0.2]))
        found = diagnosed(Evidence(recordings=(trace,)))
        if blamed := [str(cause.verdict) for cause in found.causes if cause.ranks]:
            accused[seed] = blamed
    assert accused == {}
