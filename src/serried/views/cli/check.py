"""``serried check``: every group of a layout made for real, asked who is in it, and timed."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from serried.errors import InputError, SerriedError
from serried.launch.request import LayoutRequest
from serried.plan.busbw import OPERATIONS, to_document
from serried.views.cli.count import COUNT
from serried.views.cli.emit_job import EMIT, IMAGE, emit
from serried.views.cli.job import request_of
from serried.views.cli.language import lang_option
from serried.views.cli.options import job_options, size_options
from serried.views.cli.output import (
    PATH,
    TABLE_OR_JSON,
    OutputChoice,
    as_json,
    output_option,
    write,
)
from serried.views.sentences import say, tell
from serried.views.table import Table

if TYPE_CHECKING:
    from serried.runtime.check.report import CheckReport, Seated, StepBegun
    from serried.runtime.check.settings import CheckSettings
    from serried.runtime.job.report import Place


@click.command()
@click.argument("file", required=False, type=PATH)
@size_options
@job_options
@click.option(
    "--nproc",
    type=COUNT,
    help="Ranks to start on this machine; by default as many as the layout has.",
)
@click.option(
    "--kind", "kinds", multiple=True, help="Time only the groups of this kind; may be repeated."
)
@click.option(
    "--operations",
    default=",".join(OPERATIONS),
    show_default=True,
    help="Operations to time, joined by commas.",
)
@click.option(
    "--sizes",
    default="4KiB,1MiB",
    show_default=True,
    help="Sizes of the messages that are timed, joined by commas.",
)
@click.option(
    "--iterations",
    type=COUNT,
    default=4,
    show_default=True,
    help="How often each operation runs in a round.",
)
@click.option(
    "--rounds",
    type=COUNT,
    default=4,
    show_default=True,
    help="Rounds of measurement, over which the times are compared.",
)
@click.option(
    "--window-size",
    type=COUNT,
    default=32,
    show_default=True,
    help="Ranks of each window in which nodes are compared.",
)
@click.option(
    "--timeout",
    type=float,
    default=30.0,
    show_default=True,
    help="Seconds to wait for a rank before it counts as not answering.",
)
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="What ranks send from: CPU memory (gloo) or GPUs (NCCL); auto takes GPUs where there "
    "are some.",
)
@EMIT
@IMAGE
@click.option(
    "--busbw", type=PATH, help="Write the measured bus bandwidths into this file, as a JSON table."
)
@lang_option
@click.option(
    "--format",
    "form",
    type=click.Choice(TABLE_OR_JSON),
    help="Form of the answer; by default a table, or JSON where --output ends in .json.",
)
@output_option
def check(file: Path | None, **options: Any) -> int:
    """Makes every process group of a layout on real ranks, checks its members, and times it.

    Names slow nodes, links and groups, and ranks that do not answer; exits with 1 when it finds
    any. FILE is a launch script or config, from which sizes are read; options override what it
    says.

    \b
    serried check --nproc 8 --tp 2 --pp 2
    serried check train.sh --nproc 16 --sizes 4KiB,1MiB,64MiB
    torchrun --nproc-per-node 8 --no-python serried check --tp 8 --busbw busbw.json
    srun --ntasks-per-node 8 serried check --tp 8
    """
    from serried.runtime.check import check as checks
    from serried.runtime.run import worker

    if options["emit"]:
        request = request_of(file, options)
        world_size = request.at(_world_told(request, options["nproc"])).layout().world_size
        per_node = request.placement(world_size).ranks_per_node
        emit(world_size=world_size, ranks_per_node=per_node)
        return 0
    # Without a launcher this process starts all ranks; else it is one of them and may have to
    # tell which rank failed.
    place = worker.place_of_launcher()
    settings, framework_settings = _settings(file, place, options)
    output = OutputChoice.of(options, TABLE_OR_JSON)
    output.form_among(TABLE_OR_JSON)  # one that it has not is refused before ranks start
    progress = _Progress(output.lang)
    if place is None:
        nproc = options["nproc"] or settings.world_size
        report = checks.check(settings, progress.tell, world_size=nproc)
        progress.end()
        return _answer(report, settings, framework_settings, output, options["busbw"])
    try:
        checks.join(settings, place, progress.tell)
        progress.end()
        found = progress.report
        code = 0
        if found:
            code = _answer(found, settings, framework_settings, output, options["busbw"])
    except Exception as error:
        code = _tell_failure(place, error, output.lang)
    return worker.leave(code)


def _settings(
    file: Path | None, place: Place | None, options: dict[str, Any]
) -> tuple[CheckSettings, Mapping[str, str]]:
    """Returns what is asked for, and the framework's own settings that made the layout."""
    from serried.runtime.check.settings import CheckSettings, sizes_of

    world_size = place.world_size if place else options["nproc"]
    if place and options["nproc"] not in (None, place.world_size):
        raise InputError(
            "--nproc {nproc} differs from the {world} ranks that torchrun started; "
            "leave out --nproc",
            nproc=options["nproc"],
            world=place.world_size,
        )
    request = request_of(file, options)
    request = request.at(_world_told(request, world_size))
    layout = request.layout()
    _require_world(layout.world_size, world_size)
    # Only ranks that this process starts can be told apart into pretended nodes; under a launcher
    # the real hosts say who shares one.
    is_pretended = place is None and options["gpus_per_node"] is not None
    ranks_per_node = request.placement(layout.world_size).ranks_per_node if is_pretended else None
    settings = CheckSettings(
        layout,
        kinds=options["kinds"],
        operations=tuple(options["operations"].replace(" ", "").split(",")),
        sizes_bytes=sizes_of(options["sizes"]),
        timeout_s=options["timeout"],
        ranks_per_node=ranks_per_node,
        **{name: options[name] for name in ("iterations", "rounds", "window_size", "device")},
    )
    return settings, request.sizes().options


def _world_told(request: LayoutRequest, started: int | None) -> int | None:
    """Returns the ranks that were started where nothing else says how many the layout has."""
    is_in_file = request.config is not None and request.config.world_size is not None
    is_given = {"world_size", "dp"} & request.given.keys()
    return None if is_given or request.hosts or is_in_file else started


def _require_world(asked: int, started: int | None) -> None:
    if started not in (None, asked):
        raise InputError(
            "the layout is of {asked} ranks and the job has {world}; start {asked} ranks, or "
            "give the sizes of {world}",
            asked=asked,
            world=started,
        )


def _answer(
    report: CheckReport,
    settings: CheckSettings,
    framework_settings: Mapping[str, str],
    output: OutputChoice,
    busbw: Path | None,
) -> int:
    """Shows or writes the report, and its bus bandwidths; returns 1 where it found something."""
    from serried.views.runs.check_document import check_document
    from serried.views.runs.check_text import (
        finding_lines,
        headline,
        nodes_table,
        same_line,
        times_table,
    )

    lang, layout = output.lang, settings.whole
    if busbw:
        date = time.strftime("%Y-%m-%d")
        write(as_json(to_document(report.busbw_table(date)), depth=1), busbw)
    if output.form_among(TABLE_OR_JSON) == "json":
        document = check_document(report, layout, lang, options=framework_settings)
        output.write(as_json(document, depth=1))
    else:
        same = same_line(report.same_as, lang)
        below = [same] if same else []
        tables: list[str | Table] = [nodes_table(report, lang), "", times_table(report, lang)]
        lines = ["", *below, *finding_lines(report, lang)]
        output.show(headline(report, layout, lang), "", *tables, *lines)
    return 1 if report.findings else 0


def _tell_failure(place: Place, error: Exception, lang: str) -> int:
    from serried.runtime.run import worker

    failed = worker.failure(place.rank, error)
    if not isinstance(error, SerriedError):
        click.echo(failed.traceback, err=True)
    message = say(error, lang) if isinstance(error, SerriedError) else failed.message
    click.echo(f"serried: rank {failed.rank}: {message}", err=True)
    return failed.exit_code


class _Progress:
    """Says on stderr that ranks have met and, on a terminal, what runs; keeps the report."""

    def __init__(self, lang: str) -> None:
        self._lang = lang
        self._is_terminal = sys.stderr.isatty()
        self.report: CheckReport | None = None

    def tell(self, event: Seated | StepBegun | CheckReport) -> None:
        """Takes what rank 0 tells."""
        from serried.runtime.check.report import CheckReport, Seated, StepBegun

        if isinstance(event, CheckReport):
            self.report = event
        elif isinstance(event, Seated):
            line = tell(
                "{ranks} ranks have met ({backend}, nodes: {nodes}); {steps} steps",
                self._lang,
                ranks=len(event.seats),
                backend=event.backend,
                nodes=len({seat.node for seat in event.seats}),
                steps=event.num_steps,
            )
            click.echo(line, err=True)
        elif isinstance(event, StepBegun) and self._is_terminal:
            line = f"{event.number}/{event.total} {event.name}"
            # Every line takes 78 columns, so that it wipes out a longer one before it.
            click.echo(f"\r{line[:78]:<78}", err=True, nl=False)

    def end(self) -> None:
        """Clears the line."""
        if self._is_terminal:
            click.echo(f"\r{'':<78}\r", err=True, nl=False)
