"""What a run tells while it runs and at its end: ranks, steps, failures, and the result."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from serried.errors import EnvironmentProblem, InputError, SerriedError


@dataclass(frozen=True)
class Place:
    """Says which rank a process is, in the world and on its host."""

    rank: int
    world_size: int
    local_rank: int
    local_world_size: int


@dataclass(frozen=True)
class BufferPart:
    """Says where in its buffer one parameter's gradient stands, in elements."""

    name: str
    offset: int
    count: int


@dataclass(frozen=True)
class BufferReport:
    """Says what one gradient buffer of a rank holds, and over which ranks it is summed."""

    parameter_dtype: str
    gradient_dtype: str
    axis: str
    """``dp_cp``, or ``edp`` for experts."""
    num_bytes: int
    parts: tuple[BufferPart, ...]


@dataclass(frozen=True)
class RankReport:
    """Says what one rank is and holds, as the rank itself found it after set-up."""

    rank: int
    pid: int
    device: str
    coordinates: dict[str, int]
    groups: dict[str, tuple[int, ...]]
    """Members of its groups as torch.distributed holds them, by ``pp``, ``dp``, ``cp``, ``tp`` …"""
    modules: tuple[str, ...]
    """What it holds of the model, by name: ``embed``, ``layers.0`` …, ``norm``, ``output``."""
    parameter_bytes: int
    """Bytes of parameters on this rank, its shards only."""
    reads_data: bool
    """Whether it reads the text itself; tensor parallel peers of one that does get it sent."""
    buffers: tuple[BufferReport, ...] = ()
    """The rank's gradient buffers, where the run has any."""


@dataclass(frozen=True)
class Started:
    """Tells that all ranks are set up and the first step begins."""

    run: str
    ranks: tuple[RankReport, ...]


@dataclass(frozen=True)
class Learned:
    """Says what the optimizer did in a step."""

    norm: float
    """The norm of all gradients of the model, before clipping."""
    lr: float
    loss_scale: float | None
    """What float16's loss was scaled by; None for other types."""
    is_skipped: bool
    """Whether gradients overflowed, so that nothing was learned."""


@dataclass(frozen=True)
class StepDone:
    """Tells that a step is over; a run with emulated computation has no loss and learns nothing."""

    step: int
    loss: float | None
    duration_ms: float
    learned: Learned | None = None
    tokens_per_s: float = 0.0


@dataclass(frozen=True)
class Validated:
    """Tells the mean loss over the text that is held out, after ``step`` steps."""

    step: int
    loss: float
    num_bytes: int
    """Bytes, or tokens, predicted: all that are held out, each once."""
    duration_ms: float


@dataclass(frozen=True)
class Saved:
    """Tells that the checkpoint of ``step`` is committed, or why it could not be written."""

    step: int
    path: str
    stall_ms: float
    """How long training stood still for it."""
    reason: str | None = None
    """What went wrong; None where nothing did."""


@dataclass(frozen=True)
class LogLost:
    """Tells that a log takes nothing more, such as on a full disk; training goes on without it."""

    path: str
    reason: str


@dataclass(frozen=True)
class Resumed:
    """Tells that the run goes on from the checkpoint at ``path``, after ``step`` steps."""

    step: int
    path: str


@dataclass(frozen=True)
class MemoryPeaks:
    """Tells the most bytes that tensors took on each rank's GPU at once, after ``step`` steps.

    As torch's allocator counts them (``torch.cuda.max_memory_allocated``), from the first step
    on: what warms up before it is not counted.
    """

    step: int
    peak_bytes: tuple[int, ...]
    """By rank."""


@dataclass(frozen=True)
class Failed:
    """Tells which error ended a rank, and when on the host's common clock."""

    rank: int
    message: str | SerriedError
    """In words, or as a sentence that can be said in another language."""
    exit_code: int
    traceback: str
    at_ns: int = field(default_factory=time.monotonic_ns)

    def error(self) -> SerriedError:
        """Returns what the user is told, with the rank's traceback as a note."""
        kinds = {2: InputError, 3: EnvironmentProblem}
        kind = kinds.get(self.exit_code, SerriedError)
        error = kind(
            "rank {rank} failed: {message}; the other ranks were ended",
            rank=self.rank,
            message=self.message,
        )
        error.add_note(self.traceback)
        return error


Event = Started | Resumed | StepDone | Validated | Saved | LogLost | MemoryPeaks
Progress = Callable[[Event], None]


@dataclass(frozen=True)
class TrainResult:
    """Holds what a finished run gave."""

    run: str
    ranks: tuple[RankReport, ...]
    steps: tuple[StepDone, ...]
    memory: MemoryPeaks | None = None
    """What GPUs held at most; None where ranks computed on CPUs."""
    saved: tuple[Saved, ...] = ()
    """Checkpoints that were written, or could not be."""
    lost: tuple[LogLost, ...] = ()
    """Logs that are not whole."""

    @property
    def is_saved(self) -> bool:
        """Whether the last checkpoint that was to be written was."""
        return bool(self.saved) and self.saved[-1].reason is None

    @property
    def losses(self) -> list[float]:
        """The loss of each step; empty where computation is emulated."""
        return [step.loss for step in self.steps if step.loss is not None]
