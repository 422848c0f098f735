"""The watch that a recorded job starts beside itself, to export its figures while it runs.

    rank 0   serried.record(loader, "runs/a", metrics=9464)
               └─ once ──> serried diagnose --watch runs/a --metrics 9464 --pid (rank 0)
    ranks    spans ──> files in runs/a ──> the watch ──> Prometheus, OpenTelemetry, trackers

It is a process of its own, with a lower priority: the training's threads do nothing for it, and
it tells the job's last figures after the job was killed. What it says stands in ``watch.said`` in
the folder; where it cannot begin the log of the training says why.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from serried.runtime.recorder.header import attempt_here, rank_here

METRICS = "SERRIED_METRICS"
EXPORT = "SERRIED_EXPORT"
SAID_FILE = "watch.said"
_ELASTIC = "TORCHELASTIC_RUN_ID"
_FOUND = 1
"""What a watch exits with that had something to say."""
_log = logging.getLogger("serried")


def exports_asked(
    metrics: str | int | None = None, export: str | Sequence[str] | None = None
) -> tuple[str, ...]:
    """Returns the options of a watch that exports as asked here, else as the environment asks.

    >>> exports_asked(9464, "otlp=http://localhost:4318")
    ('--metrics', '9464', '--export', 'otlp=http://localhost:4318')
    """
    address = os.environ.get(METRICS) if metrics is None else str(metrics)
    given = os.environ.get(EXPORT, "") if export is None else export
    kinds = given.split() if isinstance(given, str) else given
    options = ("--metrics", address) if address else ()
    return (*options, *(word for kind in kinds for word in ("--export", kind)))


def watch_beside(folder: Path, options: Sequence[str]) -> None:
    """Starts the watch of a job that records into ``folder``; the first rank does, and once.

    Under torchrun it goes with the launcher, so that it sees the attempts that come after; those
    start none. A watch that cannot be started is told, and the training goes on.
    """
    if not options or rank_here() or attempt_here():
        return
    pid = os.getppid() if _ELASTIC in os.environ else os.getpid()
    command = [sys.executable, "-P", "-m", "serried", "diagnose", "--watch", str(folder.resolve())]
    said = folder / SAID_FILE
    try:
        with said.open("wb") as file:
            watch = subprocess.Popen(
                [*command, "--pid", str(pid), *options],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl+C is meant for the training
            )
    except OSError as problem:
        _log.warning("the job's figures are not exported: %s; the training goes on", problem)
        return
    threading.Thread(target=_await, args=(watch, said), name="watch-beside", daemon=True).start()


def _await(watch: subprocess.Popen[bytes], said: Path) -> None:
    """Waits for the watch's end, and tells why it ended where it should not have."""
    if watch.wait() in (0, _FOUND):
        return
    try:
        lines = said.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        lines = []
    told = " ".join(line.strip() for line in lines if line.strip())
    _log.warning(
        "the job's figures are not exported: %s; the training goes on",
        told[-500:] or f"the watch ended with {watch.returncode}",
    )
