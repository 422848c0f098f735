"""The steps of one rank, whatever it trains: the schedule run, gradients joined, learned from.

    step  │ batch │ forwards and backwards, by the schedule │ tied │ optimizer │ mean loss │
    span    …       F B I W, messages, REDUCE_GRAD            REDUCE_GRAD  OPTIMIZER   ALL_REDUCE

A microbatch's loss is multiplied by 1 / (microbatches x dp x cp), so that gradients are summed over
microbatches and ranks, and nowhere divided: the mean over the global batch, in any layout.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from serried.action import ActionKind
from serried.pipeline import Schedule
from serried.runtime.checkpoint.saving import Checkpoints
from serried.runtime.job.report import Learned, StepDone
from serried.runtime.model.exchange import time_exchanges
from serried.runtime.recording.training import TrainingRecorder
from serried.runtime.training.loop_state import LoopState
from serried.runtime.training.mesh import TrainMesh
from serried.runtime.training.optimizer import Optimizer
from serried.runtime.training.schedule_runtime import pipeline, time_messages
from serried.runtime.training.stage import RecordedStage


@dataclass(frozen=True)
class StepWork:
    """Says what a step is made of."""

    schedule: Schedule
    global_batch_size: int
    """Samples in a step, over all ranks."""
    tokens_per_sample: int
    loss_dtype: torch.dtype = torch.float32
    gathers: bool = False
    """Whether the ranks of dp x cp gather weights that they share out (ZeRO)."""


class Engine(ABC):
    """Runs the steps of one rank's stages; all ranks call it together."""

    optimizer: Optimizer
    checkpoints: Checkpoints

    def __init__(
        self,
        work: StepWork,
        stages: Sequence[RecordedStage],
        mesh: TrainMesh,
        recorder: TrainingRecorder,
        state: LoopState,
    ) -> None:
        self.work, self.stages, self.mesh = work, stages, mesh
        self.recorder, self.state = recorder, state
        self.is_first = any(stage.is_first for stage in stages)
        self.is_last = any(stage.is_last for stage in stages)
        # Only the last stage of the model has a loss, and only the rank that holds it asks for one.
        self.runtime = pipeline(
            stages, work.schedule, work.schedule.num_microbatches, stages[-1].loss
        )
        if work.gathers:
            tracer = recorder.tracer
            self.runtime.gathering = lambda stage: tracer.exchange(ActionKind.UNSHARD, stage)

    @abstractmethod
    def batch(self, first: int) -> tuple[Tensor | None, Tensor | None]:
        """Returns this rank's inputs and targets of the batch that begins with sample ``first``.

        Each is (samples, …); only the first stage asks for inputs, and only the last for targets.
        """

    def around_compute(self) -> AbstractContextManager[None]:
        """Surrounds forwards and backwards."""
        return nullcontext()

    def scale_losses(self, factor: float) -> None:
        """Sets what the losses of microbatches are multiplied by."""
        for stage in self.stages:
            stage.loss_factor = factor

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Lets the recorder see what its body sends."""
        tracer = self.recorder.tracer
        with time_messages(tracer), time_exchanges(tracer):
            yield

    def step(self) -> StepDone:
        """Runs the next step and says what came of it."""
        step, begun = self.state.step, time.monotonic()
        self.recorder.begin_step(step)
        losses = self.compute()
        self.join_tied()
        start = self.recorder.begin()
        learned = self.optimizer.step()
        self.recorder.end(start, ActionKind.OPTIMIZER)
        loss = self.mean_loss(losses, learned)
        self.state.step += 1
        self.state.samples += self.work.global_batch_size
        duration_s = time.monotonic() - begun
        tokens = self.work.global_batch_size * self.work.tokens_per_sample
        return StepDone(
            step=step,
            loss=loss,
            duration_ms=duration_s * 1e3,
            learned=learned,
            tokens_per_s=tokens / duration_s,
        )

    def compute(self) -> list[Tensor]:
        """Runs all forwards and backwards of the next step; returns the last stage's losses.

        Each loss is its part of the global batch's mean, times the loss scale.
        """
        # A rank in the middle of a pipeline reads nothing.
        with self.recorder.loading() if self.is_first or self.is_last else nullcontext():
            inputs, targets = self.batch(self.state.samples)
        parts = self.work.schedule.num_microbatches * self.mesh.size("dp_cp")
        self.scale_losses(self.state.loss_scale / parts)
        losses: list[Tensor] = []
        given = (inputs,) if self.is_first else ()
        wanted = targets if self.is_last else None
        with self.around_compute():
            self.runtime.step(*given, target=wanted, losses=losses, return_outputs=False)
        return losses

    def join_tied(self) -> None:
        """Sums the gradients of weights that two stages share."""
        for weight in self.optimizer.tied:
            if weight.stage is not None:
                with self.recorder.tracer.exchange(ActionKind.REDUCE_GRAD, weight.stage):
                    weight.join()

    def mean_loss(self, losses: list[Tensor], learned: Learned) -> float | None:
        """Sums the parts of the loss on the last stage, then tells the whole pipeline."""
        mean = torch.zeros((), device=self.mesh.device, dtype=self.work.loss_dtype)
        if self.is_last:
            mean = torch.stack([loss.detach() for loss in losses]).sum() / (learned.loss_scale or 1)
            dist.all_reduce(mean, group=self.mesh.group("dp_cp"))
        if self.mesh.size("pp") > 1:
            last = self.work.schedule.placement.rank_of[0, -1]
            dist.broadcast(mean, group_src=int(last), group=self.mesh.group("pp"))
        return mean.item()
