"""``serried groups``: every process group of a job, over all ranks, before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from serried.views.cli.count import COUNT
from serried.views.cli.groups import answers as answers
from serried.views.cli.job import request_of
from serried.views.cli.language import lang_option
from serried.views.cli.options import (
    collective_options,
    job_options,
    model_options,
    network_options,
    size_options,
)
from serried.views.cli.output import PATH, OutputChoice, form_option, output_option


@click.command()
@click.argument("file", required=False, type=PATH)
@size_options
@job_options
@model_options
@click.option(
    "--all",
    "is_whole",
    is_flag=True,
    help="Print every kind of group; by default, where there are many, those of one dimension. "
    "JSON and CSV hold them all.",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    help="Print only the groups of this kind, by the framework's name for it; may be repeated.",
)
@click.option("--dims", help="Print only the groups of these dimensions, such as dp+tp.")
@click.option("--rank", type=COUNT, help="Print one rank only: where it sits and whom it talks to.")
@click.option(
    "--collective",
    metavar="[NAME]",
    is_flag=False,
    flag_value="all-reduce",
    help="Show the steps of a collective, by default an all-reduce, over the first group of --kind "
    "or the one of --rank.",
)
@collective_options
@network_options
@click.option(
    "--compare",
    metavar="FILE|NAME",
    help="Compare with the layout of another launch file, or of the same sizes under "
    "another framework.",
)
@click.option(
    "--compare-set",
    multiple=True,
    metavar="KEY=VALUE",
    help="With --compare: a size such as tp=4, or a setting, of the second layout; may "
    "be repeated.",
)
@click.option(
    "--advice",
    is_flag=True,
    help="Print all advice on the layout: which groups cross nodes, which sizes fit "
    "badly, how many communicators.",
)
@click.option(
    "--sources", is_flag=True, help="Print where each size was read, or whose default it is."
)
@click.option(
    "--emit",
    metavar="TARGET",
    help="Print a launch script or config for this layout; a name that is not known "
    "lists those that are.",
)
@click.option(
    "--step",
    type=COUNT,
    metavar="MICROBATCHES",
    help="Print one training step of so many microbatches under the sharding: what is gathered, "
    "freed and reduced over which group, and what a rank holds after it.",
)
@click.option(
    "--explain",
    is_flag=True,
    help="Explain what the ranks of each group share, and what travels among them when.",
)
@click.option(
    "--help-settings",
    is_flag=True,
    help="List the settings that --set takes for --framework: meaning, values, default, versions.",
)
@lang_option
@form_option(answers.FORMATS)
@output_option
def groups(file: Path | None, **options: Any) -> int:
    """Prints which rank is in which process group, under the framework's own rules.

    FILE is a launch script or config, from which sizes are read; options, before or behind it,
    override what it says.

    \b
    serried groups --world-size 16 --tp 2 --pp 4
    serried groups --world-size 16 --tp 2 --pp 4 --framework internlm --kind data
    serried groups --world-size 16 --tp 2 --pp 4 --rank 5
    serried groups --world-size 64 --zero 3 --parameters 7.5B -o zero.svg
    serried groups --world-size 64 --tp 8 --kind dp --collective all-gather
    serried groups --world-size 64 --zero 3 --parameters 7.5B --layers 2 --step 1
    serried groups train.sh --compare internlm
    serried groups train.sh --compare train.sh --compare-set tp=4
    serried groups --world-size 96,128,160 --tp 8 --pp 4
    """
    if options["help_settings"]:
        from serried.views.cli.groups.settings import tell_settings

        tell_settings(options["framework"], OutputChoice.of(options))
        return 0
    request = request_of(file, options)
    return answers.answer_of(options)(request, options, OutputChoice.of(options, answers.FORMATS))
