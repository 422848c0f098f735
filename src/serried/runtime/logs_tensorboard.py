"""TensorBoard's event files: one scalar a value, written without torch."""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Mapping
from pathlib import Path

from serried.errors import EnvironmentProblem, InputError


class EventFile:
    """Appends scalars to a new event file in a folder.

    Raises InputError when the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._writer = EventFileWriter(str(folder))
        except OSError as error:
            raise InputError(
                "TensorBoard folder {path} cannot be written: {reason}",
                path=folder,
                reason=error.strerror,
            ) from error

    def add(self, step: int, scalars: Mapping[str, float | None]) -> None:
        """Writes those of ``scalars`` that are finite numbers, under ``step``."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [
            Summary.Value(tag=tag, simple_value=value)
            for tag, value in scalars.items()
            if value is not None and math.isfinite(value)
        ]
        event = Event(wall_time=time.time(), step=step, summary=Summary(value=values))
        self._writer.add_event(event)

    def restart(self, step: int) -> None:
        """Tells readers to forget what earlier files say of ``step`` and later ones."""
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog

        log = SessionLog(status=SessionLog.START)
        self._writer.add_event(Event(wall_time=time.time(), step=step, session_log=log))

    def close(self) -> None:
        """Writes out what is left."""
        self._writer.close()


def require_tensorboard() -> None:
    """Raises EnvironmentProblem where TensorBoard's writer is not installed."""
    if importlib.util.find_spec("tensorboard") is None:
        raise EnvironmentProblem(
            "TensorBoard's files need the tensorboard package, which is not installed; install it "
            "with: pip install 'serried[tensorboard]'"
        )
