"""TrainSettings: everything one training run is asked for, checked on creation, free of torch.

model        ModelSizes: layers, heads, experts …
optimizer    OptimizerSettings: learning rate, clipping, loss scaling
checkpoints  CheckpointSettings; Validation
parallel     what the axes ask of the model and of each other
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from serried.errors import InputError, listed
from serried.frameworks import Sizes, layout
from serried.mesh import Layout
from serried.pipeline import Request, Schedule
from serried.runtime.job.checkpoints import CheckpointSettings, Validation
from serried.runtime.job.limits import require_above_zero, require_positive
from serried.runtime.job.model import VOCABULARY, ModelSizes, stage_layers
from serried.runtime.job.optimizer import OptimizerSettings
from serried.runtime.job.parallel import check_parallel
from serried.runtime.job.pipeline import is_file, schedule_of
from serried.trace.model.record import TracedJob

__all__ = [
    "AXES",
    "VOCABULARY",
    "CheckpointSettings",
    "Emulated",
    "ModelSizes",
    "OptimizerSettings",
    "TrainSettings",
    "Validation",
    "stage_layers",
]

AXES = ("pp", "dp", "cp", "tp")
"""What dense layers split along, slowest first; where ranks sit on these is the Layout's word."""

PLACING_OPTIONS = ("use_tp_pp_dp_mapping",)
"""Framework settings that a run obeys, as they place ranks; others would do nothing."""


@dataclass(frozen=True)
class Emulated:
    """Fixed times, in milliseconds, that stand for a stage's computation of one microbatch.

    Each half of a backward that runs in two takes half of its time.
    """

    forward_ms: float = 12.0
    backward_ms: float = 24.0

    def __post_init__(self) -> None:
        for name in ("forward_ms", "backward_ms"):
            require_above_zero(name, getattr(self, name))


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
    ep: int = 1
    """Ranks that share out the experts, among those of tp, cp and dp; experts are not cut by tp."""
    cp_form: Literal["ring", "ring-two-pass", "ulysses", "all-gather"] = "ring"
    sequence_parallel: bool = False
    """Whether tensor parallel ranks split what lies between their matrices along the sequence."""
    loss_parallel: bool = False
    """Whether the loss is taken from scores that stay split along the vocabulary."""
    vocab_divisible_by: int = 128
    """Rows of the vocabulary on each tp rank are a multiple of it, as in Megatron."""
    dp_style: Literal["replicate", "buffer"] = "replicate"
    """How zero=0 sums gradients: by torch, or in one buffer per dtype, as Megatron's DDP does."""
    zero: int = 0
    """1 shards optimizer state, 2 gradients too, 3 parameters too, over dp x cp."""
    zero_shard: int | None = None
    """Ranks that share one copy, the others replicate it (HSDP); None takes all of dp x cp."""
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
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    recompute: Literal["none", "selective", "full"] = "none"
    """What backward computes again instead of keeping: nothing, attention, or whole layers."""
    steps: int = 20
    global_batch_size: int = 32
    """Sequences in a step, over all data parallel ranks and microbatches."""
    microbatches: int = 4
    """Parts of a rank's batch that run one by one, their gradients accumulated."""
    seed: int = 0
    data: Path | None = None
    """A file or folder of text; None takes the Python standard library's own source files."""
    emulated: Emulated | None = None
    """None computes for real."""
    trace_dir: Path | None = None
    trace_steps: tuple[int, int] | None = None
    """First step recorded and the one after the last; None records all."""
    log_file: Path | None = None
    tensorboard: Path | None = None
    """A folder for TensorBoard's event files."""
    checkpoints: CheckpointSettings = field(default_factory=CheckpointSettings)
    validation: Validation = field(default_factory=Validation)
    device: Literal["auto", "cpu", "cuda"] = "auto"
    dtype: Literal["float32", "float64", "bfloat16", "float16"] = "float32"
    """Of computation; with 16 bits the optimizer keeps its own weights in float32."""
    timeout_s: float = 300.0
    """How long any collective or message may take before the run gives up."""

    def __post_init__(self) -> None:
        for name in ("steps", "global_batch_size", "microbatches", "vocab_divisible_by"):
            require_positive(name, getattr(self, name))
        require_above_zero("timeout_s", self.timeout_s)
        self._refuse_options()
        self._check_axes()
        self._check_layers()
        check_parallel(self)
        self._check_batch()
        self._check_window()

    @cached_property
    def layout(self) -> Layout:
        """Every group of the run, by the framework's own arithmetic."""
        axes = {"tp": self.tp, "pp": self.pp, "cp": self.cp, "ep": self.ep}
        etp = 1 if self.model.experts else None
        sizes = Sizes(self.world_size, **axes, etp=etp, order=self.order, options=self.options)
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
        """The data parallel size: what tp, pp and cp leave of the world."""
        return self.layout.sizes["dp"]

    @property
    def edp(self) -> int:
        """Ranks of a stage that hold the same experts."""
        return self.world_size // (self.pp * self.ep)

    @property
    def vocabulary(self) -> int:
        """Rows of the embedding: bytes, and what makes them a multiple of tp.

        As Megatron-LM 0.16 pads it (megatron/training/tokenizer, _vocab_size_with_padding). The
        rows that are no bytes stay zero, and neither score nor count.

        >>> [TrainSettings(tp, tp=tp, model=ModelSizes(heads=tp)).vocabulary for tp in (1, 2, 4)]
        [256, 256, 512]
        """
        unit = self.vocab_divisible_by * self.tp
        return -(-VOCABULARY // unit) * unit

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
        paths = ("data", "trace_dir", "log_file", "tensorboard")
        named = {name: getattr(self, name) for name in paths}
        schedule = self.schedule
        return replace(
            self,
            schedule=str(Path(schedule).absolute()) if is_file(schedule) else schedule,
            checkpoints=self.checkpoints.resolved(),
            **{name: path and path.absolute() for name, path in named.items()},
        )

    def records(self, step: int) -> bool:
        """Tells whether ``step`` falls into the recorded window."""
        first, end = self.trace_steps or (0, self.steps)
        return first <= step < end

    def job(self, backend: str) -> TracedJob:
        """Returns what a trace's header says of this run."""
        return TracedJob(
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

    def _refuse_options(self) -> None:
        for key in self.options:
            if key not in PLACING_OPTIONS:
                raise InputError(
                    "setting '{key}' does not place ranks and a run would ignore it; "
                    "settings that do: {known}",
                    key=key,
                    known=listed(PLACING_OPTIONS),
                )

    def _check_axes(self) -> None:
        """Refuses a framework that places ranks along more than pp, dp, cp and tp."""
        sizes = self.layout.mesh.sizes
        if math.prod(sizes.get(axis, 1) for axis in AXES) != self.world_size:
            raise InputError(
                "{framework} places ranks along {axes} here; training runs along {known} only, "
                "as megatron and internlm place them",
                framework=self.framework,
                axes=listed(f"{axis}={size}" for axis, size in sizes.items()),
                known=listed(AXES),
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
