"""``serried train``: a real run on local ranks, or this process's rank of a torchrun job."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from serried.errors import InputError, SerriedError
from serried.views.cli.options import COUNT, settings_of
from serried.views.cli.output import show

if TYPE_CHECKING:
    from serried.runtime.report import Event, Place, RankReport, TrainResult
    from serried.runtime.settings import Emulated, TrainSettings

PROGRESS_LINES = 20
"""About how many steps are told of, however many there are."""


@click.command()
@click.option("--nproc", type=COUNT, help="Local ranks; tp x pp when left out.")
@click.option("--tp", type=COUNT, default=1, help="Tensor parallel size.")
@click.option("--pp", type=COUNT, default=1, help="Pipeline parallel size.")
@click.option("--cp", type=COUNT, default=1, help="Refused above 1: runs have no context groups.")
@click.option("--framework", default="megatron", show_default=True, help="Whose rank placement.")
@click.option("--order", help="Axis order, as the framework writes it.")
@click.option("--set", "options", multiple=True, metavar="KEY=VALUE", help="Framework's setting.")
@click.option("--schedule", default="1f1b", metavar="NAME|FILE.csv", help="What pipelines run.")
@click.option("--chunks", type=COUNT, help="Stages on each rank; 2 where there may be several.")
@click.option("--group", type=COUNT, help="Microbatches a group; p where a schedule has groups.")
@click.option("--steps", type=COUNT, default=20, show_default=True)
@click.option("--layers", type=COUNT, default=4, show_default=True)
@click.option("--hidden", type=COUNT, default=64, show_default=True)
@click.option("--heads", type=COUNT, default=8, show_default=True)
@click.option("--seq-len", type=COUNT, default=64, show_default=True, help="Bytes in a sequence.")
@click.option("--global-batch-size", type=COUNT, default=32, show_default=True)
@click.option("--microbatches", type=COUNT, default=4, show_default=True)
@click.option("--lr", type=float, default=3e-3, show_default=True)
@click.option("--seed", type=COUNT, default=0, show_default=True)
@click.option("--data", type=click.Path(path_type=Path), help="Text; Python's own sources if none.")
@click.option("--trace-dir", type=click.Path(path_type=Path), help="Record spans in this folder.")
@click.option("--trace-steps", metavar="FIRST:END", help="Record only these; END is not in.")
@click.option("--log-file", type=click.Path(path_type=Path), help="One JSON line a step.")
@click.option("--compute", type=click.Choice(["real", "emulated"]), default="real")
@click.option("--forward-ms", type=float, help="Emulated forward of a microbatch, 12 if not given.")
@click.option("--backward-ms", type=float, help="Emulated backward, 24 if not given.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto")
@click.option("--dtype", type=click.Choice(["float32", "float64"]), default="float32")
@click.option("--timeout", type=float, default=300.0, help="Seconds that any message may take.")
@click.option("--explain", is_flag=True, help="Print what each rank holds and its groups.")
def train(explain: bool, **options: Any) -> None:
    """Trains a small GPT on real text with tensor, pipeline and data parallel ranks.

    Data parallelism takes the ranks that tp and pp leave.

    \b
    serried train --nproc 8 --tp 2 --pp 2
    serried train --nproc 8 --pp 4 --compute emulated --trace-dir runs/pp4
    serried train --pp 4 --schedule zbv --layers 8
    torchrun --nproc-per-node 8 --no-python serried train --tp 2 --pp 2
    """
    from serried.runtime import launch, worker

    place = worker.torchrun_place()
    settings = _settings(place, **options)
    tell = _Progress(settings).tell
    if place is None:
        _show(settings, launch.train(settings, tell), explain)
        return
    try:
        result = launch.join(settings, place, tell)
        if result:
            _show(settings, result, explain)
    except Exception as error:
        worker.leave(_tell_failure(place, error))
    worker.leave(0)


def _tell_failure(place: Place, error: Exception) -> int:
    """Says which rank of a torchrun job failed and how; returns the exit code."""
    from serried.runtime import worker

    failed = worker.failure(place.rank, error)
    if not isinstance(error, SerriedError):
        click.echo(failed.traceback, err=True)
    click.echo(f"serried: rank {failed.rank}: {failed.message}", err=True)
    return failed.exit_code


def _settings(place: Place | None, **options: Any) -> TrainSettings:
    from serried.runtime.settings import ModelSizes, TrainSettings

    return TrainSettings(
        world_size=_world_size(place, options["nproc"], options["tp"] * options["pp"]),
        options=settings_of(options["options"]),
        model=ModelSizes(
            layers=options["layers"],
            hidden=options["hidden"],
            heads=options["heads"],
            seq_len=options["seq_len"],
        ),
        emulated=_emulated(options["compute"], options["forward_ms"], options["backward_ms"]),
        trace_steps=_window(options["trace_steps"]),
        timeout_s=options["timeout"],
        **{name: options[name] for name in ("tp", "pp", "cp", "framework", "order", "steps", "lr")},
        **{name: options[name] for name in ("global_batch_size", "microbatches", "seed", "data")},
        **{name: options[name] for name in ("trace_dir", "log_file", "device", "dtype")},
        **{name: options[name] for name in ("schedule", "chunks", "group")},
    )


def _world_size(place: Place | None, nproc: int | None, least: int) -> int:
    if place is None:
        return max(1, least) if nproc is None else nproc
    if nproc not in (None, place.world_size):
        raise InputError(
            "--nproc {nproc} differs from the {world} ranks that torchrun started; "
            "leave out --nproc",
            nproc=nproc,
            world=place.world_size,
        )
    return place.world_size


def _emulated(compute: str, forward_ms: float | None, backward_ms: float | None) -> Emulated | None:
    from serried.runtime.settings import Emulated

    given = {"forward_ms": forward_ms, "backward_ms": backward_ms}
    times = {name: value for name, value in given.items() if value is not None}
    if compute == "emulated":
        return Emulated(**times)
    if times:
        raise InputError(
            "--forward-ms and --backward-ms are times of emulated compute; "
            "add --compute emulated or leave them out"
        )
    return None


def _window(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    first, colon, end = text.partition(":")
    if not (colon and first.isdecimal() and end.isdecimal()):
        raise InputError(
            "--trace-steps takes FIRST:END, such as 3:6 for steps 3, 4 and 5; it got '{text}'",
            text=text,
        )
    return int(first), int(end)


class _Progress:
    """Prints a readable line a step to stderr, fewer when steps are many."""

    def __init__(self, settings: TrainSettings) -> None:
        self._settings = settings
        self._every = -(-settings.steps // PROGRESS_LINES)

    def tell(self, event: Event) -> None:
        """Prints what ``event`` tells, if its turn has come."""
        from serried.runtime.report import Started

        settings = self._settings
        if isinstance(event, Started):
            click.echo(f"{_ranks(settings)} ready on {event.ranks[0].device}", err=True)
        elif event.step % self._every == 0 or event.step == settings.steps - 1:
            what = "emulated compute" if event.loss is None else f"loss {event.loss:.4f}"
            number = f"{event.step:>{len(str(settings.steps - 1))}}"
            click.echo(f"step {number}  {what}  {event.duration_ms:.0f} ms", err=True)


def _ranks(settings: TrainSettings) -> str:
    """Says how many ranks there are and how they are placed."""
    count = f"{settings.world_size} rank{'s' if settings.world_size > 1 else ''}"
    sizes = f"tp {settings.tp}, pp {settings.pp}, dp {settings.dp}"
    return f"{count} ({sizes}; {settings.layout.framework} {settings.layout.order})"


def _show(settings: TrainSettings, result: TrainResult, explain: bool) -> None:
    if explain:
        show(_rank_table(result.ranks), "")
    step_ms = median(step.duration_ms for step in result.steps)
    if settings.emulated:
        times = settings.emulated
        what = (
            f"emulated compute (forward {times.forward_ms:g} ms, backward {times.backward_ms:g} ms)"
        )
    else:
        what = f"loss {result.losses[0]:.4f} -> {result.losses[-1]:.4f}"
    show(f"{settings.steps} steps on {_ranks(settings)}: {what}, median step {step_ms:.0f} ms")
    if settings.log_file:
        show(f"log: {settings.log_file}")
    if settings.trace_dir:
        show(f"trace: {settings.trace_dir} (serried trace merge {settings.trace_dir})")


def _rank_table(ranks: tuple[RankReport, ...]) -> Table:
    """Returns what each rank holds and its groups, as the ranks themselves reported."""
    axes = tuple(ranks[0].groups)
    table = Table(box=None, header_style="bold")
    groups = [f"{axis} group" for axis in axes]
    for title in ("rank", *axes, "parameters", "holds", *groups):
        table.add_column(title, justify="left" if title in ("holds", *groups) else "right")
    for each in ranks:
        table.add_row(
            str(each.rank),
            *(str(each.coordinates[axis]) for axis in axes),
            f"{each.parameter_bytes:,} B",
            " ".join(each.modules),
            *(" ".join(map(str, each.groups[axis])) for axis in axes),
        )
    return table
