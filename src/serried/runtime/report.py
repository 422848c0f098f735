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
class RankReport:
    """Says what one rank is and holds, as the rank itself found it after set-up."""

    rank: int
    pid: int
    device: str
    coordinates: dict[str, int]
    groups: dict[str, tuple[int, ...]]
    """Members of its groups as torch.distributed holds them, by ``pp``, ``dp``, ``tp``."""
    modules: tuple[str, ...]
    """What it holds of the model, by name: ``embed``, ``layers.0`` …, ``norm``, ``output``."""
    parameter_bytes: int
    """Bytes of parameters on this rank, its tensor parallel shards only."""


@dataclass(frozen=True)
class Started:
    """Tells that all ranks are set up and the first step begins."""

    run: str
    ranks: tuple[RankReport, ...]


@dataclass(frozen=True)
class StepDone:
    """Tells that a step is over. ``loss`` is None where computation is emulated."""

    step: int
    loss: float | None
    duration_ms: float


@dataclass(frozen=True)
class Failed:
    """Tells which error ended a rank, and when on the host's common clock."""

    rank: int
    message: str
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


Event = Started | StepDone
Progress = Callable[[Event], None]


@dataclass(frozen=True)
class TrainResult:
    """Holds what a finished run gave."""

    run: str
    ranks: tuple[RankReport, ...]
    steps: tuple[StepDone, ...]

    @property
    def losses(self) -> list[float]:
        """The loss of each step; empty where computation is emulated."""
        return [step.loss for step in self.steps if step.loss is not None]
