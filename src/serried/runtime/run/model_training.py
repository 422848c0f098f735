"""Trains any model over a layout's groups: cut into stages, over tp, shared out over dp; resumable.

    the model, whole, the same on every rank
      └─ cut       into the stages of the schedule           runtime.stages
          └─ cut   over tp, by a plan                        training.tensor_plan
              └─ shared out over dp, by copies or ZeRO       training.sharing

It is the engine that ``serried train`` runs on: the same schedules, gradients, norm, checkpoints
and spans. Which samples a step reads follows from how many were read before, whatever the layout;
so a run goes on from its checkpoint as if it had not stopped, at another layout too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from serried.errors import InputError, listed
from serried.pipeline import Request, Schedule
from serried.runtime.checkpoint.saving import Checkpoints
from serried.runtime.checkpoint.tensors import RunTensors
from serried.runtime.groups.lost_peers import exchange_lost
from serried.runtime.job.checkpoints import CheckpointSettings
from serried.runtime.job.pipeline import schedule_of
from serried.runtime.job.report import Progress, StepDone
from serried.runtime.run.engine import Engine, StepWork
from serried.runtime.run.identity import described, recorder_into
from serried.runtime.stages.cut import ModelCut, cut, layers_of
from serried.runtime.stages.observed import at_rest, on_meta
from serried.runtime.training.data import BatchShare, SampleOrder
from serried.runtime.training.loop_state import LoopState, seed_dropout
from serried.runtime.training.mesh import TrainMesh
from serried.runtime.training.optimizer import MakeOptimizer, Optimizer
from serried.runtime.training.sharing import share_out
from serried.runtime.training.stage import RecordedStage
from serried.runtime.training.tensor_plan import TensorPlan, cut_over_tp
from serried.runtime.training.tied import TiedWeight

ReadBatch = Callable[[Sequence[int]], tuple[Tensor, Tensor]]
"""Returns inputs and targets, (samples, …) each, of the samples at the places given."""

LossFunction = Callable[[Tensor, Tensor], Tensor]
"""Returns the mean loss of a microbatch, from what the model returns and the targets."""


@dataclass(frozen=True)
class ModelSplit:
    """Says how a model is split over the axes of its groups; by default it is whole everywhere."""

    schedule: str = "1f1b"
    """Name of a pipeline schedule, or a CSV file of its actions."""
    microbatches: int = 1
    """Parts of a rank's batch that run one by one, their gradients accumulated."""
    chunks: int | None = None
    """Stages on each rank; None takes the schedule's own number."""
    at: Sequence[str] | Sequence[int] | None = None
    """Layers at which all stages but the first begin, or numbers of layers; None cuts evenly."""
    layers: str | None = None
    """Name of the list of layers; None takes the longest."""
    plan: TensorPlan = field(default_factory=dict)
    """How modules are cut over tp."""
    counts: Sequence[str] = ()
    """Attributes of which each tp rank has its share, such as numbers of heads."""
    output: Callable[[Any], Any] | None = None
    """Takes the tensor for the loss out of what the model returns."""


class ModelTraining(Engine):
    """Trains a model of one's own; all ranks make it and run it together.

    >>> from serried.runtime.run.program import join
    >>> training = ModelTraining(
    ...     nn.Linear(1, 1, bias=False),
    ...     join(),  # this process alone is a job of one rank
    ...     loss=nn.functional.mse_loss,
    ...     batch=lambda numbers: (torch.ones(len(numbers), 1), torch.zeros(len(numbers), 1)),
    ...     global_batch_size=4,
    ...     optimizer=lambda weights: torch.optim.SGD(weights, lr=0.25),
    ... )
    >>> losses = [done.loss for done in training.run(3)]  # the weight halves with each step
    >>> [round(one / next_one, 3) for one, next_one in zip(losses, losses[1:])]
    [4.0, 4.0]
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        model: nn.Module,
        groups: TrainMesh,
        *,
        loss: LossFunction,
        batch: ReadBatch,
        global_batch_size: int,
        optimizer: MakeOptimizer,
        split: ModelSplit | None = None,
        order: SampleOrder | None = None,
        rate: Callable[[int], float] | None = None,
        clip: float = 0.0,
        seed: int = 0,
        checkpoints: CheckpointSettings | None = None,
        trace_dir: str | Path | None = None,
        trace_steps: tuple[int, int] | None = None,
        tell: Progress = lambda event: None,
    ) -> None:
        """Splits ``model``, which is whole and the same on every rank, over ``groups``.

        ``batch`` is given places of samples: those of ``order``, or their numbers in the run
        without one. ``rate`` gives the learning rate of an update, from 0, and ``clip`` the norm
        that gradients are clipped to; 0 clips nothing. ``seed`` is dropout's. ``tell`` hears of
        checkpoints. Raises InputError where the model, the batch or the checkpoint does not fit.
        """
        split = split or ModelSplit()
        schedule = _schedule(split, groups)
        self.order, self.read, self.tell = order, batch, tell
        self.share = BatchShare(
            global_batch_size, split.microbatches, groups.size("dp"), groups.coordinate("dp")
        )
        inputs, targets = batch(self._places(list(range(self.share.microbatch_size))))
        self._description = described(model, order, groups, schedule)
        tokens = targets[0].numel()
        work = _work(self.share, tokens, len(_layers(model, split)))
        recorder = recorder_into(trace_dir, trace_steps, groups, schedule, work)
        made = _cut(model, split, schedule, groups, inputs)
        modules, shapes = _laid_out(made, split, schedule, groups)
        stages = [
            RecordedStage(
                *(module, number, made.num_stages, groups, recorder),
                shapes=shapes[number],
                loss=loss,
            )
            for number, module in modules.items()
        ]
        gathers = groups.zero > 0 and groups.size("dp_cp") > 1
        step = StepWork(schedule, global_batch_size, tokens, gathers=gathers)
        super().__init__(step, stages, groups, recorder, LoopState())
        self.optimizer = Optimizer(
            [parameter for module in modules.values() for parameter in module.parameters()],
            *(groups, self.state, optimizer),
            rate=rate,
            clip=clip,
            dtype=str(next(model.parameters()).dtype).removeprefix("torch."),
            tied=tied_weights(made, modules, schedule, groups),
        )
        self.checkpoints = self._saving(_named(made, modules), checkpoints or CheckpointSettings())
        seed_dropout(seed, groups)

    def _saving(
        self, weights: Iterator[tuple[str, nn.Parameter]], settings: CheckpointSettings
    ) -> Checkpoints:
        """Returns what saves these weights and the run's state, and begins from what is saved."""
        return Checkpoints(
            RunTensors(weights, self.optimizer, rank=self.mesh.rank),
            self.state,
            settings,
            lambda: self._description,
            steps=0,
            timeout_s=self.mesh.timeout_s,
        )

    def run(self, steps: int) -> Iterator[StepDone]:
        """Runs the run's steps up to ``steps``, from its checkpoint on, and yields each.

        A step that is saved is yielded before; the last one is always saved, where any are.
        """
        self.checkpoints.steps = steps
        try:
            with self.timed():
                self.checkpoints.begin(self.tell)
                while self.state.step < steps:
                    yield self.step()
                    self.checkpoints.after_step(self.tell)
                self.checkpoints.finish(self.tell)
            self.recorder.close()
        except RuntimeError as error:
            lost = exchange_lost(error, self.mesh.groups, self.mesh.timeout_s)
            if lost is None:
                raise
            raise lost from error

    def batch(self, first: int) -> tuple[Tensor | None, Tensor | None]:
        """Returns this rank's inputs and targets of the batch that begins with sample ``first``."""
        if not (self.is_first or self.is_last):
            return None, None
        inputs, targets = self.read(self._places(self.share.numbers(first)))
        return inputs.to(self.mesh.device), targets.to(self.mesh.device)

    def _places(self, numbers: list[int]) -> list[int]:
        return [self.order.place(number) for number in numbers] if self.order else numbers


def _schedule(split: ModelSplit, groups: TrainMesh) -> Schedule:
    """Returns what the pipeline runs; raises InputError for groups that a model cannot use."""
    if groups.size("cp") > 1:
        raise InputError(
            "cp={cp} cuts sequences, which only attention that knows of it can compute; take cp=1",
            cp=groups.size("cp"),
        )
    if groups.size("tp") > 1 and not split.plan:
        raise InputError(
            "tp={tp} cuts a model by a plan of its modules, and none is given; give one, such as "
            "'layers.*.up': 'column' and 'layers.*.down': 'row', or take tp=1",
            tp=groups.size("tp"),
        )
    request = Request(groups.size("pp"), split.microbatches, split.chunks)
    return schedule_of(split.schedule, request)


def _cut(
    model: nn.Module, split: ModelSplit, schedule: Schedule, groups: TrainMesh, example: Tensor
) -> ModelCut:
    """Returns the model cut into as many stages as the schedule has."""
    stages = schedule.placement.num_stages
    at = stages if split.at is None else split.at
    made = cut(model.to(groups.device), at, example, layers=split.layers, output=split.output)
    if made.num_stages != stages:
        raise InputError(
            "the model is cut into {found} stages, and {schedule} on pp={pp} has {stages}; name "
            "{starts} layers at which one begins",
            found=made.num_stages,
            schedule=schedule.name,
            pp=groups.size("pp"),
            stages=stages,
            starts=stages - 1,
        )
    return made


def _work(share: BatchShare, tokens: int, layers: int) -> dict[str, int]:
    """Returns what a record says of a microbatch; the layers only of a model that lists them."""
    told = {"sequences": share.microbatch_size, "tokens": tokens}
    return told | {"layers": layers} if layers else told


def _laid_out(
    made: ModelCut, split: ModelSplit, schedule: Schedule, groups: TrainMesh
) -> tuple[dict[int, nn.Module], dict[int, tuple[Tensor, Tensor]]]:
    """Returns this rank's stages, cut over tp and shared out over replicas, and their shapes."""
    modules = _held(made, split, schedule, groups)
    # Before they are shared out: a stage whose weights are cut by ZeRO does not run by itself.
    shapes = _shapes(modules, made, schedule, groups)
    if groups.size("dp_cp") > 1:
        for number, module in modules.items():
            units = _units(made, module, number, split)
            share_out(module, groups, zero=groups.zero, units=units)
    return modules, shapes


def _held(
    made: ModelCut, split: ModelSplit, schedule: Schedule, groups: TrainMesh
) -> dict[int, nn.Module]:
    """Returns this rank's stages by number, cut over tp."""
    held: dict[int, nn.Module] = {}
    for _, number in schedule.placement.stages_of(groups.coordinate("pp")):
        held[number] = made.stage(number)
        cut_over_tp(held[number], groups.mesh["tp"], split.plan, counts=split.counts)
    return held


def _shapes(
    modules: Mapping[int, nn.Module], made: ModelCut, schedule: Schedule, groups: TrainMesh
) -> dict[int, tuple[Tensor, Tensor]]:
    """Returns what each stage of this rank takes and gives, by running all of them on zeros.

    The streams between stages may be cut over tp, so that the model alone does not tell.
    """
    shapes: dict[int, tuple[Tensor, Tensor]] = {}
    given = made.inputs[0]
    for number in range(made.num_stages):
        said: list[Any] = [None]
        if number in modules:
            zeros = torch.zeros(given.shape, dtype=given.dtype, device=groups.device)
            with at_rest(modules[number]):
                said = [on_meta(modules[number](zeros))]
        owner = int(schedule.placement.rank_of[0, number])
        if groups.size("pp") > 1:
            dist.broadcast_object_list(said, group_src=owner, group=groups.group("pp"))
        found: Tensor = said[0]
        if number in modules:
            ends = (given, found)
            shapes[number] = (_with_gradient(ends[0]), _with_gradient(ends[1]))
        given = found
    return shapes


def _with_gradient(tensor: Tensor) -> Tensor:
    return tensor.detach().requires_grad_(tensor.is_floating_point())


def _layers(model: nn.Module, split: ModelSplit) -> list[str]:
    """Returns the names of a model's layers; a model without a list of them has none."""
    try:
        return layers_of(model, split.layers)
    except InputError:
        return []


def _units(made: ModelCut, module: nn.Module, number: int, split: ModelSplit) -> list[nn.Module]:
    """Returns the layers of a stage, which ZeRO gathers one by one."""
    layers = _layers(made.model, split)
    held = made.parts(number) if made.starts else layers
    return [module.get_submodule(name) for name in layers if name in held]


def _aliases(made: ModelCut) -> dict[str, str]:
    """Returns the first name of each weight that stages share, by each of its names."""
    names: dict[int, str] = {}
    found: dict[str, str] = {}
    for name, parameter in made.model.named_parameters(remove_duplicate=False):
        found[name] = names.setdefault(id(parameter), name)
    return found


def _named(made: ModelCut, modules: Mapping[int, nn.Module]) -> Iterator[tuple[str, nn.Parameter]]:
    """Yields this rank's weights by their names in the whole model; copies have one name."""
    aliases = _aliases(made)
    for module in modules.values():
        for name, parameter in module.named_parameters():
            yield aliases[name], parameter


def tied_weights(
    made: ModelCut, modules: Mapping[int, nn.Module], schedule: Schedule, groups: TrainMesh
) -> list[TiedWeight]:
    """Returns the weights that two stages share, of which this rank has a copy."""
    aliases = _aliases(made)
    found: list[TiedWeight] = []
    ends = {0, groups.size("pp") - 1}
    for name, stages in made.tied.items():
        owners = {int(schedule.placement.rank_of[0, stage]) for stage in stages}
        if len(stages) > 2 or (len(owners) > 1 and owners != ends):
            raise InputError(
                "{name} is one weight of stages {stages}; two stages may share one, on one rank or "
                "on the first and the last of a pipeline, so cut elsewhere or untie it",
                name=name,
                stages=listed(stages, last="and"),
            )
        copies = [
            next((p for own, p in modules[stage].named_parameters() if aliases[own] == name), None)
            if stage in modules
            else None
            for stage in stages
        ]
        if any(copy is not None for copy in copies):
            first, last = stages
            found.append(TiedWeight((first, last), copies[0], copies[1], groups.group("embd")))
    return found
