"""The most memory that each rank of the reference training holds, and at which moment of a step.

    forwards pile up          │ backward lets go                │ gradients are │ the optimizer
    ▁▂▃▄▅▆▇█ deepest ─────────┼▇▆▅▄▃▂▁ ─────────────────────────┤ summed        │ steps
    activations of each       │ first: all kept + what the      │ over ranks    │
    microbatch and stage      │ last layer's backward works with│               │

    always         parameters, the optimizer's own, the step's text, buffers of messages
    computing      + gathered weights, + gradients once a stage has any
    peak           the greatest of computing + activations, of reducing and of the optimizer's step

A rank's list of actions is walked: forwards add what their stage keeps, backwards (or weight
halves) take it away, and at each backward's begin and end all is counted. States: ``states``;
activations: ``activations``. Counted are the tensors of a step after the first, as torch's
allocator counts them; not its rounding, nor what kernels and communication libraries take for
themselves (cuBLAS has a workspace for each thread; NCCL's buffers are outside torch).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from serried.plan.activations import angle_bytes, stream_itself
from serried.plan.memory_walk import Walk, stage_bytes
from serried.plan.states import States
from serried.plan.training import Training

TEXT_BYTES = 8
"""Of a byte of text, as torch's embedding and loss take it."""


class Moment(StrEnum):
    """Names when in a step most memory is held."""

    COMPUTING = "computing"
    REDUCING = "reducing"
    LEARNING = "learning"


@dataclass(frozen=True)
class RankMemory:
    """Holds bytes of each rank of one place in the pipeline; all its ranks have the same."""

    pp_rank: int
    stages: tuple[int, ...]
    parameters: int
    gathered: int
    """Whole copies of the parameters that torch's data parallelism makes to compute with."""
    gradients: int
    optimizer: int
    """AdamW's moments, and wide copies of 16-bit parameters."""
    activations: int
    """What computing takes beside weights when it takes most, with messages and the text."""
    peak: int
    moment: Moment


def rank_memories(training: Training) -> tuple[RankMemory, ...]:
    """Returns what each rank of a pipeline holds, in the order of the pipeline."""
    return tuple(_rank_memory(training, rank) for rank in range(training.schedule.num_ranks))


def _rank_memory(training: Training, pp_rank: int) -> RankMemory:
    stages = tuple(sorted(s for _, s in training.schedule.placement.stages_of(pp_rank)))
    held = {stage: stage_bytes(training, stage) for stage in stages}
    states = [each.states for each in held.values()]
    parameters = sum(each.parameters for each in states)
    optimizer = sum(each.optimizer for each in states)
    always = parameters + optimizer + _always(training, stages)
    walk = Walk(training, pp_rank, held)
    most = max(walk.moments(), key=sum)
    learning = max(each.learning for each in states)
    moments = {
        Moment.COMPUTING: always + sum(most),
        Moment.REDUCING: always + walk.sent + _most_reducing(states),
        Moment.LEARNING: always + sum(each.kept for each in states) + learning,
    }
    moment = max(moments, key=lambda each: moments[each])
    return RankMemory(
        pp_rank=pp_rank,
        stages=stages,
        parameters=parameters,
        gathered=sum(each.gathered for each in states),
        gradients=sum(each.gradients for each in states),
        optimizer=optimizer,
        activations=_always(training, stages) + most.activations,
        peak=moments[moment],
        moment=moment,
    )


def _always(training: Training, stages: tuple[int, ...]) -> int:
    """Returns bytes of the step's text, of rotary angles, and of messages.

    Torch keeps buffers for each microbatch of a stage: one for what it brings, and one for the
    gradient that comes back (torch 2.13, pipelining/stage.py: _setup_forward_recv_info and
    _setup_backward_recv_info); between stages of one rank the tensors themselves stay there.
    """
    last = training.num_stages - 1
    microbatches = training.schedule.num_microbatches
    has_text = 0 in stages or last in stages
    text = 2 * microbatches * training.tokens * TEXT_BYTES if has_text else 0
    messages = sum((stage > 0) + (stage < last) for stage in stages)
    return (
        text
        + messages * microbatches * stream_itself(training)
        + len(stages) * angle_bytes(training)
    )


def _most_reducing(states: list[States]) -> int:
    """Returns gradients while a rank's stages are summed one after another."""
    return sum(each.gradients for each in states) + max(
        each.reducing - each.gradients for each in states
    )
