"""``serried collective``: who sends what to whom, step by step, and what each step costs."""

from __future__ import annotations

from typing import Any

import click

from serried.views.cli.collective.answer import ENDINGS, answer_collective
from serried.views.cli.collective.trial import try_collective
from serried.views.cli.language import lang_option
from serried.views.cli.options import collective_options, network_options
from serried.views.cli.output import OutputChoice, form_option, output_option
from serried.views.collective.text import registry_table


@click.command()
@click.argument("name", required=False, metavar="[NAME]")
@click.option("--ranks", metavar="N", help="Ranks of the group; by default 8.")
@click.option(
    "--gpus-per-node",
    metavar="N",
    help="Ranks on a node, or on each node where they differ, such as 4,1; by default what the "
    "network has.",
)
@collective_options
@network_options
@click.option(
    "--chunks",
    metavar="N",
    help="Parts of the buffer that follow one another through a tree or a chain.",
)
@click.option(
    "--compare",
    "compare_algorithms",
    is_flag=True,
    help="Compare all algorithms by size, and say where one overtakes another.",
)
@click.option(
    "--try",
    "is_tried",
    is_flag=True,
    help="Run it on real ranks, each move a message, beside torch.distributed's own; by default "
    "1MiB by every algorithm.",
)
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="What ranks of --try send from: CPU memory (gloo) or GPUs (NCCL); auto takes GPUs where "
    "there are some.",
)
@click.option(
    "--explain",
    is_flag=True,
    help="Explain what the collective is for, what it costs, and common mistakes.",
)
@form_option(ENDINGS)
@lang_option
@output_option
def collective(name: str | None, **options: Any) -> int:
    """Shows who sends which block to whom in a collective, and what each step costs.

    Without NAME it lists every collective with its algorithms.

    \b
    serried collective all-reduce --ranks 8 --algorithm ring --bytes 1GiB
    serried collective all-gather --ranks 16 --network a100
    serried collective all-reduce --ranks 64 --compare -o crossing.svg
    serried collective all-gather --explain
    serried collective all-reduce --ranks 16 --latency 3,14 --bandwidth 370,45
    serried collective all-reduce --ranks 8 --busbw busbw.json --format json
    serried collective all-reduce --ranks 4 --try
    """
    output = OutputChoice.of(options, ENDINGS)
    if name and options["is_tried"]:
        return try_collective(name, options, output)
    if name:
        answer_collective(name, options, output)
    else:
        output.show(registry_table(lang=output.lang))
    return 0
