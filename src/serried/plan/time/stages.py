"""A pipeline's step from the times of its stages: a closed form that a search can afford.

    step = m x slowest + (all stages once - slowest) / v + messages

One microbatch fills and drains the other stages; interleaved chunks make that v times shorter. It
equals the simulation for even stages, where it is (m + (p - 1) / v) stages, and bounds it within
a few percent else. ``plan.time.simulated`` walks the schedule itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serried.plan.time.constants import Constants
from serried.plan.time.exposed import link, stage_link
from serried.plan.time.jobs import Column, Jobs
from serried.plan.time.layer import LayerTimes
from serried.plan.time.matrices import output_forward
from serried.plan.time.rates import Rates
from serried.plan.traffic.volumes import boundary_bytes


@dataclass(frozen=True, eq=False)
class StageTimes:
    """Holds seconds of one microbatch, forward and backward, on the ranks of a pipeline."""

    embedding: Column
    output: Column
    """Last norm, output layer and loss, MTP's too."""
    message: Column
    """What messages between stages add to one microbatch on a rank."""
    slowest: Column
    slowest_layers: Column
    """Layers of the slowest rank, of which its time is made."""
    whole: Column
    """All stages once."""


def stage_times(jobs: Jobs, reached: Rates, constants: Constants, layer: LayerTimes) -> StageTimes:
    """Returns the times of the slowest rank, and of all ranks one after another."""
    tokens = jobs.tokens
    passes = np.where(jobs.is_lora > 0, 2.0, 3.0)
    output = passes * output_forward(jobs, reached, constants) * (1.0 + jobs.mtp_layers)
    loss = 2.0 * tokens * jobs.vocab / jobs.tp * constants.value("loss_passes") / reached.memory
    sums = np.where(jobs.tp > 1, 4.0 * tokens * jobs.hidden / link(jobs.tp, reached), 0.0)
    output = output + loss + sums
    embedding = 12.0 * tokens * jobs.hidden / reached.memory
    layers = jobs.layers + jobs.mtp_layers
    whole = layers * layer.total + output + embedding
    last = (jobs.last_layers + jobs.mtp_layers) * layer.total + output
    is_last = last > jobs.slowest_layers * layer.total
    uneven = np.where(is_last, last, jobs.slowest_layers * layer.total)
    slowest = np.where(jobs.is_balanced > 0, whole / jobs.pp, uneven)
    count = np.where(jobs.is_balanced > 0, layers / jobs.pp, jobs.slowest_layers)
    is_last = is_last & (jobs.is_balanced <= 0)
    count = np.where(is_last, jobs.last_layers + jobs.mtp_layers, count)
    is_one = jobs.pp <= 1
    return StageTimes(
        embedding=embedding,
        output=output,
        message=_message(jobs, reached, constants),
        slowest=np.where(is_one, whole, slowest),
        slowest_layers=np.where(is_one, layers, count),
        whole=whole,
    )


def _message(jobs: Jobs, reached: Rates, constants: Constants) -> Column:
    split = np.where(jobs.is_sequence_parallel > 0, jobs.tp, 1.0)
    sent = boundary_bytes(jobs.tokens, jobs.hidden, split)
    time = sent / stage_link(jobs, reached) + 2.0 * constants.value("latency")
    exposed = time * jobs.chunks * constants.value("pp_exposed")
    return np.asarray(np.where(jobs.pp > 1, exposed, 0.0))


def pipeline_time(jobs: Jobs, stages: StageTimes) -> Column:
    """Returns the time of all microbatches, bubble and messages in it."""
    once = stages.slowest + stages.message
    rest = stages.whole + stages.message * jobs.pp - once
    filled = np.where(jobs.pp > 1, rest / jobs.chunks, 0.0)
    return np.asarray(jobs.microbatches * once + np.maximum(filled, 0.0))
