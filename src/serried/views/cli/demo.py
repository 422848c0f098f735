"""``serried demo``: a real training, an emulated run of the same layout, and the workbench."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path

import click

from serried.errors import EnvironmentProblem, InputError, listed
from serried.runtime.job.report import Event, StepDone
from serried.runtime.job.settings import Emulated, TrainSettings
from serried.views.cli.count import COUNT
from serried.views.cli.language import current_language
from serried.views.sentences import tell

EMULATED_STEPS = 6
EMULATED_MICROBATCHES = 8
EMULATED_TIMES = Emulated(forward_ms=24.0, backward_ms=48.0)
"""Long beside a message of two busy cores, so that the timeline shows the pipeline alone."""


@click.command()
@click.option(
    "--nproc", type=COUNT, default=8, show_default=True, help="Ranks to start on this machine."
)
@click.option(
    "--tp",
    type=COUNT,
    default=2,
    show_default=True,
    help="Ranks that every layer is split over (tensor parallelism).",
)
@click.option(
    "--pp",
    type=COUNT,
    default=2,
    show_default=True,
    help="Stages that the layers are cut into (pipeline parallelism).",
)
@click.option(
    "--steps", type=COUNT, default=16, show_default=True, help="Steps of the real training."
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="Folder to record into; by default runs/demo-<date>-<time>.",
)
@click.option(
    "--port",
    type=COUNT,
    default=8765,
    show_default=True,
    help="Port of the workbench; 0 takes any free one.",
)
@click.option("--no-open", is_flag=True, help="Open no browser, only print the address.")
@click.option("--no-serve", is_flag=True, help="End after the runs, without the workbench.")
def demo(
    nproc: int,
    tp: int,
    pp: int,
    steps: int,
    folder: Path | None,
    port: int,
    no_open: bool,
    no_serve: bool,
) -> None:
    """Trains for real on local ranks, records it, and opens the workbench on what happened.

    The second run computes nothing: its stages wait fixed times, so that a machine with two
    cores shows a true pipeline. It is labelled emulated wherever it is shown.
    """
    _require_extras(web=not no_serve)
    folder = folder or Path("runs") / time.strftime("demo-%Y%m%d-%H%M%S")
    real = TrainSettings(
        nproc, tp=tp, pp=pp, steps=steps, trace_dir=folder / "real", log_file=folder / "real.jsonl"
    )
    emulated = TrainSettings(
        nproc,
        tp=tp,
        pp=pp,
        steps=EMULATED_STEPS,
        global_batch_size=real.dp * EMULATED_MICROBATCHES,
        microbatches=EMULATED_MICROBATCHES,
        emulated=EMULATED_TIMES,
        trace_dir=folder / "emulated",
    )
    if not no_serve:
        _require_port(port)
    _make_new(folder)
    for settings in (real, emulated):
        _run(settings)
    if no_serve:
        return
    from serried.views.web.opening.kinds import Kind
    from serried.views.web.server import serve

    split = [dim for dim, size in (("dp", real.dp), ("tp", tp), ("pp", pp)) if size > 1]
    serve(
        {folder / "emulated": Kind.RECORDING, folder / "real": Kind.RECORDING},
        port=port,
        open_browser=not no_open,
        query=f"dims={','.join(split)}" if split else "",
    )


def _run(settings: TrainSettings) -> None:
    """Runs one training, with its progress, and prints what its trace says."""
    from serried.runtime.run.launch import train
    from serried.trace.formats.chrome import write_chrome
    from serried.trace.measure.statistics import measure
    from serried.trace.merge.in_memory import merge
    from serried.views.trace.text import bubble_lines

    folder = settings.trace_dir
    assert folder is not None
    lang = current_language()
    is_real = settings.emulated is None
    what = tell("real compute" if is_real else "emulated compute, fixed times", lang)
    told = tell(
        "training on {ranks} ranks: {sizes}, {steps} steps, {compute}",
        lang,
        ranks=settings.world_size,
        sizes=f"tp {settings.tp} x pp {settings.pp} x dp {settings.dp}",
        steps=settings.steps,
        compute=what,
    )
    click.echo(told)
    start = time.monotonic()
    result = train(settings, _tell)
    click.echo("  " + tell("done in {seconds:.1f} s", lang, seconds=time.monotonic() - start))
    if result.losses:
        click.echo(f"  loss {result.losses[0]:.3f} -> {result.losses[-1]:.3f}")
    trace = merge([folder])
    write_chrome(trace, folder / "trace.json")
    for line in bubble_lines(trace, measure(trace), lang=lang):
        click.echo(f"  {line}")
    timeline = tell("timeline for Perfetto or Chrome: {path}", lang, path=folder / "trace.json")
    click.echo(f"  {timeline}\n")


def _tell(event: Event) -> None:
    if isinstance(event, StepDone):
        loss = "" if event.loss is None else f"  loss {event.loss:.4f}"
        click.echo(f"  step {event.step:>3}{loss}  {event.duration_ms:.0f} ms", err=True)


def _make_new(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("{folder} is not empty; name a folder that is new", folder=folder)
    folder.mkdir(parents=True, exist_ok=True)


def _require_port(port: int) -> None:
    """Raises what the workbench would raise a minute later, before anything runs."""
    from serried.views.web.server import listen

    listen("127.0.0.1", port).close()


def _require_extras(*, web: bool) -> None:
    """Raises EnvironmentProblem before anything runs, where an extra is not installed."""
    needed = ["torch", *(["starlette", "uvicorn"] if web else [])]
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise EnvironmentProblem(
            "the demo needs {missing}, which is not installed; "
            "install it with: pip install 'serried[torch,web]'",
            missing=listed(missing, last="and"),
        )
