"""Measures the model on text that is held out of training: the mean loss over each byte once.

    batches      | 0 … 31 | 32 … 63 | 64 … 73, filled up |     as large as training's
    loss         sum over bytes that count / how many count    whatever ranks hold them

Means of unlike many bytes are never averaged, and rows that only fill a batch count nowhere, so
the figure does not depend on the layout or the batch size.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor.parallel import loss_parallel

from serried.runtime.job.report import Validated
from serried.runtime.job.settings import TrainSettings
from serried.runtime.training.data_feed import NOTHING, DataFeed
from serried.runtime.training.mesh import TrainMesh
from serried.runtime.training.schedule_runtime import ScheduleRuntime
from serried.runtime.training.stage import RecordedStage


class Validator:
    """Measures the stages of a rank; all ranks call it together."""

    def __init__(
        self,
        settings: TrainSettings,
        mesh: TrainMesh,
        feed: DataFeed,
        stages: Sequence[RecordedStage],
        runtime: ScheduleRuntime,
    ) -> None:
        self.settings, self.mesh, self.feed = settings, mesh, feed
        self.stages, self.runtime = stages, runtime

    def after_step(self, step: int) -> Validated | None:
        """Measures where it is time to, after ``step`` steps: every so often, and at the end."""
        every = self.settings.validation.every
        if not every or (step % every and step != self.settings.steps):
            return None
        begun = time.monotonic()
        loss, num_bytes = self.measure()
        return Validated(step, loss, num_bytes, (time.monotonic() - begun) * 1e3)

    def measure(self) -> tuple[float, int]:
        """Returns the mean loss over the bytes held out, and how many they are."""
        total = torch.zeros(2, dtype=torch.float64, device=self.mesh.device)
        for stage in self.stages:
            stage.recorder.pause()
            stage.is_validating = True
            stage.submod.eval()
        try:
            batch = self.settings.global_batch_size
            for first in range(0, self.settings.validation.held_out, batch):
                total += self._measure_batch(first)
        finally:
            for stage in self.stages:
                stage.is_validating = False
                stage.submod.train()
        # Only ranks with the last stage have losses: they add them up, then tell their pipelines.
        if any(stage.is_last for stage in self.stages):
            dist.all_reduce(total, group=self.mesh.group("dp_cp"))
        last = self.settings.pipeline.placement.rank_of[0, -1]
        dist.broadcast(total, group_src=int(last), group=self.mesh.group("pp"))
        return (total[0] / total[1]).item(), int(total[1].item())

    @torch.no_grad()
    def _measure_batch(self, first: int) -> Tensor:
        """Returns the sum of losses on this rank, and how many bytes they are of."""
        inputs, targets = self.feed.validation_batch(first)
        is_first = any(stage.is_first for stage in self.stages)
        is_last = any(stage.is_last for stage in self.stages)
        losses: list[Tensor] = []
        given = (inputs,) if is_first and inputs is not None else ()
        with loss_parallel() if self.settings.loss_parallel else nullcontext():
            self.runtime.validate(*given, target=targets if is_last else None, losses=losses)
        found = torch.zeros(2, dtype=torch.float64, device=self.mesh.device)
        if is_last and targets is not None:
            found[0] = torch.stack([loss.double() for loss in losses]).sum()
            found[1] = (targets != NOTHING).sum()
        return found
