"""The most memory that each rank of the reference training holds, and at which moment of a step.

    forwards pile up          │ backward lets go                │ gradients are │ the optimizer
    ▁▂▃▄▅▆▇█ deepest ─────────┼▇▆▅▄▃▂▁ ─────────────────────────┤ summed        │ steps
    activations of each       │ first: all kept + what the      │ over ranks    │
    microbatch and stage      │ last layer's backward works with│               │

    always         parameters, the optimizer's own, the step's text, buffers of messages
    computing      + gathered weights, + gradients once a stage has any
    peak           the greatest of computing + activations, of reducing and of the optimizer's step

A rank's list of actions is walked, and at each action's fullest moment all is counted:

    0F0   + what stage 0 keeps of microbatch 0
    0F1   + the same of microbatch 1                     ▁▂▃▄
    0B0   counted: all that is kept + what the last layer's backward works with; then
          - what stage 0 kept of microbatch 0, + gradients of its weights if it had none,
          + the message that it sends, which stays until the step is over
    0I0   counted as well, but keeps all, and the gradients that 0W0 begins with

States: ``states``; activations: ``activations``. Counted are the tensors of a step after the
first, as torch's allocator counts them; not its rounding, nor what kernels and communication
libraries take for themselves (cuBLAS has a workspace for each thread; NCCL's buffers are outside
torch).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from serried.action import ActionKind
from serried.plan.reference.activations import (
    angle_bytes,
    held_output,
    input_half_work,
    keeps_stream,
    kept_between_halves,
    kept_by_end,
    kept_by_layer,
    layer_work,
    loss_work,
    stream_itself,
)
from serried.plan.reference.states import States, end_weights, states_of
from serried.plan.reference.training import Training

TEXT_BYTES = 8
"""What a byte of text takes as torch's embedding and loss want it: 64 bits."""


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
    bytes_of = {stage: stage_bytes(training, stage) for stage in stages}
    states = [of_stage.states for of_stage in bytes_of.values()]
    parameters = sum(of_stage.parameters for of_stage in states)
    optimizer = sum(of_stage.optimizer for of_stage in states)
    always = parameters + optimizer + _always(training, stages)
    walk = _ComputingWalk(training, pp_rank, bytes_of)
    fullest = max(walk.moments(), key=sum)
    learning = max(of_stage.learning for of_stage in states)
    moments = {
        Moment.COMPUTING: always + sum(fullest),
        Moment.REDUCING: always + walk.sent + _most_reducing(states),
        Moment.LEARNING: always + sum(of_stage.kept for of_stage in states) + learning,
    }
    # Of equal moments the first is named, which comes first in a step as well.
    moment = max(moments, key=lambda name: moments[name])
    return RankMemory(
        pp_rank=pp_rank,
        stages=stages,
        parameters=parameters,
        gathered=sum(of_stage.gathered for of_stage in states),
        gradients=sum(of_stage.gradients for of_stage in states),
        optimizer=optimizer,
        activations=_always(training, stages) + fullest.activations,
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
    return sum(of_stage.gradients for of_stage in states) + max(
        of_stage.reducing - of_stage.gradients for of_stage in states
    )


@dataclass(frozen=True)
class StageBytes:
    """Holds what the actions of one stage add to its rank's memory, and what they let go of.

    A backward is counted where the stage's last layer, the first to run backward, is fullest.
    """

    states: States
    kept: int
    """Activations of a microbatch, from its forward to the end of its backward."""
    loss_work: int
    """What the loss's backward adds; none but for the last stage."""
    let_go: int
    """What of ``kept`` the loss's backward has let go of when the last layer's is fullest."""
    layer_work: int
    """What that layer's backward adds where it adds to gradients that are there already."""
    first_layer_work: int
    """What it adds where it makes them: by then those of the output and of w2 are there."""
    kept_between_halves: int
    """What an input half leaves for its weight half."""
    input_half_work: int
    """What an input half holds besides when it ends."""
    sent_on: int
    """The message to the next stage, 0 where that is on the same rank."""
    sent_back: int
    """The message to the stage before: the gradient of its output."""


def stage_bytes(training: Training, stage: int) -> StageBytes:
    """Returns the bytes of one stage on each of its ranks."""
    is_last = stage == training.num_stages - 1
    layers, stream = training.layers[stage], stream_itself(training)
    kept = layers * kept_by_layer(training)
    if stage and layers and (keeps_stream(training) or training.recompute == "full"):
        kept -= stream  # the first layer's is the message that came
    end = kept_by_end(training) if is_last else 0
    w2 = training.element_bytes * training.model.hidden * training.model.ffn // training.tp
    table = training.element_bytes * sum(w.num_elements for w in end_weights(training, stage)[-1:])
    incoming = stream if is_last else 0  # else it is a message
    first_work = layer_work(training, weight_gradient=0) + w2 + (table if is_last else 0)
    sends_on = not is_last and not _share_rank(training, stage, stage + 1)
    sends_back = stage > 0 and not _share_rank(training, stage - 1, stage)
    return StageBytes(
        states=states_of(training, stage),
        kept=kept + end + (held_output(training, is_last=True) if is_last else 0),
        loss_work=loss_work(training) if is_last else 0,
        let_go=end,
        layer_work=incoming + layer_work(training, weight_gradient=w2),
        first_layer_work=incoming + first_work,
        kept_between_halves=kept_between_halves(training, layers, is_last=is_last),
        input_half_work=input_half_work(training, is_last=is_last),
        sent_on=stream if sends_on else 0,
        sent_back=stream if sends_back else 0,
    )


def _share_rank(training: Training, stage: int, following: int) -> bool:
    """Tells whether two stages are on one rank, which sends no messages between them."""
    rank_of = training.schedule.placement.rank_of[0]
    return bool(rank_of[stage] == rank_of[following])


class _Held(NamedTuple):
    """Holds bytes of a rank at one moment of its computation."""

    gradients: int
    gathered: int
    activations: int


class _ComputingWalk:
    """Walks through the actions of one rank and counts what it holds at each one's fullest.

    ``sent`` is what messages hold. It only grows: torch's pipeline waits for what it sends at the
    end of a step (torch 2.13, pipelining/schedules.py: send_ops), and until then messages stay.
    """

    def __init__(self, training: Training, pp_rank: int, bytes_of: dict[int, StageBytes]) -> None:
        schedule = training.schedule
        of_rank = slice(schedule.first[pp_rank], schedule.first[pp_rank + 1])
        self._actions = list(
            zip(schedule.kind[of_rank].tolist(), schedule.stage[of_rank].tolist(), strict=True)
        )
        self._bytes_of = bytes_of
        self._gathers_anew = training.sharing == "zero" and training.zero == 3
        # Gradient buffers are there from the start; other gradients come with the first backward.
        self._with_gradients = set(bytes_of) if training.sharing == "buffer" else set[int]()
        self._gathered = dict.fromkeys(bytes_of, 0)
        self._kept = 0
        self.sent = 0

    def moments(self) -> Iterator[_Held]:
        """Yields what is held before each forward, and at each backward's fullest and end."""
        for kind, stage in self._actions:
            of_stage = self._bytes_of[stage]
            # Torch leaves the first stage's input half empty, as no stage before it waits for a
            # gradient; its weight half is a whole backward.
            if kind == ActionKind.F:
                yield from self._forward(stage)
            elif kind == ActionKind.B or (kind == ActionKind.W and stage == 0):
                yield from self._backward(stage)
                yield from self._end_of_backward(stage, of_stage.kept)
                self.sent += of_stage.sent_back
            elif kind == ActionKind.I and stage:
                yield from self._backward(stage)
                yield from self._end_of_input_half(stage)
                self.sent += of_stage.sent_back
            elif kind == ActionKind.W:
                yield from self._end_of_backward(
                    stage, of_stage.kept + of_stage.kept_between_halves
                )

    def _forward(self, stage: int) -> Iterator[_Held]:
        of_stage = self._bytes_of[stage]
        self._gathered[stage] = of_stage.states.gathered
        yield self._held(working=0)
        self._kept += of_stage.kept
        self.sent += of_stage.sent_on
        if self._gathers_anew:
            self._gathered[stage] = 0

    def _backward(self, stage: int) -> Iterator[_Held]:
        """Counts at the loss, and where the last layer's backward is at its fullest."""
        of_stage = self._bytes_of[stage]
        if of_stage.loss_work:
            yield self._held(working=of_stage.loss_work)
        gathered = max(self._gathered[stage], of_stage.states.gathered_first)
        self._gathered[stage] = gathered
        # Gradients that are computed apart (``fresh``) are made by every backward, those that
        # torch adds up in place by the first only.
        makes_gradients = stage not in self._with_gradients or of_stage.states.fresh > 0
        work = of_stage.first_layer_work if makes_gradients else of_stage.layer_work
        yield self._held(working=work - of_stage.let_go)

    def _end_of_input_half(self, stage: int) -> Iterator[_Held]:
        """Counts where gradients of the last weight half may still wait to be added."""
        of_stage = self._bytes_of[stage]
        self._kept += of_stage.kept_between_halves
        waiting = of_stage.states.fresh if stage in self._with_gradients else 0
        yield self._held(working=of_stage.input_half_work + waiting)

    def _end_of_backward(self, stage: int, freed: int) -> Iterator[_Held]:
        of_stage = self._bytes_of[stage]
        self._kept -= freed
        self._with_gradients.add(stage)
        self._gathered[stage] = of_stage.states.gathered
        yield self._held(working=of_stage.states.fresh)

    def _held(self, *, working: int) -> _Held:
        gradients = sum(self._bytes_of[stage].states.gradients for stage in self._with_gradients)
        activations = self._kept + self.sent + working
        return _Held(gradients, sum(self._gathered.values()), activations)
