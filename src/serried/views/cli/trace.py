"""``serried trace``: merges what the ranks of a run recorded, and measures it."""

from __future__ import annotations

from pathlib import Path

import click

from serried.errors import InputError
from serried.trace.chrome import write_chrome
from serried.trace.merge import Trace
from serried.trace.reading import read_trace
from serried.trace.replay_spans import replay_of_trace
from serried.trace.statistics import measure
from serried.trace.what_if import what_if
from serried.units import bytes_text
from serried.views.cli.output import as_json, show
from serried.views.cli.trace_paddle import paddle
from serried.views.trace_document import stats_document
from serried.views.trace_text import (
    bubble_lines,
    headlines,
    left_out_lines,
    message_lines,
    ranks_table,
    steps_table,
    what_if_lines,
)

FORMATS = ("table", "json")

folders_argument = click.argument(
    "folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(path_type=Path)
)
format_option = click.option(
    "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True
)


@click.group()
def trace() -> None:
    """Merges and measures the timeline that a run recorded with --trace-dir."""


@trace.command("merge", short_help="Write one timeline as Chrome JSON, and measure it.")
@folders_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File to write, .json; by default trace.json in the first DIR.",
)
@format_option
def merge_command(folders: tuple[Path, ...], output: Path | None, form: str) -> None:
    """Writes one timeline of all ranks as Chrome JSON, which Perfetto opens, and measures it.

    \b
    serried trace merge runs/first
    serried trace merge node0/run node1/run -o both.json
    """
    output = output or folders[0] / "trace.json"
    if output.suffix.lower() != ".json":
        raise InputError(
            "{path} does not end in .json; merge writes Chrome JSON, such as trace.json",
            path=output,
        )
    merged = read_trace(folders)
    write_chrome(merged, output)
    _tell(merged, form)
    size = bytes_text(output.stat().st_size)
    click.echo(f"wrote {output}, {size}; open it in https://ui.perfetto.dev", err=True)


@trace.command("stats", short_help="Measure a recorded run, writing nothing.")
@folders_argument
@format_option
def stats_command(folders: tuple[Path, ...], form: str) -> None:
    """Measures a recorded run: bubble beside the ideal, each rank's time, messages.

    \b
    serried trace stats runs/first
    serried trace stats runs/first --format json
    """
    _tell(read_trace(folders), form)


trace.add_command(paddle)


def _tell(merged: Trace, form: str) -> None:
    """Prints warnings to stderr and the statistics to stdout."""
    stats = measure(merged)
    replay = replay_of_trace(merged)
    replayed = what_if(replay) if replay else None
    for warning in merged.warnings:
        click.echo(f"warning: {warning}", err=True)
    if form == "json":
        return click.echo(as_json(stats_document(merged, stats, replayed)))
    tables = ("", steps_table(stats), "", ranks_table(merged, stats)) if stats.steps else ()
    lines = [*bubble_lines(merged, stats), *what_if_lines(replayed)]
    lines += [*message_lines(stats), *left_out_lines(stats)]
    return show(*headlines(merged, stats), *tables, "", *lines)
