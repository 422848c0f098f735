"""Keeps what a run tells: the log file's lines, the caller's progress, and the result."""

from __future__ import annotations

import json
from math import isfinite
from types import TracebackType
from typing import IO

from serried.errors import InputError
from serried.runtime.report import Event, Progress, Started, StepDone, TrainResult
from serried.runtime.settings import TrainSettings


class RunLog:
    """Takes each event of a run; writes one JSON line a step where a log file is asked for.

        {"step": 3, "loss": 4.1706, "compute": "real", "duration_ms": 312.5}

    Raises InputError on entering when the log file cannot be written.
    """

    def __init__(self, settings: TrainSettings, on_progress: Progress) -> None:
        self._settings = settings
        self._on_progress = on_progress
        self._file: IO[str] | None = None
        self._started: Started | None = None
        self._steps: list[StepDone] = []

    def __enter__(self) -> RunLog:
        path = self._settings.log_file
        try:
            self._file = path.open("w", encoding="utf-8") if path else None
        except OSError as error:
            raise InputError(
                "log file {path} cannot be written: {reason}", path=path, reason=error.strerror
            ) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file:
            self._file.close()

    def tell(self, event: Event) -> None:
        """Keeps ``event`` and passes it on."""
        if isinstance(event, Started):
            self._started = event
        else:
            self._steps.append(event)
            self._write(event)
        self._on_progress(event)

    def result(self) -> TrainResult:
        """Returns the result of a run that came to its end."""
        assert self._started is not None
        return TrainResult(self._started.run, self._started.ranks, tuple(self._steps))

    def _write(self, step: StepDone) -> None:
        if not self._file:
            return
        line = {
            "step": step.step,
            "loss": step.loss if step.loss is None or isfinite(step.loss) else None,
            "compute": self._settings.compute,
            "duration_ms": round(step.duration_ms, 3),
        }
        print(json.dumps(line), file=self._file, flush=True)
