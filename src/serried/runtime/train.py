"""The training loop of one rank: set up its stages, then step after step."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

from serried.errors import EnvironmentProblem
from serried.runtime.data import Corpus
from serried.runtime.emulate import EmulatedStage
from serried.runtime.groups import RankGroups, make_groups
from serried.runtime.model import Stage
from serried.runtime.parallelize import parallelize, parameter_bytes
from serried.runtime.recording import Recording
from serried.runtime.report import Place, Progress, RankReport, Started, StepDone
from serried.runtime.settings import AXES, TrainSettings
from serried.runtime.stage import RecordedStage, make_runtime
from serried.runtime.torch_private import time_messages
from serried.span import ActionKind


def train_rank(
    settings: TrainSettings, place: Place, rendezvous: Mapping[str, Any], tell: Progress
) -> None:
    """Runs one rank from its first message to its last; all ranks of the run call it.

    ``rendezvous`` is how torch.distributed finds the others: a store, or nothing for env://.
    """
    device = _device(settings, place)
    backend = "nccl" if device.type == "cuda" else "gloo"
    timeout = timedelta(seconds=settings.timeout_s)
    dist.init_process_group(
        backend,
        rank=place.rank,
        world_size=place.world_size,
        timeout=timeout,
        device_id=device if device.type == "cuda" else None,
        **rendezvous,
    )
    run = [secrets.token_hex(4)]
    dist.broadcast_object_list(run, src=0)
    groups = make_groups(settings.layout, device, timeout)
    recording = Recording.of(settings, run=run[0], rank=place.rank, backend=backend)
    RankTrainer(settings, groups, recording).run(run[0], tell)
    recording.close()
    # Nobody leaves while another still waits for its messages.
    dist.barrier()


def _device(settings: TrainSettings, place: Place) -> torch.device:
    """Returns a GPU of its own for each local rank where there are as many, else the CPU."""
    gpus = torch.cuda.device_count() if settings.device != "cpu" else 0
    if gpus < place.local_world_size:
        if settings.device == "cuda":
            raise EnvironmentProblem(
                "device cuda needs a GPU for each of the {ranks} local ranks; {gpus} were found; "
                "take fewer ranks or device cpu",
                ranks=place.local_world_size,
                gpus=gpus,
            )
        return torch.device("cpu")
    device = torch.device("cuda", place.local_rank)
    torch.cuda.set_device(device)
    return device


class RankTrainer:
    """Trains the stages of one rank."""

    def __init__(self, settings: TrainSettings, groups: RankGroups, recording: Recording) -> None:
        self.settings = settings
        self.groups = groups
        self.recording = recording
        self.models = make_models(settings, groups)
        stages = [RecordedStage(model, settings, groups, recording) for model in self.models]
        self.is_first = any(stage.is_first for stage in stages)
        self.is_last = any(stage.is_last for stage in stages)
        self.runtime = make_runtime(stages, settings.pipeline)
        # foreach mixes DTensors with plain tensors, which torch does not promise to take.
        self.optimizer = torch.optim.AdamW(self.models.parameters(), lr=settings.lr, foreach=False)
        self.corpus = Corpus.of(settings.data)

    def run(self, run: str, tell: Progress) -> None:
        """Runs all steps, telling of each; all ranks call it together."""
        tell(Started(run, self._gather_reports()))
        with time_messages(self.recording.now, self.recording.add):
            self.warm_up()
            dist.barrier()  # ranks warm up at different speeds; the first step begins together
            for step in range(self.settings.steps):
                start = time.monotonic()
                loss = self.step(step)
                tell(StepDone(step, loss, (time.monotonic() - start) * 1e3))

    def warm_up(self) -> None:
        """Runs step 0 once without recording it or learning from it.

        On first use torch loads parts of itself, plans DTensor operations and opens
        connections, for seconds; that belongs to no step.
        """
        self.compute(0)
        torch.optim.AdamW(self.models.parameters(), lr=0.0, weight_decay=0.0, foreach=False).step()
        self.models.zero_grad()

    def step(self, step: int) -> float | None:
        """Runs one step; returns the mean loss of its global batch, None where emulated."""
        self.recording.begin_step(step)
        losses = self.compute(step)
        start = self.recording.now()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.recording.add(ActionKind.OPTIMIZER, start, self.recording.now())
        return None if self.settings.emulated else self._mean_loss(losses)

    def compute(self, step: int) -> list[Tensor]:
        """Runs all forwards and backwards of a step; returns the last stage's losses.

        Gradients are then averaged over microbatches and data parallel ranks.
        """
        inputs, targets = self._batch(step)
        losses: list[Tensor] = []
        given = (inputs,) if self.is_first else ()
        self.runtime.step(*given, target=targets, losses=losses, return_outputs=False)
        return losses

    def _batch(self, step: int) -> tuple[Tensor | None, Tensor | None]:
        """Returns this rank's inputs and targets; middle stages need neither."""
        if not (self.is_first or self.is_last):
            return None, None
        per_rank = self.settings.global_batch_size // self.settings.dp
        first = self.groups.coordinate("dp") * per_rank
        text = self.corpus.batch(
            seed=self.settings.seed,
            step=step,
            samples=range(first, first + per_rank),
            length=self.settings.model.seq_len + 1,
        )
        on_device = torch.from_numpy(text).to(self.groups.device)
        inputs, targets = on_device[:, :-1].contiguous(), on_device[:, 1:].contiguous()
        return inputs, targets if self.is_last else None

    def _mean_loss(self, losses: list[Tensor]) -> float:
        """Averages over microbatches and dp on the last stage, then tells the whole pipeline."""
        mean = torch.zeros((), device=self.groups.device, dtype=_dtype(self.settings))
        if self.is_last:
            mean = torch.stack([loss.detach() for loss in losses]).mean()
            dist.all_reduce(mean, group=self.groups.group("dp"))
            mean /= self.settings.dp
        last = self.groups.members("pp")[self.settings.pipeline.placement.rank_of[0, -1]]
        dist.broadcast(mean, src=last, group=self.groups.group("pp"))
        return mean.item()

    def _gather_reports(self) -> tuple[RankReport, ...]:
        report = RankReport(
            rank=self.groups.rank,
            pid=os.getpid(),
            device=str(self.groups.device),
            coordinates={axis: self.groups.coordinate(axis) for axis in AXES},
            groups={axis: self.groups.members(axis) for axis in AXES},
            modules=tuple(name for model in self.models for name in model.held()),
            parameter_bytes=parameter_bytes(self.models),
        )
        reports: list[RankReport] = [report] * self.settings.world_size
        dist.all_gather_object(reports, report)
        return tuple(reports)


class Stages(nn.ModuleList):
    """Holds the stages of one rank, in the order of the model."""

    def __iter__(self) -> Iterator[Stage]:
        return cast(Iterator[Stage], super().__iter__())


def make_models(settings: TrainSettings, groups: RankGroups) -> Stages:
    """Returns this rank's stages, weights drawn, sharded and replicated."""
    held = settings.pipeline.placement.stages_of(groups.coordinate("pp"))
    return Stages(_make_model(settings, groups, stage) for _, stage in held)


def _make_model(settings: TrainSettings, groups: RankGroups, stage: int) -> Stage:
    place = {"stage": stage, "num_stages": settings.num_stages}
    if settings.emulated:
        model: Stage = EmulatedStage(settings.model, settings.emulated, **place)
    else:
        model = Stage(settings.model, **place)
    model.draw_weights(settings.seed)
    model.to(groups.device, _dtype(settings))
    parallelize(model, groups)
    if isinstance(model, EmulatedStage) and groups.size("tp") > 1:
        model.tp_group = groups.group("tp")
    return model


def _dtype(settings: TrainSettings) -> torch.dtype:
    dtype: torch.dtype = getattr(torch, settings.dtype)
    return dtype
