"""A rank's list of actions walked through, with what each leaves and takes of its memory.

    0F0   + what stage 0 keeps of microbatch 0
    0F1   + the same of microbatch 1                     ▁▂▃▄
    0B0   counted: all that is kept + what the last layer's backward works with; then
          - what stage 0 kept of microbatch 0, + gradients of its weights if it had none,
          + the message that it sends, which stays until the step is over
    0I0   counted as well, but keeps all, and the gradients that 0W0 begins with

Torch's pipeline waits for what it sends at the end of a step only, and the messages stay until
then (torch 2.13, pipelining/schedules.py: send_ops).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from serried.action import ActionKind
from serried.plan.activations import (
    half_work,
    held_output,
    keeps_stream,
    kept_by_end,
    kept_by_layer,
    layer_work,
    left_by_half,
    loss_work,
    stream_itself,
)
from serried.plan.states import States, end_weights, states_of
from serried.plan.training import Training


class Held(NamedTuple):
    """Holds bytes of a rank at one moment of its computation."""

    gradients: int
    gathered: int
    activations: int


@dataclass(frozen=True)
class StageBytes:
    """Holds what one stage's actions add and take away."""

    states: States
    kept: int
    """Of a microbatch, from its forward to the end of its backward."""
    loss: int
    """What the loss's backward adds; none but for the last stage."""
    ended: int
    """What of ``kept`` is gone when the last layer's backward is at its most."""
    layer: int
    """What that backward adds where it adds to gradients that stand already."""
    begun: int
    """What it adds where it makes them: those of the output and of w2 have come by then."""
    left: int
    """What an input half leaves for its weight half."""
    half: int
    """What it holds besides when it ends."""
    output: int
    """The message to the next stage, 0 where that is on the same rank."""
    gradient: int
    """The message to the stage before."""


def stage_bytes(training: Training, stage: int) -> StageBytes:
    """Returns the bytes of one stage on each of its ranks."""
    is_last = stage == training.num_stages - 1
    layers, stream = training.layers[stage], stream_itself(training)
    kept = layers * kept_by_layer(training)
    if stage and layers and (keeps_stream(training) or training.recompute == "full"):
        kept -= stream  # the first layer's is the message that came
    end = kept_by_end(training) if is_last else 0
    w2 = training.number * training.model.hidden * training.model.ffn // training.tp
    table = training.number * sum(w.numbers for w in end_weights(training, stage)[-1:])
    incoming = stream if is_last else 0  # else it is a message
    sends = not is_last and not _hand_over(training, stage, stage + 1)
    return StageBytes(
        states=states_of(training, stage),
        kept=kept + end + (held_output(training, is_last=True) if is_last else 0),
        loss=loss_work(training) if is_last else 0,
        ended=end,
        layer=incoming + layer_work(training, weight_gradient=w2),
        begun=incoming + layer_work(training, weight_gradient=0) + w2 + (table if is_last else 0),
        left=left_by_half(training, layers, is_last=is_last),
        half=half_work(training, is_last=is_last),
        output=stream if sends else 0,
        gradient=stream if stage and not _hand_over(training, stage - 1, stage) else 0,
    )


def _hand_over(training: Training, stage: int, following: int) -> bool:
    """Tells whether two stages are on one rank, which sends no messages between them."""
    rank_of = training.schedule.placement.rank_of[0]
    return bool(rank_of[stage] == rank_of[following])


class Walk:
    """Goes through the actions of one rank of the pipeline; afterwards ``sent`` is left."""

    def __init__(self, training: Training, pp_rank: int, held: dict[int, StageBytes]) -> None:
        schedule = training.schedule
        part = slice(schedule.first[pp_rank], schedule.first[pp_rank + 1])
        self._actions = list(
            zip(schedule.kind[part].tolist(), schedule.stage[part].tolist(), strict=True)
        )
        self._held = held
        self._reshards = training.sharing == "zero" and training.zero == 3
        self._learned = set(held) if training.sharing == "buffer" else set[int]()
        self._gathered = dict.fromkeys(held, 0)
        self._live = 0
        self.sent = 0

    def moments(self) -> Iterator[Held]:
        """Yields what is held before each forward, and at each backward's fullest and end."""
        for kind, stage in self._actions:
            # Torch leaves the first stage's input half empty; its weight half is a whole backward.
            if kind == ActionKind.F:
                yield from self._forward(stage)
            elif kind == ActionKind.B or (kind == ActionKind.W and stage == 0):
                yield from self._backward(stage)
                yield from self._end(stage, self._held[stage].kept)
                self.sent += self._held[stage].gradient
            elif kind == ActionKind.I and stage:
                yield from self._backward(stage)
                yield from self._half(stage)
                self.sent += self._held[stage].gradient
            elif kind == ActionKind.W:
                yield from self._end(stage, self._held[stage].kept + self._held[stage].left)

    def _forward(self, stage: int) -> Iterator[Held]:
        each = self._held[stage]
        self._gathered[stage] = each.states.gathered
        yield self._now(0)
        self._live += each.kept
        self.sent += each.output
        if self._reshards:
            self._gathered[stage] = 0

    def _backward(self, stage: int) -> Iterator[Held]:
        """Counts at the loss, and where the last layer's backward is at its fullest."""
        each = self._held[stage]
        if each.loss:
            yield self._now(each.loss)
        self._gathered[stage] = max(self._gathered[stage], each.states.gathered_first)
        is_made = stage not in self._learned or each.states.fresh > 0
        yield self._now((each.begun if is_made else each.layer) - each.ended)

    def _half(self, stage: int) -> Iterator[Held]:
        """Counts at the end of an input half, when gradients of the last weight half may wait."""
        each = self._held[stage]
        self._live += each.left
        yield self._now(each.half + (each.states.fresh if stage in self._learned else 0))

    def _end(self, stage: int, kept: int) -> Iterator[Held]:
        each = self._held[stage]
        self._live -= kept
        self._learned.add(stage)
        self._gathered[stage] = each.states.gathered
        yield self._now(each.states.fresh)

    def _now(self, working: int) -> Held:
        gradients = sum(self._held[stage].states.gradients for stage in self._learned)
        return Held(gradients, sum(self._gathered.values()), self._live + self.sent + working)
