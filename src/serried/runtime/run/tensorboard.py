"""TensorBoard's event files: one scalar a value, written without torch."""

from __future__ import annotations

import importlib.util
import itertools
import math
import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from serried.errors import EnvironmentProblem, InputError

_numbers = itertools.count()
"""Tells event files apart that one process begins in one second."""


class EventFile:
    """Appends scalars to a new event file in a folder, each there as soon as it is added.

    TensorBoard's own writer would write from a thread, whose error on a full disk is a traceback.
    Raises InputError when the folder cannot be written, and later OSError.
    """

    def __init__(self, folder: Path) -> None:
        from tensorboard.summary.writer.record_writer import RecordWriter

        at, who = f"{int(time.time()):010}", f"{socket.gethostname()}.{os.getpid()}"
        name = f"events.out.tfevents.{at}.{who}.{next(_numbers)}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._writer = RecordWriter((folder / name).open("wb"))
            self._add(file_version="brain.Event:2")
        except OSError as error:
            raise InputError(
                "TensorBoard folder {path} cannot be written: {reason}",
                path=folder,
                reason=error.strerror,
            ) from error

    def add(self, step: int, scalars: Mapping[str, float | None]) -> None:
        """Writes those of ``scalars`` that are finite numbers, under ``step``."""
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [
            Summary.Value(tag=tag, simple_value=value)
            for tag, value in scalars.items()
            if value is not None and math.isfinite(value)
        ]
        self._add(step=step, summary=Summary(value=values))

    def restart(self, step: int) -> None:
        """Tells readers to forget what earlier files say of ``step`` and later ones."""
        from tensorboard.compat.proto.event_pb2 import SessionLog

        self._add(step=step, session_log=SessionLog(status=SessionLog.START))

    def close(self) -> None:
        """Closes the file, to which all is written."""
        with suppress(OSError):  # what a full disk refused, which was told of then
            self._writer.close()

    def _add(self, **content: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self._writer.write(Event(wall_time=time.time(), **content).SerializeToString())
        self._writer.flush()


def require_tensorboard() -> None:
    """Raises EnvironmentProblem where TensorBoard's writer is not installed."""
    if importlib.util.find_spec("tensorboard") is None:
        raise EnvironmentProblem(
            "TensorBoard's files need the tensorboard package, which is not installed; install it "
            "with: pip install 'serried[tensorboard]'"
        )
