"""Starts a training run: all of its ranks on this host, or one rank of a job on many."""

from __future__ import annotations

import importlib.util
import os
from contextlib import closing
from dataclasses import replace

from serried.errors import EnvironmentProblem, InputError
from serried.runtime.checkpoint.checkpoint import (
    describe,
    description_of,
    require_fits,
    require_safetensors,
    source_of,
)
from serried.runtime.job.config_model import ConfigModel
from serried.runtime.job.report import Place, Progress, TrainResult
from serried.runtime.job.settings import TrainSettings
from serried.runtime.run import worker
from serried.runtime.run.local_ranks import run_locally
from serried.runtime.run.log import RunLog
from serried.runtime.run.tensorboard import require_tensorboard
from serried.runtime.run.worker import TrainJob
from serried.runtime.training.tokens import require_text
from serried.trace.merge.files import RUN_MARK

LIBRARY = ("transformers.modeling_utils", "transformers.distributed.tensor_parallel")
"""What ranks need of transformers, which takes seconds to load."""


def train(settings: TrainSettings, on_progress: Progress = lambda event: None) -> TrainResult:
    """Trains on this host with ``settings.world_size`` ranks and returns what came of it.

    ``on_progress`` is called with each event as it happens. A script that calls this needs
    an ``if __name__ == "__main__"`` guard, as any that starts processes does. Raises
    SerriedError, with the rank's message first, when a rank fails; InputError and
    EnvironmentProblem before any rank starts.
    """
    require_torch()
    check_files(settings)
    with RunLog(settings, on_progress) as log:
        preload = LIBRARY if isinstance(settings.model, ConfigModel) else ()
        with closing(run_locally(TrainJob(settings.resolved()), preload=preload)) as events:
            for event in events:
                log.tell(event)
        return _exported(settings, log.result())


def join(
    settings: TrainSettings, place: Place, on_progress: Progress = lambda event: None
) -> TrainResult | None:
    """Trains this process's rank of a torchrun job; returns the result on rank 0 only.

    The caller ends the process with ``worker.leave``.
    """
    require_torch()
    settings = as_restarted(settings)
    check_files(settings)
    if place.rank:
        worker.join(TrainJob(settings), place, lambda event: None)
        return None
    with RunLog(settings, on_progress) as log:
        worker.join(TrainJob(settings), place, log.tell)
        return _exported(settings, log.result())


def as_restarted(settings: TrainSettings) -> TrainSettings:
    """Returns the settings of a rank that torchrun may have started again.

    It then goes on from the last checkpoint, and records in a folder of its own.
    """
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    if attempt == "0":
        return settings
    checkpoints, trace = settings.checkpoints, settings.trace_dir
    return replace(
        settings,
        checkpoints=replace(checkpoints, resume=checkpoints.folder is not None),
        trace_dir=trace and trace / f"restart-{attempt}",
    )


def _exported(settings: TrainSettings, result: TrainResult) -> TrainResult:
    """Writes the model of the last checkpoint where one is asked for, unless that failed."""
    if settings.checkpoints.export and settings.checkpoints.folder and result.is_saved:
        from serried.runtime.checkpoint.export import export

        export(settings.checkpoints.folder, settings.checkpoints.export)
    return result


def require_torch() -> None:
    """Raises EnvironmentProblem where torch is not installed."""
    try:
        found = importlib.util.find_spec("torch")
    except ImportError:
        found = None
    if found is None:
        raise EnvironmentProblem(
            "training needs torch, which is not installed; install it with: "
            "pip install 'serried[torch]'"
        )


def check_keeping(settings: TrainSettings) -> None:
    """Raises InputError where checkpoints cannot be kept, or the one to begin from will not do."""
    checkpoints = settings.checkpoints
    source = source_of(checkpoints)
    if source:
        require_fits(source, describe(source), description_of(settings), settings.steps)
    if checkpoints.export:
        require_safetensors()
    # Folders are made before any rank starts: at the first checkpoint it would be too late.
    for folder in (checkpoints.folder, checkpoints.export and checkpoints.export.absolute().parent):
        if folder is None:
            continue
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                "folder {path} cannot be made: {reason}", path=folder, reason=error.strerror
            ) from error


def check_files(settings: TrainSettings) -> None:
    """Raises InputError for data or a checkpoint that will not do, or a folder that is taken.

    Raises EnvironmentProblem for a package that is not installed.
    """
    require_text(settings)
    if isinstance(settings.model, ConfigModel):
        from serried.runtime.pretrained.check import require_trainable

        require_trainable(settings.model, tp=settings.tp)
    check_keeping(settings)
    if settings.tensorboard:
        require_tensorboard()
    if settings.trace_dir is None:
        return
    if next(settings.trace_dir.glob("rank-*.spans"), None):
        raise InputError(
            "{path} already holds a recording; choose another folder or remove it",
            path=settings.trace_dir,
        )
    try:
        settings.trace_dir.mkdir(parents=True, exist_ok=True)
        (settings.trace_dir / RUN_MARK).touch()
    except (FileExistsError, NotADirectoryError) as error:
        raise InputError(
            "trace folder {path} cannot be made: {reason}",
            path=settings.trace_dir,
            reason=error.strerror,
        ) from error
    except OSError:
        pass  # a disk that will not do: the ranks say so, and train without a recording
