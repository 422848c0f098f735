"""TrainSettings: everything one training run is asked for, checked on creation, free of torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Literal

from serried.errors import InputError, listed
from serried.frameworks import Sizes, layout
from serried.frameworks.framework import divisors
from serried.mesh import Layout
from serried.runtime.pipeline import is_file, schedule_of
from serried.schedule import Request, Schedule
from serried.trace.record import Job

VOCABULARY = 256
"""The model reads and predicts bytes."""

AXES = ("pp", "dp", "tp")
"""What a run splits along, slowest first; where ranks sit on these axes is the Layout's word."""

PLACING_OPTIONS = ("use_tp_pp_dp_mapping",)
"""Framework settings that a run obeys, as they place ranks; others would do nothing."""


@dataclass(frozen=True)
class ModelSizes:
    """Sizes of the byte-level GPT; the same model whatever the layout.

    Raises InputError when ``hidden`` cannot be cut into heads of an even size (rotary
    embeddings turn pairs).
    """

    layers: int = 4
    hidden: int = 64
    heads: int = 8
    seq_len: int = 64

    def __post_init__(self) -> None:
        for each in fields(self):
            _require_positive(each.name, getattr(self, each.name))
        if self.hidden % (2 * self.heads):
            raise InputError(
                "hidden={hidden} cannot be cut into {heads} heads of an even size; "
                "sizes that can: {fits}",
                hidden=self.hidden,
                heads=self.heads,
                fits=listed([2 * self.heads * n for n in range(1, 5)]) + ", …",
            )

    @property
    def head_size(self) -> int:
        """Width of one attention head."""
        return self.hidden // self.heads

    @property
    def ffn(self) -> int:
        """Width of the feed-forward layer: near SwiGLU's 8/3, and cut evenly by any tp."""
        return 3 * self.hidden


@dataclass(frozen=True)
class Emulated:
    """Fixed times, in milliseconds, that stand for a stage's computation of one microbatch.

    Each half of a backward that runs in two takes half of its time.
    """

    forward_ms: float = 12.0
    backward_ms: float = 24.0

    def __post_init__(self) -> None:
        for name in ("forward_ms", "backward_ms"):
            _require_above_zero(name, getattr(self, name))


@dataclass(frozen=True)
class TrainSettings:
    """Describes one run: its layout, model, data, steps, and what it writes.

    >>> settings = TrainSettings(world_size=8, tp=2, pp=2)
    >>> settings.dp, settings.microbatch_size, settings.compute
    (2, 4, 'real')

    Raises InputError for sizes that cannot be, with sizes that can.
    """

    world_size: int
    tp: int = 1
    pp: int = 1
    cp: int = 1
    framework: str = "megatron"
    order: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    schedule: str = "1f1b"
    """The pipeline's schedule: a name of the registry, or a CSV file that torch could run too."""
    chunks: int | None = None
    """Stages on each rank; None takes the schedule's own number."""
    group: int | None = None
    """Microbatches that run through a chunk before the next does, for schedules with groups."""
    model: ModelSizes = field(default_factory=ModelSizes)
    steps: int = 20
    global_batch_size: int = 32
    """Sequences in a step, over all data parallel ranks and microbatches."""
    microbatches: int = 4
    lr: float = 3e-3
    seed: int = 0
    data: Path | None = None
    """A file or folder of text; None takes the Python standard library's own source files."""
    emulated: Emulated | None = None
    """None computes for real."""
    trace_dir: Path | None = None
    trace_steps: tuple[int, int] | None = None
    """First step recorded and the one after the last; None records all."""
    log_file: Path | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    dtype: Literal["float32", "float64"] = "float32"
    """Of parameters, activations and gradients; all computation is in it."""
    timeout_s: float = 300.0
    """How long any collective or message may take before the run gives up."""

    def __post_init__(self) -> None:
        for name in ("steps", "global_batch_size", "microbatches"):
            _require_positive(name, getattr(self, name))
        for name in ("lr", "timeout_s"):
            _require_above_zero(name, getattr(self, name))
        self._refuse_what_runs_not()
        self._check_axes()
        self._check_stages()
        self._check_batch()
        self._check_window()

    @cached_property
    def layout(self) -> Layout:
        """Every group of the run, by the framework's own arithmetic."""
        sizes = Sizes(
            self.world_size, tp=self.tp, pp=self.pp, order=self.order, options=self.options
        )
        return layout(self.framework, sizes)

    @cached_property
    def pipeline(self) -> Schedule:
        """What each rank of a pipeline runs in which order, and where each stage is."""
        request = Request(self.pp, self.microbatches, self.chunks, self.group)
        return schedule_of(self.schedule, request)

    @property
    def num_stages(self) -> int:
        """How many stages the model is cut into."""
        return self.pipeline.placement.num_stages

    @property
    def dp(self) -> int:
        """The data parallel size: what tp and pp leave of the world."""
        return self.layout.sizes["dp"]

    @property
    def microbatch_size(self) -> int:
        """Sequences in one microbatch on one data parallel rank."""
        return self.global_batch_size // (self.dp * self.microbatches)

    @property
    def compute(self) -> Literal["real", "emulated"]:
        """How stages compute, as traces and logs call it."""
        return "emulated" if self.emulated else "real"

    def resolved(self) -> TrainSettings:
        """Returns the same settings with absolute paths, for processes that start elsewhere."""
        named = {name: getattr(self, name) for name in ("data", "trace_dir", "log_file")}
        schedule = self.schedule
        return replace(
            self,
            schedule=str(Path(schedule).absolute()) if is_file(schedule) else schedule,
            **{name: path and path.absolute() for name, path in named.items()},
        )

    def records(self, step: int) -> bool:
        """Tells whether ``step`` falls into the recorded window."""
        first, end = self.trace_steps or (0, self.steps)
        return first <= step < end

    def job(self, backend: str) -> Job:
        """Returns what a trace's header says of this run."""
        return Job(
            framework=self.framework,
            world_size=self.world_size,
            sizes=dict(self.layout.sizes),
            order=self.layout.order,
            schedule=self.pipeline.name,
            num_microbatches=self.microbatches,
            compute=self.compute,
            backend=backend,
            options=dict(self.options),
        )

    def _refuse_what_runs_not(self) -> None:
        if self.cp != 1:
            raise InputError(
                "cp={cp}: training runs with tensor, pipeline and data parallelism only; "
                "leave out cp (serried groups shows context groups)",
                cp=self.cp,
            )
        for key in self.options:
            if key not in PLACING_OPTIONS:
                raise InputError(
                    "setting '{key}' does not place ranks and a run would ignore it; "
                    "settings that do: {known}",
                    key=key,
                    known=listed(PLACING_OPTIONS),
                )

    def _check_axes(self) -> None:
        """Refuses a framework that places ranks along more than pp, dp and tp."""
        sizes = self.layout.mesh.sizes
        if math.prod(sizes.get(axis, 0) for axis in AXES) != self.world_size:
            raise InputError(
                "{framework} places ranks along {axes} here; training runs along {known} only, "
                "as megatron and internlm place them",
                framework=self.framework,
                axes=listed(f"{axis}={size}" for axis, size in sizes.items()),
                known=listed(AXES),
            )

    def _check_stages(self) -> None:
        self._check_layers()
        if self.tp > 1 and math.gcd(self.model.heads, VOCABULARY) % self.tp:
            raise InputError(
                "tp={tp} does not divide {heads} heads and the vocabulary of {vocabulary}; "
                "sizes that do: {fits}",
                tp=self.tp,
                heads=self.model.heads,
                vocabulary=VOCABULARY,
                fits=listed(divisors(math.gcd(self.model.heads, VOCABULARY))),
            )

    def _check_layers(self) -> None:
        if self.model.layers < self.num_stages == self.pp:
            raise InputError(
                "layers={layers} cannot fill pp={pp} stages; take at least {pp} layers, "
                "or pp up to {layers}",
                layers=self.model.layers,
                pp=self.pp,
            )
        if self.model.layers < self.num_stages:
            raise InputError(
                "layers={layers} cannot fill the {stages} stages that {schedule} has on pp={pp}; "
                "take at least {stages} layers",
                layers=self.model.layers,
                stages=self.num_stages,
                schedule=self.pipeline.name,
                pp=self.pp,
            )

    def _check_batch(self) -> None:
        unit = self.dp * self.microbatches
        if self.global_batch_size % unit:
            raise InputError(
                "global batch size {batch} is not a multiple of dp={dp} x {m} microbatches; "
                "sizes that are: {fits}",
                batch=self.global_batch_size,
                dp=self.dp,
                m=self.microbatches,
                fits=listed([unit * n for n in range(1, 5)]) + ", …",
            )

    def _check_window(self) -> None:
        if self.trace_steps is None:
            return
        first, end = self.trace_steps
        if not 0 <= first < end or first >= self.steps:
            raise InputError(
                "trace steps {first}:{end} hold none of the steps 0 to {last}; "
                "give the first and the one after the last, such as 0:{steps}",
                first=first,
                end=end,
                last=self.steps - 1,
                steps=self.steps,
            )


def stage_layers(layers: int, num_stages: int) -> list[range]:
    """Cuts ``layers`` into a run for each stage, as even as can be, longer ones first.

    >>> stage_layers(5, 2)
    [range(0, 3), range(3, 5)]
    """
    short, longer = divmod(layers, num_stages)
    starts = [stage * short + min(stage, longer) for stage in range(num_stages + 1)]
    return [range(a, b) for a, b in pairwise(starts)]


def _require_positive(name: str, value: int) -> None:
    if value < 1:
        raise InputError("{name}={value}; it is at least 1", name=name, value=value)


def _require_above_zero(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise InputError("{name}={value}; it is above zero", name=name, value=value)
