"""``serried groups``: every process group of a job, over all ranks, before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from serried.views.cli import groups_answers as answers
from serried.views.cli.job import asked_of
from serried.views.cli.language import lang_option
from serried.views.cli.options import COUNT, job_options, size_options
from serried.views.cli.output import FORMATS

PATH = click.Path(path_type=Path)


@click.command()
@click.argument("file", required=False, type=PATH)
@size_options
@job_options
@click.option("--kind", "kinds", multiple=True, help="Only this group kind; may be repeated.")
@click.option("--dims", help="Only the groups of these dimensions, such as dp+tp.")
@click.option("--rank", type=COUNT, help="Only this rank: where it sits, whom it talks to.")
@click.option("--compare", metavar="B", help="Beside a FILE, or a framework NAME[@VERSION].")
@click.option(
    "--compare-set",
    multiple=True,
    metavar="KEY=VALUE",
    help="For B: a size such as tp=4, or a setting; may be repeated.",
)
@click.option("--advice", is_flag=True, help="All advice: nearness, shapes, communicators.")
@click.option("--sources", is_flag=True, help="Where each size was read.")
@click.option("--emit", metavar="TARGET", help="Write a launch config: megatron, slurm, …")
@click.option("--explain", is_flag=True, help="Explain the dimensions that are split.")
@lang_option
@click.option("--format", "form", type=click.Choice(FORMATS), help="table, json or csv.")
@click.option("-o", "--output", type=PATH, help="Write by suffix.")
def groups(file: Path | None, **options: Any) -> int:
    """Prints which rank is in which process group, under the framework's own rules.

    FILE is a launch script or config, from which sizes are read; options, before or behind it,
    override what it says.

    \b
    serried groups --world-size 16 --tp 2 --pp 4
    serried groups --world-size 16 --tp 2 --pp 4 --framework internlm --kind data
    serried groups --world-size 16 --tp 2 --pp 4 --rank 5
    serried groups train.sh --compare internlm
    serried groups train.sh --compare train.sh --compare-set tp=4
    serried groups --world-size 96,128,160 --tp 8 --pp 4
    """
    asked = asked_of(file, options)
    return answers.answer_of(options)(asked, options)
