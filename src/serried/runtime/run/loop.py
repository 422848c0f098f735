"""The training loop of one rank: set up its stages, then step after step."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor.parallel import loss_parallel

from serried.action import ActionKind
from serried.runtime.checkpoint.saving import Checkpoints
from serried.runtime.checkpoint.tensors import RunTensors
from serried.runtime.groups.devices import begin_counting, device_of, gathered_peaks, join_world
from serried.runtime.groups.lost_peers import exchange_lost
from serried.runtime.job.config_model import ConfigModel
from serried.runtime.job.report import Learned, Place, Progress, RankReport, Started, StepDone
from serried.runtime.job.settings import AXES, TrainSettings
from serried.runtime.model.emulate import EmulatedStage
from serried.runtime.model.exchange import time_exchanges
from serried.runtime.model.experts import Experts
from serried.runtime.model.held_stage import HeldStage
from serried.runtime.model.model import Parts, Stage
from serried.runtime.model.precision import loss_dtype, set_dtypes
from serried.runtime.pretrained.stage import PretrainedStage
from serried.runtime.recorder.host_time import HostTime
from serried.runtime.recording.training import TrainingRecorder, run_before
from serried.runtime.training.data_feed import DataFeed
from serried.runtime.training.loop_state import LoopState, seed_dropout
from serried.runtime.training.mesh import TrainMesh, make_train_mesh
from serried.runtime.training.optimizer import Optimizer
from serried.runtime.training.parallelize import parallelize, parameter_bytes, parts_of
from serried.runtime.training.schedule_runtime import time_messages
from serried.runtime.training.stage import RecordedStage, make_runtime
from serried.runtime.training.validation import Validator


def train_rank(
    settings: TrainSettings,
    place: Place,
    rendezvous: Mapping[str, Any],
    tell: Progress,
    host: HostTime | None = None,
) -> None:
    """Runs one rank from its first message to its last; all ranks of the run call it.

    ``rendezvous`` is how torch.distributed finds the others: a store, or nothing for env://.
    ``host`` stands for this one where its clocks are to be others.
    """
    device = device_of(settings.device, place)
    timeout = timedelta(seconds=settings.timeout_s)
    backend = join_world(device, place, timeout, rendezvous)
    run = [run_before(settings.trace_dir) or secrets.token_hex(4)]
    dist.broadcast_object_list(run, src=0)
    mesh = make_train_mesh(settings, device, timeout)
    recorder = TrainingRecorder.of(
        settings,
        run=run[0],
        rank=place.rank,
        backend=backend,
        host=host,
        num_local_ranks=place.local_world_size,
    )
    try:
        RankTrainer(settings, mesh, recorder).run(run[0], tell)
        recorder.close()
        # Nobody leaves while another still waits for its messages.
        dist.barrier()
    except RuntimeError as error:
        lost = exchange_lost(error, mesh.groups, settings.timeout_s)
        if lost is None:
            raise
        raise lost from error


class RankTrainer:
    """Trains the stages of one rank."""

    def __init__(
        self, settings: TrainSettings, mesh: TrainMesh, recorder: TrainingRecorder
    ) -> None:
        self.settings = settings
        self.mesh = mesh
        self.recorder = recorder
        self.state = LoopState.of(settings)
        parts = parts_of(settings, mesh)
        self.models = make_models(settings, mesh, parts)
        self.stages = [RecordedStage(model, settings, mesh, recorder) for model in self.models]
        self.is_first = any(stage.is_first for stage in self.stages)
        self.is_last = any(stage.is_last for stage in self.stages)
        modules = (module for model in self.models for module in model.modules())
        self.experts = [module for module in modules if isinstance(module, Experts)]
        self.runtime = make_runtime(self.stages, settings, recorder)
        self.buffers = [buffer for stage in self.stages for buffer in stage.buffers]
        self.optimizer = Optimizer(list(self.models), self.buffers, self.state, settings, mesh)
        tensors = RunTensors(list(self.models), self.optimizer, rank=mesh.rank)
        self.checkpoints = Checkpoints(tensors, self.state, settings)
        needs_text = self.is_first or self.is_last
        self.feed = DataFeed(settings, mesh, parts.places, needs_text=needs_text)
        self.validation = Validator(settings, mesh, self.feed, self.stages, self.runtime)

    def run(self, run: str, tell: Progress) -> None:
        """Runs all steps, telling of each; all ranks call it together."""
        tell(Started(run, self._gather_reports()))
        with self.timed():
            self.warm_up()
            self.checkpoints.begin(tell)
            begin_counting(self.mesh.device)
            dist.barrier()  # ranks warm up at different speeds; the first step begins together
            while self.state.step < self.settings.steps:
                tell(self.step())
                if validated := self.validation.after_step(self.state.step):
                    tell(validated)
                self.checkpoints.after_step(tell)
            self.checkpoints.finish(tell)
            self.recorder.pause()
            if peaks := gathered_peaks(self.mesh.device, self.state.step):
                tell(peaks)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Lets the recorder see what its body sends."""
        tracer = self.recorder.tracer
        with time_messages(tracer), time_exchanges(tracer):
            yield

    def warm_up(self) -> None:
        """Runs a step once without recording it or learning from it.

        On first use torch loads parts of itself, plans DTensor operations and opens
        connections, for seconds; that belongs to no step.
        """
        self.compute()
        self._join_tied()
        self.optimizer.rehearse()
        seed_dropout(self.settings, self.mesh)

    def step(self) -> StepDone:
        """Runs the next step and says what came of it."""
        step, begun = self.state.step, time.monotonic()
        self.recorder.begin_step(step)
        losses = self.compute()
        self._join_tied()
        start = self.recorder.begin()
        learned = self.optimizer.step()
        self.recorder.end(start, ActionKind.OPTIMIZER)
        loss = None if self.settings.emulated else self._mean_loss(losses, learned)
        self.state.step += 1
        self.state.samples += self.settings.global_batch_size
        duration_s = time.monotonic() - begun
        tokens = self.settings.global_batch_size * self.settings.model.seq_len
        return StepDone(
            step=step,
            loss=loss,
            duration_ms=duration_s * 1e3,
            learned=None if self.settings.emulated else learned,
            tokens_per_s=tokens / duration_s,
        )

    def compute(self) -> list[Tensor]:
        """Runs all forwards and backwards of the next step; returns the last stage's losses.

        Each loss is its part of the global batch's mean, times the loss scale, so that
        gradients are summed over microbatches and ranks, and nowhere divided.
        """
        inputs, targets = self.feed.batch(self.state.samples)
        self._scale_losses()
        losses: list[Tensor] = []
        given = (inputs,) if self.is_first else ()
        wanted = targets if self.is_last else None
        with loss_parallel() if self.settings.loss_parallel else nullcontext():
            self.runtime.step(*given, target=wanted, losses=losses, return_outputs=False)
        return losses

    def _join_tied(self) -> None:
        stage = self.optimizer.tied_stage
        if stage is not None:
            with self.recorder.tracer.exchange(ActionKind.REDUCE_GRAD, stage):
                self.optimizer.join_tied()

    def _scale_losses(self) -> None:
        factor = self.state.loss_scale / (self.settings.microbatches * self.mesh.size("dp_cp"))
        for stage in self.stages:
            stage.loss_factor = factor
        for experts in self.experts:
            experts.balance_scale = factor / self.settings.tp

    def _mean_loss(self, losses: list[Tensor], learned: Learned) -> float:
        """Sums the parts of the loss on the last stage, then tells the whole pipeline."""
        mean = torch.zeros((), device=self.mesh.device, dtype=loss_dtype(self.settings))
        if self.is_last:
            mean = torch.stack([loss.detach() for loss in losses]).sum() / (learned.loss_scale or 1)
            dist.all_reduce(mean, group=self.mesh.group("dp_cp"))
        if self.settings.pp > 1:
            last = self.settings.pipeline.placement.rank_of[0, -1]
            dist.broadcast(mean, group_src=int(last), group=self.mesh.group("pp"))
        return mean.item()

    def _gather_reports(self) -> tuple[RankReport, ...]:
        mesh = self.mesh
        axes = [axis for axis in AXES if axis != "cp" or self.settings.cp > 1]
        axes += ["ep"] if self.settings.model.experts else []
        report = RankReport(
            rank=mesh.rank,
            pid=os.getpid(),
            device=str(mesh.device),
            coordinates={axis: mesh.coordinate(axis) for axis in axes},
            groups={axis: mesh.members(axis) for axis in axes},
            modules=tuple(name for model in self.models for name in model.held()),
            parameter_bytes=parameter_bytes(self.models),
            reads_data=self.feed.reads,
            buffers=tuple(buffer.report() for buffer in self.buffers),
        )
        reports: list[RankReport] = [report] * self.settings.world_size
        dist.all_gather_object(reports, report)
        return tuple(reports)


class Stages(nn.ModuleList):
    """Holds the stages of one rank, in the order of the model."""

    def __iter__(self) -> Iterator[HeldStage]:
        return cast(Iterator[HeldStage], super().__iter__())


def make_models(settings: TrainSettings, mesh: TrainMesh, parts: Parts) -> Stages:
    """Returns this rank's stages, weights drawn, cut and shared out."""
    held = settings.pipeline.placement.stages_of(mesh.coordinate("pp"))
    return Stages(_make_model(settings, mesh, parts, stage) for _, stage in held)


def _make_model(settings: TrainSettings, mesh: TrainMesh, parts: Parts, stage: int) -> HeldStage:
    place = {"stage": stage, "num_stages": settings.num_stages}
    if isinstance(settings.model, ConfigModel):
        model: HeldStage = PretrainedStage(settings.model, recompute=settings.recompute, **place)
    elif settings.emulated:
        vocabulary = settings.vocabulary
        model = EmulatedStage(settings.model, settings.emulated, vocabulary=vocabulary, **place)
    else:
        model = Stage(settings.model, parts, vocabulary=settings.vocabulary, **place)
    # Weights are drawn whole and cut after that, so every layout begins from the same ones.
    model.draw_weights(settings.seed)
    set_dtypes(model, settings)
    model.to(mesh.device)
    parallelize(model, settings, mesh)
    if isinstance(model, EmulatedStage) and settings.tp > 1:
        model.tp_group = mesh.group("tp")
    return model
