"""A step whose pipeline is walked action by action, with each stage's own times.

    layers of each stage ──> forward, input gradient, weight gradient of each ──> the schedule
    embedding, output, loss ──> on the first and last stage                       simulated

Any schedule of the registry runs so; ``plan.time.stages`` bounds the common ones in closed form.
What follows the pipeline (replicas, optimizer, stragglers) is that of the closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from serried.action import ActionKind
from serried.pipeline.costs import Costs, Links
from serried.pipeline.measured import MeasuredSchedule
from serried.pipeline.request import ScheduleRequest
from serried.plan.model.stages import ModelStage, layers_accounted, stages_listed
from serried.plan.request import PlanRequest
from serried.plan.time.constants import Constants, shipped
from serried.plan.time.exposed import stage_link
from serried.plan.time.jobs import Jobs
from serried.plan.time.rates import rates
from serried.plan.time.step import StepTimes, step_times
from serried.plan.traffic.volumes import boundary_bytes

NS = 1e9


@dataclass(frozen=True, eq=False)
class StagePasses:
    """Holds nanoseconds of a microbatch on each stage, in their order through the model."""

    forward: list[float]
    input_grad: list[float]
    weight_grad: list[float]


@dataclass(frozen=True, eq=False)
class SimulatedStep:
    """Holds a planned step: its pipeline's actions on every rank, and what follows them."""

    schedule: MeasuredSchedule
    """Times in nanoseconds."""
    passes: StagePasses
    pipeline_s: float
    after_s: float
    """What replicas, the optimizer, stragglers and the rest add."""

    replicas_s: float
    """What of it replicas exchange, where nothing hides it."""
    stage_layers: tuple[int, ...]
    """Layers of each stage, in their order through the model."""

    @property
    def step_s(self) -> float:
        """The whole step, in seconds."""
        return self.pipeline_s + self.after_s

    @property
    def own_after_s(self) -> float:
        """What follows the pipeline but the exchange of replicas: optimizer, stragglers, rest."""
        return self.after_s - self.replicas_s

    @cached_property
    def fullest(self) -> int:
        """The rank of the pipeline that works most."""
        return int(np.argmax(self.schedule.simulation.work))

    @property
    def work_s(self) -> float:
        """What the fullest rank works of the pipeline's time."""
        simulation = self.schedule.simulation
        return float(simulation.ticks.number(simulation.work[self.fullest])) / NS

    @property
    def layers(self) -> int:
        """Layers that the fullest rank runs forward, once for each microbatch."""
        lists = self.schedule.schedule
        is_its = (lists.rank == self.fullest) & (lists.kind == ActionKind.F)
        return int(np.array(self.stage_layers)[lists.stage[is_its]].sum())


def simulated_step(request: PlanRequest, constants: Constants | None = None) -> SimulatedStep:
    """Returns the step of one job with its pipeline simulated.

    Raises InputError for a schedule that cannot have the job's sizes.
    """
    known = constants or shipped()
    jobs = Jobs.of([request])
    times = step_times(jobs, known)
    passes = stage_passes(request, times)
    late = known.value("latency")
    speed = float(stage_link(jobs, rates(jobs, known))[0])
    split = request.degrees.tp if request.has_sequence_parallel else 1
    message = float(np.asarray(boundary_bytes(request.tokens, request.model.hidden, split)))
    costs = Costs(
        forward=passes.forward,
        input_grad=passes.input_grad,
        weight_grad=passes.weight_grad,
        links=Links(round(late * NS), round(message), speed / NS),
    )
    chunks = request.degrees.chunks
    asked = ScheduleRequest(
        request.schedule,
        stages=request.degrees.pp,
        microbatches=request.num_microbatches,
        chunks=chunks if chunks > 1 else None,
        costs=costs,
    )
    schedule = asked.measured()
    pipeline = float(schedule.simulation.makespan) / NS
    others = ("dp", "optimizer", "fixed")
    after = sum(float(times.parts[name][0]) for name in others)
    slower = float(times.parts["straggling"][0]) / float(
        times.step[0] - times.parts["straggling"][0]
    )
    layers = tuple(stage.num_layers + stage.mtp_layers for stage in _stages(request))
    whole = after + (pipeline + after) * slower
    replicas = float(times.parts["dp"][0])
    return SimulatedStep(schedule, passes, pipeline, whole, replicas, layers)


def stage_passes(request: PlanRequest, times: StepTimes) -> StagePasses:
    """Returns the passes of a microbatch through each stage, whose layers are all alike."""
    layer, ends = times.layer, times.stages
    whole, ahead = float(layer.total[0]), float(layer.forward[0])
    weights = float(np.ravel(layer.parts["matrices"])[0]) / 3.0 if request.lora is None else 0.0
    embedding, output = float(np.ravel(ends.embedding)[0]), float(np.ravel(ends.output)[0])
    passes = StagePasses([], [], [])
    for stage in _stages(request):
        count = stage.num_layers + stage.mtp_layers
        head = output if stage.has_output else 0.0
        first = embedding if stage.has_embedding else 0.0
        passes.forward.append((count * ahead + (head + first) / 3.0) * NS)
        rest = count * (whole - ahead - weights)
        passes.input_grad.append((rest + head / 3.0 + first / 3.0) * NS)
        passes.weight_grad.append((count * weights + (head + first) / 3.0) * NS)
    return passes


def _stages(request: PlanRequest) -> tuple[ModelStage, ...]:
    model, degrees = request.model, request.degrees
    if request.stage_layers is not None or request.stage_picture is not None:
        return request.stages
    count = degrees.num_stages
    each, left = divmod(model.layers, count)
    if left and (model.layers + 2) % count == 0:
        return stages_listed(model, layers_accounted(model, degrees.pp, degrees.chunks))
    return stages_listed(model, [each + (stage < left) for stage in range(count)])
