"""``serried train``: a real run on local ranks, or this process's rank of a torchrun job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from serried.errors import SerriedError
from serried.views.cli import emit_job
from serried.views.cli.language import current_language
from serried.views.cli.train.options import SectionedCommand, train_settings, with_options
from serried.views.sentences import say

if TYPE_CHECKING:
    from serried.runtime.job.report import Place


@click.command(cls=SectionedCommand)
@with_options
def train(explain: bool, **options: Any) -> None:
    """Trains a small GPT, or your own model, cut along any axes of a layout.

    \b
    serried train --nproc 8 --tp 2 --pp 2
    serried train --nproc 8 --pp 4 --compute emulated --trace-dir runs/pp4
    serried train --pp 4 --schedule zbv --layers 8
    serried train --model llama/config.json --data notes.jsonl --tokenizer llama --tp 2
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
    # What shows a run draws bars and knows the plan of memory, which help would wait for.
    from serried.views.cli.train.progress import TrainProgress
    from serried.views.cli.train.result import show_result

    if place is None:
        with TrainProgress(settings) as progress:
            result = launch.train(settings, progress.tell)
        show_result(settings, result, explain=explain)
        return
    try:
        with TrainProgress(settings) as progress:
            joined = launch.join(settings, place, progress.tell)
        if joined:
            show_result(settings, joined, explain=explain)
    except Exception as error:
        worker.leave(_tell_failure(place, error))
    worker.leave(0)


def _tell_failure(place: Place, error: Exception) -> int:
    """Says which rank of a torchrun job failed and how; returns the exit code."""
    from serried.runtime.run import worker

    failed = worker.failure(place.rank, error)
    if not isinstance(error, SerriedError):
        click.echo(failed.traceback, err=True)
    message = say(error, current_language()) if isinstance(error, SerriedError) else failed.message
    click.echo(f"serried: rank {failed.rank}: {message}", err=True)
    return failed.exit_code
