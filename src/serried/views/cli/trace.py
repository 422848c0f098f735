"""``serried trace``: merges what the ranks of a run recorded, and measures it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import click
from rich.table import Table

from serried.trace.chrome import write_chrome
from serried.trace.merge import Trace
from serried.trace.perfetto import write_perfetto
from serried.trace.reading import read_trace
from serried.trace.replay_spans import replay_of_trace
from serried.trace.statistics import measure
from serried.trace.store import write_store
from serried.trace.what_if import what_if
from serried.units import bytes_text
from serried.views.advice_text import warned
from serried.views.cli.language import lang_option
from serried.views.cli.output import as_json, show
from serried.views.cli.trace_compare import compare
from serried.views.cli.trace_paddle import paddle
from serried.views.sentences import tell
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
WRITERS = {".json": write_chrome, ".pftrace": write_perfetto}

folders_argument = click.argument(
    "folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(path_type=Path)
)
format_option = click.option(
    "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True
)


def sizes_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the sizes that lay out the ranks of another tool's files."""
    for axis in ("tp", "dp", "pp"):
        option = click.option(
            f"--{axis}",
            type=click.IntRange(min=1),
            help=f"{axis} of another tool's trace, whose files do not say it.",
        )
        command = option(command)
    return command


@click.group()
def trace() -> None:
    """Merges and measures the timeline that a run recorded with --trace-dir."""


@trace.command("merge", short_help="Write one timeline as Chrome JSON, and measure it.")
@folders_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="What to write: .json for Chrome, .pftrace for Perfetto, any other name for the Parquet "
    "store; by default trace.json in the first DIR.",
)
@sizes_options
@format_option
@lang_option
def merge_command(
    folders: tuple[Path, ...], output: Path | None, form: str, lang: str, **sizes: int | None
) -> None:
    """Writes one timeline of all ranks for Chrome, Perfetto or table engines, and measures it.

    \b
    serried trace merge runs/first
    serried trace merge node0/run node1/run -o both.pftrace
    serried trace merge node0/run node1/run -o both.store
    """
    output = output or folders[0] / "trace.json"
    write = WRITERS.get(output.suffix.lower(), write_store)
    merged = read_trace(folders, _given(sizes))
    write(merged, output)
    _tell(merged, form, lang)
    told = tell(
        "wrote {path}, {size}; open it in https://ui.perfetto.dev"
        if output.is_file()
        else "wrote {path}, {size} of Parquet; every trace command and table engine reads it",
        lang,
        path=output,
        size=bytes_text(_size(output)),
    )
    click.echo(told, err=True)


@trace.command("stats", short_help="Measure a recorded run, writing nothing.")
@folders_argument
@sizes_options
@format_option
@lang_option
def stats_command(folders: tuple[Path, ...], form: str, lang: str, **sizes: int | None) -> None:
    """Measures a recorded run: bubble beside the ideal, each rank's time, messages.

    \b
    serried trace stats runs/first
    serried trace stats runs/first --format json
    """
    _tell(read_trace(folders, _given(sizes)), form, lang)


trace.add_command(compare)
trace.add_command(paddle)


def _size(path: Path) -> int:
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return sum(each.stat().st_size for each in files)


def _given(sizes: Mapping[str, int | None]) -> dict[str, int]:
    return {axis: size for axis, size in sizes.items() if size is not None}


def _tell(merged: Trace, form: str, lang: str) -> None:
    """Prints warnings to stderr and the statistics to stdout."""
    stats = measure(merged)
    replay = replay_of_trace(merged)
    replayed = what_if(replay) if replay else None
    for warning in merged.warnings:
        click.echo(warned(warning, lang=lang), err=True)
    if form == "json":
        return click.echo(as_json(stats_document(merged, stats, replayed)))
    tables: list[str | Table] = ["", steps_table(stats, lang=lang)]
    tables += ["", ranks_table(merged, stats, lang=lang)]
    lines = [*bubble_lines(merged, stats, lang=lang), *what_if_lines(replayed, lang=lang)]
    lines += [*message_lines(stats, lang=lang), *left_out_lines(stats, lang=lang)]
    top = headlines(merged, stats, lang=lang)
    return show(*top, *(tables if stats.steps else ()), "", *lines)
