"""The training loop of one rank: set up its stages, then step after step."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor.parallel import loss_parallel

from serried.runtime.checkpoint.checkpoint import description_of
from serried.runtime.checkpoint.saving import Checkpoints
from serried.runtime.checkpoint.tensors import RunTensors
from serried.runtime.groups.devices import begin_counting, device_of, gathered_peaks, join_world
from serried.runtime.groups.lost_peers import exchange_lost
from serried.runtime.job.config_model import ConfigModel
from serried.runtime.job.report import Learned, Place, Progress, RankReport, Started, StepDone
from serried.runtime.job.settings import AXES, TrainSettings
from serried.runtime.model.emulate import EmulatedStage
from serried.runtime.model.experts import Experts
from serried.runtime.model.held_stage import HeldStage
from serried.runtime.model.model import Parts, Stage
from serried.runtime.model.precision import compute_dtype, loss_dtype, set_dtypes
from serried.runtime.pretrained.stage import PretrainedStage
from serried.runtime.recorder.host_time import HostTime
from serried.runtime.recording.training import TrainingRecorder, run_before
from serried.runtime.run.engine import Engine, StepWork
from serried.runtime.training.buffers import expert_parameters, make_buffers
from serried.runtime.training.data_feed import DataFeed
from serried.runtime.training.loop_state import LoopState, seed_dropout
from serried.runtime.training.mesh import TrainMesh, make_train_mesh
from serried.runtime.training.optimizer import Optimizer
from serried.runtime.training.parallelize import parallelize, parameter_bytes, parts_of
from serried.runtime.training.stage import RecordedStage, shapes_of
from serried.runtime.training.tied import TiedWeight
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


class RankTrainer(Engine):
    """Trains the stages of one rank."""

    def __init__(
        self, settings: TrainSettings, mesh: TrainMesh, recorder: TrainingRecorder
    ) -> None:
        self.settings = settings
        parts = parts_of(settings, mesh)
        self.models = make_models(settings, mesh, parts)
        work = StepWork(
            settings.pipeline,
            settings.global_batch_size,
            settings.model.seq_len,
            loss_dtype(settings),
            gathers=settings.zero > 0,
        )
        stages = [_recorded(model, settings, mesh, recorder) for model in self.models]
        super().__init__(work, stages, mesh, recorder, LoopState.of(settings))
        modules = (module for model in self.models for module in model.modules())
        self.experts = [module for module in modules if isinstance(module, Experts)]
        self.buffers = [buffer for stage in stages for buffer in stage.buffers]
        self.optimizer = self._make_optimizer()
        self.checkpoints = self._make_checkpoints()
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

    def warm_up(self) -> None:
        """Runs a step once without recording it or learning from it.

        On first use torch loads parts of itself, plans DTensor operations and opens
        connections, for seconds; that belongs to no step.
        """
        self.compute()
        self.join_tied()
        self.optimizer.rehearse()
        settings = self.settings
        seed_dropout(settings.seed, self.mesh, is_sequence_cut=settings.sequence_parallel)

    def step(self) -> StepDone:
        """Runs the next step and says what came of it; emulated, it learns nothing."""
        done = super().step()
        return replace(done, loss=None, learned=None) if self.settings.emulated else done

    def batch(self, first: int) -> tuple[Tensor | None, Tensor | None]:
        """Reads this rank's part of the text, or receives it from who read it."""
        return self.feed.batch(first)

    def around_compute(self) -> AbstractContextManager[None]:
        """Lets the loss be taken from scores that stay cut, where that is asked for."""
        return loss_parallel() if self.settings.loss_parallel else nullcontext()

    def scale_losses(self, factor: float) -> None:
        """Sets the factor of losses, and of those that balance experts, which tp ranks share."""
        super().scale_losses(factor)
        for experts in self.experts:
            experts.balance_scale = factor / self.settings.tp

    def mean_loss(self, losses: list[Tensor], learned: Learned) -> float | None:
        """Returns the mean loss over the batch; emulated computation has none."""
        return None if self.settings.emulated else super().mean_loss(losses, learned)

    def _make_optimizer(self) -> Optimizer:
        settings, models = self.settings, list(self.models)
        learning = settings.optimizer

        def adamw(weights: Sequence[nn.Parameter]) -> torch.optim.Optimizer:
            return torch.optim.AdamW(weights, lr=learning.lr, weight_decay=learning.weight_decay)

        return Optimizer(
            [parameter for model in models for parameter in model.parameters()],
            self.mesh,
            self.state,
            adamw,
            rate=lambda update: learning.rate(update, settings.steps),
            clip=learning.clip,
            dtype=settings.dtype,
            buffers=self.buffers,
            experts=[each for model in models for each in expert_parameters(model)],
            in_parts=list(_in_parts(models, settings)),
            tied=_tied(models, settings, self.mesh),
        )

    def _make_checkpoints(self) -> Checkpoints:
        settings = self.settings
        tensors = RunTensors(
            [each for model in self.models for each in model.weights()],
            self.optimizer,
            rank=self.mesh.rank,
            rows={name: rows for model in self.models for name, rows in model.kept_whole().items()},
        )
        return Checkpoints(
            tensors,
            self.state,
            settings.checkpoints,
            lambda: description_of(settings),
            steps=settings.steps,
            timeout_s=settings.timeout_s,
        )

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


def _recorded(
    model: HeldStage, settings: TrainSettings, mesh: TrainMesh, recorder: TrainingRecorder
) -> RecordedStage:
    """Returns what runs ``model`` as a stage of the pipeline."""
    return RecordedStage(
        model,
        model.stage,
        settings.num_stages,
        mesh,
        recorder,
        shapes=shapes_of(settings, model),
        loss=model.loss,
        buffers=make_buffers(model, settings, mesh) if settings.dp_style == "buffer" else (),
    )


def _tied(models: list[HeldStage], settings: TrainSettings, mesh: TrainMesh) -> list[TiedWeight]:
    """Returns the weight of embedding and output, where two stages have a copy and one is here."""
    if not settings.model.tie or settings.num_stages == 1:
        return []
    last_stage = settings.num_stages - 1
    first = next((model.ends()[0] for model in models if model.stage == 0), None)
    last = next((model.ends()[1] for model in models if model.stage == last_stage), None)
    if first is None and last is None:
        return []
    return [TiedWeight((0, last_stage), first, last, mesh.group("embd"))]


def _in_parts(models: list[HeldStage], settings: TrainSettings) -> Iterator[Tensor]:
    """Yields the whole weights of which each tp rank has a part of the gradient."""
    if settings.tp == 1:
        return
    for model in models:
        yield from model.partly_seen()
        for module in model.modules():
            # Under sequence_parallel each tp rank routes its own part of the sequence.
            if isinstance(module, Experts) and settings.sequence_parallel:
                yield module.router.weight


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
        model: HeldStage = PretrainedStage(
            settings.model,
            stage=stage,
            num_stages=settings.num_stages,
            recompute=settings.recompute,
            dtype=compute_dtype(settings),
        )
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
