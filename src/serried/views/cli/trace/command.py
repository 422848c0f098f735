"""``serried trace``: merges what the ranks of a run recorded, and measures it."""

from __future__ import annotations

import click

from serried.views.cli.help import LazyCommand, LazyCommands

COMMANDS = {
    "compare": LazyCommand("trace.compare", "Compare two runs, or a run with its plan."),
    "merge": LazyCommand("trace.merge", "Write one timeline of all ranks, and measure it."),
    "paddle": LazyCommand("trace.paddle", "Write the timeline files of Paddle's worker logs."),
    "stats": LazyCommand("trace.stats", "Measure a recorded run, writing nothing."),
}


@click.command(cls=LazyCommands, named=COMMANDS)
def trace() -> None:
    """Merges and measures the timeline that a run recorded with --trace-dir."""
