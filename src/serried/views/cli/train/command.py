"""``serried train``: a real run on local ranks, or this process's rank of a torchrun job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import click

from serried.errors import SerriedError, listed
from serried.views.cli import emit_job
from serried.views.cli.language import current_language
from serried.views.cli.output import show
from serried.views.cli.train.options import SectionedCommand, train_settings, with_options
from serried.views.cli.train.progress import TrainProgress, ranks_of
from serried.views.cli.train.ranks import (
    buffer_lines,
    measured_memory,
    planned_memory,
    rank_table,
)
from serried.views.sentences import tell

if TYPE_CHECKING:
    from serried.runtime.job.report import Place, Saved, TrainResult
    from serried.runtime.job.settings import TrainSettings


@click.command(cls=SectionedCommand)
@with_options
def train(explain: bool, **options: Any) -> None:
    """Trains a small GPT on real text, cut along any axes of a layout.

    \b
    serried train --nproc 8 --tp 2 --pp 2
    serried train --nproc 8 --pp 4 --compute emulated --trace-dir runs/pp4
    serried train --pp 4 --schedule zbv --layers 8
    torchrun --nproc-per-node 8 --no-python serried train --tp 2 --pp 2
    """
    from serried.runtime.run import launch, worker

    # First of all: who only wants a launch script neither starts ranks nor has to be in a job.
    cluster = emit_job.cluster_of(options)
    if cluster:
        nodes, per_node = cluster
        train_settings(None, {**options, "nproc": nodes * per_node})
        emit_job.emit(world_size=nodes * per_node, ranks_per_node=per_node)
        return
    # No place: this process starts all ranks itself. With one, a launcher started it as one rank of
    # many, and only the rank that gets the result may print it.
    place = worker.place_of_launcher()
    settings = train_settings(place, options)
    if place is None:
        with TrainProgress(settings) as progress:
            result = launch.train(settings, progress.tell)
        _show(settings, result, explain)
        return
    try:
        with TrainProgress(settings) as progress:
            joined = launch.join(settings, place, progress.tell)
        if joined:
            _show(settings, joined, explain)
    except Exception as error:
        worker.leave(_tell_failure(place, error))
    worker.leave(0)


def _tell_failure(place: Place, error: Exception) -> int:
    """Says which rank of a torchrun job failed and how; returns the exit code."""
    from serried.runtime.run import worker

    failed = worker.failure(place.rank, error)
    if not isinstance(error, SerriedError):
        click.echo(failed.traceback, err=True)
    click.echo(f"serried: rank {failed.rank}: {failed.message}", err=True)
    return failed.exit_code


def _show(settings: TrainSettings, result: TrainResult, explain: bool) -> None:
    if explain:
        show(rank_table(result.ranks), "")
        if result.ranks[0].buffers:
            show("\n".join(buffer_lines(result.ranks)), "")
        show(planned_memory(settings, result.ranks), "")
    step_ms = median(step.duration_ms for step in result.steps)
    # Emulated stages learn nothing, so their fixed times stand where the loss would.
    if settings.emulated:
        times = settings.emulated
        what = (
            f"emulated compute (forward {times.forward_ms:g} ms, backward {times.backward_ms:g} ms)"
        )
    else:
        what = f"loss {result.losses[0]:.4f} -> {result.losses[-1]:.4f}"
    steps = "1 step" if len(result.steps) == 1 else f"{len(result.steps)} steps"
    show(f"{steps} on {ranks_of(settings)}: {what}, median step {step_ms:.0f} ms")
    if result.memory:
        show(measured_memory(settings, result.ranks, result.memory))
    for line in _kept(settings, result):
        show(line)
    if settings.trace_dir and any(settings.trace_dir.glob("rank-*.spans")):
        show(f"trace: {settings.trace_dir} (serried trace merge {settings.trace_dir})")


def _kept(settings: TrainSettings, result: TrainResult) -> Iterator[str]:
    """Yields a line for each file that the run has left, and for each that it could not write."""
    lang, checkpoints = current_language(), settings.checkpoints
    lost = {each.path: each.reason for each in result.lost}
    for path in (settings.log_file, settings.tensorboard):
        # A log that broke off is told under either name; of whole ones only the log file is named.
        if path and str(path) in lost:
            reason = lost[str(path)]
            yield tell("not all of the log is in {path}: {reason}", lang, path=path, reason=reason)
        elif path and path == settings.log_file:
            yield f"log: {path}"
    if checkpoints.folder:
        yield from _checkpoints(checkpoints.folder, result.saved, lang)
    if checkpoints.export and result.is_saved:
        yield f"model: {checkpoints.export}"
    elif checkpoints.export:
        yield tell(
            "no model was written to {path}, as the last checkpoint was not",
            lang,
            path=checkpoints.export,
        )


def _checkpoints(folder: Path, saved: tuple[Saved, ...], lang: str) -> Iterator[str]:
    missing = [each for each in saved if each.reason is not None]
    if len(missing) < len(saved):
        yield f"checkpoints: {folder}"
    if missing:
        yield tell(
            "could not be saved: {names}; {reason}",
            lang,
            names=listed(Path(each.path).name for each in missing),
            reason=missing[-1].reason,
        )
