"""``serried trace``: merges what the ranks of a run recorded, and measures it."""

from __future__ import annotations

import click

from serried.views.cli.help import Commands
from serried.views.cli.trace.compare import compare
from serried.views.cli.trace.merge import merge
from serried.views.cli.trace.paddle import paddle
from serried.views.cli.trace.stats import stats


@click.group(cls=Commands)
def trace() -> None:
    """Merges and measures the timeline that a run recorded with --trace-dir."""


for command in (compare, merge, paddle, stats):
    trace.add_command(command)
