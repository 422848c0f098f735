"""What a script or a notebook calls: layouts, schedules, launch files and traces as plain values.

    layout, schedule         what would be, from sizes
    model_states             what a rank of a layout holds of a model's state
    plan_job                 whether a job fits, and how long its step takes
    read_launch, read_trace  what files say
    analyse                  what a trace tells
    diagnose_job             which rank hung or is slow, and why

Each is asked for as on the command line, under the same names, and goes the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from serried.launch.facts.config import LaunchConfig
from serried.launch.read import read_path
from serried.launch.request import LayoutRequest
from serried.mesh import Layout
from serried.mesh.sizes import Given
from serried.pipeline.costs import Costs, Number
from serried.pipeline.in_flight import Weights
from serried.pipeline.measured import MeasuredSchedule
from serried.pipeline.request import ScheduleRequest
from serried.plan.asked import FIELDS as PLANNED
from serried.plan.asked import plan_request
from serried.plan.job_plan import JobPlan, job_plan
from serried.plan.model_states import ModelStates, read_parameters
from serried.plan.model_states import model_states as states_of_model
from serried.plan.precision import DEFAULT
from serried.trace.formats.reading import read_trace as read_places
from serried.trace.measure.analysis import Analysis
from serried.trace.measure.analysis import analyse as measure
from serried.trace.merge.files import place_of
from serried.trace.model.trace import Trace

if TYPE_CHECKING:
    from serried.diagnose.diagnosis import Diagnosis


def layout(
    launch: str | Path | LaunchConfig | None = None,
    /,
    *,
    framework: str | None = None,
    settings: Mapping[str, object] | None = None,
    **sizes: Given,
) -> Layout:
    """Returns every process group of a job, over all ranks, under its framework's own rules.

    ``sizes`` are those of ``serried groups`` (``world_size tp pp cp dp ep …``); they go before
    what the ``launch`` file says. ``framework`` reads NAME or NAME@VERSION, and ``settings`` are
    under that framework's own names. Raises InputError for a job that cannot be.

    >>> layout(world_size=16, tp=2, pp=4).groups("dp").lists()[:2]
    [[0, 2], [1, 3]]
    """
    config = read_launch(launch) if isinstance(launch, str | Path) else launch
    texts = {key: str(value) for key, value in (settings or {}).items()}
    request = LayoutRequest.of(sizes, framework=framework, settings=texts, config=config)
    return request.layout()


def plan_job(
    launch: str | Path | LaunchConfig | None = None,
    /,
    *,
    framework: str | None = None,
    settings: Mapping[str, object] | None = None,
    **asked: object,
) -> JobPlan:
    """Returns the plan of a job: memory of each stage, traffic, time of a step and its parts.

    ``asked`` are sizes as ``layout`` takes them, and what ``serried plan`` has as options: model,
    cluster, sequence, global_batch, micro_batch, schedule, recompute, compute … Raises InputError
    for what is missing and for a job that cannot be.

    >>> plan = plan_job(
    ...     model="llama3-8b", cluster="h100", world_size=16, tp=2, pp=4, sequence=8192,
    ...     global_batch=64,
    ... )
    >>> plan.memory.fits, plan.memory.fullest.pp_rank
    (True, 0)
    """
    config = read_launch(launch) if isinstance(launch, str | Path) else launch
    texts = {key: str(value) for key, value in (settings or {}).items()}
    words = {
        name: ",".join(map(str, each)) if isinstance(each, list | tuple) else str(each)
        for name, each in asked.items()
        if name in PLANNED and each is not None
    }
    sizes = {name: each for name, each in asked.items() if name not in PLANNED}
    request = LayoutRequest.of(sizes, framework=framework, settings=texts, config=config)
    return job_plan(plan_request(request, words))


def model_states(
    layout: Layout,
    parameters: int | str,
    precision: str = DEFAULT,
    *,
    expert_parameters: int | str = 0,
) -> ModelStates:
    """Returns the bytes that a rank holds of parameters, gradients and optimizer state.

    ``parameters`` are a number or a text such as ``7.5B``, ``precision`` one of the recipes that
    ``--precision`` takes; who shares what is the layout's ``sharding``. Raises InputError for a
    number or a recipe that is none, and where the framework leaves sharding to a program.

    >>> held = model_states(layout(world_size=64, zero=3), "7.5B").held
    >>> held.parameters, held.total
    (234375000, 1875000000)
    """
    count, experts = (
        read_parameters(each) if isinstance(each, str) else each
        for each in (parameters, expert_parameters)
    )
    return states_of_model(layout, count, precision, expert_parameters=experts)


def schedule(
    name: str,
    *,
    stages: int | None = None,
    microbatches: int | None = None,
    chunks: int | None = None,
    group: int | None = None,
    moe_overlap: bool = False,
    costs: Costs | None = None,
    memory_limit: Number | None = None,
    memory: Weights | None = None,
    of: str = "stage",
) -> MeasuredSchedule:
    """Returns a pipeline schedule, simulated, with all that its simulation tells.

    ``name`` is one of those that ``serried schedule`` lists, or a CSV file of actions. Without
    ``costs`` a forward, and each half of a backward, takes 1. Costs and ``memory_limit`` are of a
    stage, or, with ``of="rank"``, of all stages of a rank together; ``memory`` is what a forward,
    an input gradient and a weight gradient add to it. Raises InputError for sizes that the
    schedule cannot have.

    >>> schedule("zb-h1", stages=4, microbatches=6).bubble.of_makespan
    Fraction(1, 7)
    """
    asked = {
        **{"stages": stages, "microbatches": microbatches, "chunks": chunks, "group": group},
        **{"moe_overlap": moe_overlap, "memory_limit": memory_limit, "memory": memory, "of": of},
    }
    return ScheduleRequest.of(name, asked, costs).measured()


def read_launch(path: str | Path) -> LaunchConfig:
    """Returns what a launch script or config says, or the one in a folder; nothing of it is run.

    Raises InputError when it is none, or cannot be read.
    """
    return read_path(Path(path))


def read_trace(*places: str | Path, sizes: Mapping[str, int] | None = None) -> Trace:
    """Returns the trace that folders, files or URLs hold, whichever tool wrote it, on one clock.

    ``sizes`` lay out the ranks of files that do not say how they stand. Raises InputError when
    they hold none, or of two tools.
    """
    return read_places([place_of(str(place)) for place in places], sizes)


def analyse(trace: Trace, *, tokens_per_microbatch: int | None = None) -> Analysis:
    """Returns all that is measured of a trace: bubble, ranks, critical path, throughput."""
    return measure(trace, tokens_per_microbatch=tokens_per_microbatch)


def diagnose_job(*places: str | Path) -> Diagnosis:
    """Returns which rank hung, which is slow, and why, by what files and folders hold of a job.

    They are what ``serried diagnose`` reads: logs, dumps, stacks, recordings. Raises InputError for
    a place that is not there or cannot be read.
    """
    from serried.diagnose.gather import gather  # most programs ask for no diagnosis
    from serried.diagnose.reason import diagnosed

    return diagnosed(gather([Path(place) for place in places]))
