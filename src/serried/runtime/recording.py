"""Recording: passes a rank's spans to its file, in the steps that are recorded."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from serried.runtime.settings import TrainSettings
from serried.span import ActionKind
from serried.trace.record import Recorder, RecordHeader


class Recording:
    """Passes one rank's spans to its Recorder while a recorded step runs, else drops them."""

    def __init__(self, settings: TrainSettings, recorder: Recorder | None, device: str) -> None:
        self._settings = settings
        self._recorder = recorder
        self._step = 0
        self._work = (-1, -1)
        self._into: Recorder | None = None
        # On a GPU the host runs ahead; a span's end is the work's end only after waiting.
        self._settle: Callable[[], None] | None = (
            torch.cuda.synchronize if device == "cuda" else None
        )

    @classmethod
    def of(cls, settings: TrainSettings, *, run: str, rank: int, backend: str) -> Recording:
        """Creates the rank's file where a trace is asked for."""
        recorder = None
        if settings.trace_dir:
            header = RecordHeader(run=run, rank=rank, job=settings.job(backend))
            recorder = Recorder(settings.trace_dir, header)
        return cls(settings, recorder, "cuda" if backend == "nccl" else "cpu")

    def begin_step(self, step: int) -> None:
        """Tells that ``step`` begins; its spans are kept when it lies in the window."""
        self._step = step
        self._into = self._recorder if self._settings.records(step) else None

    def pause(self) -> None:
        """Drops what comes until the next step begins."""
        self._into = None

    def now(self) -> int:
        """Returns CLOCK_MONOTONIC nanoseconds; on a GPU, once its work is done."""
        if self._settle and self._into:
            self._settle()
        return time.monotonic_ns()

    def add(
        self,
        kind: ActionKind,
        start_ns: int,
        end_ns: int,
        stage: int = -1,
        microbatch: int = -1,
        peer: int = -1,
    ) -> None:
        """Keeps a span of the current step."""
        if self._into:
            self._into.add(
                kind,
                start_ns,
                end_ns,
                step=self._step,
                stage=stage,
                microbatch=microbatch,
                peer=peer,
            )

    def begin_work(self, stage: int, microbatch: int) -> None:
        """Tells which computation begins; exchanges that come belong to it."""
        self._work = (stage, microbatch)

    def add_exchange(self, kind: ActionKind, start_ns: int, end_ns: int, peer: int) -> None:
        """Keeps a span that lies within the computation that runs."""
        stage, microbatch = self._work
        self.add(kind, start_ns, end_ns, stage, microbatch, peer)

    def close(self) -> None:
        """Closes the rank's file."""
        if self._recorder:
            self._recorder.close()
