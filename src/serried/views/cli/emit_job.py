"""``--emit`` of train and check: prints what starts the same command on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from click.core import ParameterSource

from serried.errors import InputError
from serried.views.cli.count import COUNT
from serried.views.cli.output import write
from serried.views.runs.launch import TARGETS, ClusterJob, written

EMIT = click.option(
    "--emit",
    metavar="|".join(TARGETS),
    help="Print what starts this command on a cluster, and run nothing.",
)
IMAGE = click.option("--image", help="With --emit k8s: the container image.")
NODES = click.option("--nodes", type=COUNT, help="With --emit: nodes to run on.")
GPUS_PER_NODE = click.option("--gpus-per-node", type=COUNT, help="With --emit: ranks on each node.")

PLACES = ("emit", "image", "nodes", "nproc", "gpus_per_node")
"""Options that say where ranks run; a launcher says that instead."""


def cluster_of(options: dict[str, Any]) -> tuple[int, int] | None:
    """Returns nodes and ranks on each, and takes what only ``--emit`` reads out of ``options``.

    None without ``--emit``. Raises InputError for options that go with it alone.
    """
    target = options.pop("emit")
    places = {name: options.pop(name) for name in ("nodes", "gpus_per_node", "image")}
    # A place without --emit is refused, not ignored: who types --nodes 2 expects two nodes.
    for name, value in places.items():
        if target is None and value is not None:
            option = f"--{name.replace('_', '-')}"
            raise InputError("{option} goes with --emit; add --emit slurm", option=option)
        if value is not None and name != "image" and value < 1:
            raise InputError("{name}={value}; it is at least 1", name=name, value=value)
    return None if target is None else (places["nodes"] or 1, places["gpus_per_node"] or 8)


def emit(*, world_size: int, ranks_per_node: int) -> None:
    """Prints what starts the command that is running, under the launcher that was asked for."""
    context = click.get_current_context()
    per_node = min(ranks_per_node, world_size)
    if world_size % per_node:
        raise InputError(
            "{world} ranks do not fill nodes of {per_node}; a launcher starts the same number "
            "on each node: give --gpus-per-node that divides {world}",
            world=world_size,
            per_node=per_node,
        )
    words = (str(context.info_name), *_words(context))
    image = context.params["image"]
    write(
        written(context.params["emit"], ClusterJob(words, world_size // per_node, per_node, image)),
        None,
    )


def _words(context: click.Context) -> Iterator[str]:
    """Yields the arguments that were given, as typed but for where ranks run."""
    for param in context.command.params:
        name = str(param.name)
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if not is_given or name in PLACES:
            continue
        value = context.params[name]
        if isinstance(param, click.Argument):
            yield str(value)
        elif isinstance(param, click.Option) and param.is_flag:
            yield param.opts[0]
        elif param.multiple:
            for each in value:
                yield from (param.opts[0], str(each))
        else:
            # A list in one word, such as --world-size 96,128.
            text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            yield from (param.opts[0], text)
