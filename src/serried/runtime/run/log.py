"""Keeps what a run tells: the log file's lines, TensorBoard's, the caller's, and the result."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from serried.errors import InputError
from serried.runtime.job.report import (
    Event,
    Learned,
    LogLost,
    MemoryPeaks,
    Progress,
    Resumed,
    Saved,
    Started,
    StepDone,
    TrainResult,
    Validated,
)
from serried.runtime.job.settings import TrainSettings
from serried.runtime.run.tensorboard import EventFile
from serried.whole_file import whole_file


class RunLog:
    """Takes each event of a run; writes one JSON line a step where a log file is asked for.

        {"step": 3, "loss": 4.1706, "compute": "real", "duration_ms": 312.5, "tokens_per_s":
         6553.6, "grad_norm": 0.8136, "lr": 0.003, "loss_scale": null, "skipped": false}

    What else happens is a line with an ``event``: ``validated``, ``saved``, ``resumed`` or
    ``memory``, and its ``step`` counts the steps done. A run that resumes goes on in the same
    file, from which the lines go of steps that are run again.

    Raises InputError on entering when the log file cannot be written. One that cannot be written
    any more is given up, once told of, and the run goes on.
    """

    def __init__(self, settings: TrainSettings, on_progress: Progress) -> None:
        self._settings = settings
        self._on_progress = on_progress
        self._file: IO[str] | None = None
        self._scalars: EventFile | None = None
        self._started: Started | None = None
        self._memory: MemoryPeaks | None = None
        self._steps: list[StepDone] = []
        self._saved: list[Saved] = []
        self._lost: list[LogLost] = []

    def __enter__(self) -> RunLog:
        settings = self._settings
        if settings.tensorboard:
            self._scalars = EventFile(settings.tensorboard)
        if settings.log_file:
            self._file = _opened(settings.log_file, "a" if settings.checkpoints.resume else "w")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file:
            with suppress(OSError):  # every line was flushed, or the file given up
                self._file.close()
        if self._scalars:
            self._scalars.close()

    def tell(self, event: Event) -> None:
        """Keeps ``event`` and passes it on."""
        if isinstance(event, Started):
            self._started = event
        elif isinstance(event, StepDone):
            # With --resume the file is kept, so a run that begins anew for want of a checkpoint
            # drops its lines, and one that goes on those of the steps that come again.
            if event.step == 0:
                self._forget(0)
            self._steps.append(event)
            self._write(self._line(event))
        elif isinstance(event, Resumed):
            self._forget(event.step)
            self._write({"step": event.step, "event": "resumed", "from": event.path})
        elif not isinstance(event, LogLost):
            self._memory = event if isinstance(event, MemoryPeaks) else self._memory
            self._saved += [event] if isinstance(event, Saved) else []
            self._write(_other_line(event, "tokens" if self._settings.has_tokens else "bytes"))
        self._on_progress(event)
        if self._scalars and isinstance(event, StepDone | Validated | Resumed):
            with self._keeping_on(self._settings.tensorboard):
                _add_scalars(self._scalars, event)

    def result(self) -> TrainResult:
        """Returns the result of a run that came to its end."""
        assert self._started is not None
        return TrainResult(
            self._started.run,
            self._started.ranks,
            tuple(self._steps),
            self._memory,
            tuple(self._saved),
            tuple(self._lost),
        )

    def _line(self, step: StepDone) -> dict[str, Any]:
        return {
            "step": step.step,
            "loss": _finite(step.loss),
            "compute": self._settings.compute,
            "duration_ms": round(step.duration_ms, 3),
            "tokens_per_s": round(step.tokens_per_s, 1),
            **_learned(step.learned),
        }

    def _write(self, line: dict[str, Any]) -> None:
        if self._file:
            with self._keeping_on(self._settings.log_file):
                print(json.dumps(line), file=self._file, flush=True)

    @contextmanager
    def _keeping_on(self, path: Path | None) -> Iterator[None]:
        """Lets the run go on without its log at ``path`` where the system refuses to write it."""
        try:
            yield
        except OSError as error:
            self._give_up(path, error.strerror or str(error))
        except InputError as error:
            self._give_up(path, str(error.values["reason"]))

    def _give_up(self, path: Path | None, reason: str) -> None:
        log: IO[str] | EventFile | None
        if path == self._settings.log_file:
            log, self._file = self._file, None
        else:
            log, self._scalars = self._scalars, None
        with suppress(OSError):  # closing would write what is left
            if log:
                log.close()
        self._lost.append(LogLost(str(path), reason))
        self._on_progress(self._lost[-1])

    def _forget(self, step: int) -> None:
        """Drops the lines of an earlier run's steps from ``step`` on, which come again."""
        path = self._settings.log_file
        if self._file is None or path is None or not self._settings.checkpoints.resume:
            return
        with self._keeping_on(path):
            self._file.close()
            lines = path.read_text(encoding="utf-8").splitlines()
            kept = "".join(f"{line}\n" for line in lines if _is_before(line, step))
            with whole_file(path) as part:
                part.write(kept.encode())
            self._file = path.open("a", encoding="utf-8")


def _opened(path: Path, mode: str) -> IO[str]:
    try:
        return path.open(mode, encoding="utf-8")
    except OSError as error:
        raise InputError(
            "log file {path} cannot be written: {reason}", path=path, reason=error.strerror
        ) from error


def _is_before(line: str, step: int) -> bool:
    """Tells whether a line is of what was done before ``step``; half a line is not."""
    try:
        read = json.loads(line)
        return bool(read["step"] < step + ("event" in read))
    except (ValueError, TypeError, KeyError):
        return False


def _other_line(event: Validated | Saved | MemoryPeaks, unit: str) -> dict[str, Any]:
    if isinstance(event, MemoryPeaks):
        return {"step": event.step, "event": "memory", "peak_bytes": list(event.peak_bytes)}
    if isinstance(event, Validated):
        return {
            "step": event.step,
            "event": "validated",
            "loss": _finite(event.loss),
            unit: event.num_bytes,
            "duration_ms": round(event.duration_ms, 3),
        }
    return {
        "step": event.step,
        "event": "saved" if event.reason is None else "not saved",
        "path": event.path,
        "stall_ms": round(event.stall_ms, 3),
        **({} if event.reason is None else {"reason": event.reason}),
    }


def _add_scalars(scalars: EventFile, event: StepDone | Validated | Resumed) -> None:
    if isinstance(event, Resumed):
        scalars.restart(event.step)
    elif isinstance(event, Validated):
        # After n steps the last one has the number n - 1, as its own loss is shown at.
        scalars.add(event.step - 1, {"loss/validation": event.loss})
    else:
        learned = event.learned
        of_optimizer = (
            {"gradient norm": learned.norm, "lr": learned.lr, "loss scale": learned.loss_scale}
            if learned
            else {}
        )
        speed = {"speed/step ms": event.duration_ms, "speed/tokens per s": event.tokens_per_s}
        scalars.add(event.step, {"loss/training": event.loss, **of_optimizer, **speed})


def _learned(learned: Learned | None) -> dict[str, float | bool | None]:
    if learned is None:
        return {}
    return {
        "grad_norm": _finite(learned.norm),
        "lr": learned.lr,
        "loss_scale": learned.loss_scale,
        "skipped": learned.is_skipped,
    }


def _finite(value: float | None) -> float | None:
    """Returns a number, or None for what JSON cannot say."""
    return value if value is not None and isfinite(value) else None
