"""Options that several commands share: sizes, framework, placement, and where output goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import click

from serried.mesh.sizes import LAYERS, PLACES, SIZES, Given, SizeField
from serried.views.cli.help import SpokenOption

Command = TypeVar("Command", bound=Callable[..., object])


class SizeValue(click.ParamType[Given]):
    """Reads one size of the table, as every other way in does."""

    def __init__(self, size: SizeField) -> None:
        self.size = size
        self.name = "text" if size.form == "word" else "number"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Given:
        """Returns the size that a word says; raises InputError for one that says none."""
        return self.size.read(value)


def size_options(command: Command) -> Command:
    """Adds the options that say a layout: sizes, framework, order, settings, placement."""
    world, *others = SIZES.values()
    options = [
        _size(world._replace(form="numbers")),
        *map(_size, others),
        click.option(
            "--framework",
            metavar="NAME[@VERSION]",
            help="Whose rules to follow; by default what FILE says, else megatron. Names: "
            "{frameworks}.",
        ),
        click.option(
            "--set",
            "settings",
            multiple=True,
            metavar="KEY=VALUE",
            help="A setting of the framework under its own name; may be repeated. serried "
            "groups --framework NAME --help-settings lists them.",
        ),
        *map(_size, PLACES.values()),
    ]
    return _with(command, options)


def job_options(command: Command) -> Command:
    """Adds the options that say more of a job than its layout: hosts, layers, fast links."""
    options = [
        click.option(
            "--hostfile",
            type=click.Path(path_type=Path),
            help="File of the hosts to run on, a line each, such as: node1 slots=8",
        ),
        click.option(
            "--include",
            default="",
            help="Use only these hosts and slots of the hostfile, written as NAME:0,2@NAME.",
        ),
        click.option(
            "--exclude",
            default="",
            help="Leave out these hosts and slots of the hostfile, written as NAME:0,2@NAME.",
        ),
        *map(_size, LAYERS.values()),
    ]
    return _with(command, options)


def model_options(command: Command) -> Command:
    """Adds the options that say of a model how many parameters it has, and in which precision."""
    options = [
        click.option(
            "--parameters",
            metavar="COUNT",
            help="Parameters of the model, such as 7.5B: how many bytes of them, of gradients and "
            "of optimizer state a rank holds.",
        ),
        click.option(
            "--expert-parameters",
            metavar="COUNT",
            help="How many of these are in experts, which are sharded over other ranks.",
        ),
        click.option(
            "--precision",
            metavar="NAME",
            help="Recipe of precision for --parameters, by default fp16-adam, 16 bytes each; a "
            "name that is not known lists those that are.",
        ),
    ]
    return _with(command, options)


def collective_options(command: Command) -> Command:
    """Adds the options that say a collective beside its ranks: algorithm, bytes, steps."""
    options = [
        click.option(
            "--algorithm",
            metavar="NAME",
            help="Algorithm of the collective, by default the quickest that it has; all compares "
            "them by size.",
        ),
        click.option(
            "--bytes",
            metavar="SIZE",
            help="Size of the buffer as nccl-tests count it, such as 1GiB, 512MB or 4096; by "
            "default 1GiB.",
        ),
        click.option(
            "--root",
            metavar="RANK",
            help="Rank that has or gets all, in a broadcast, reduce, gather or scatter; by "
            "default the first of the group.",
        ),
        click.option(
            "--channels", metavar="N", help="Rings or pairs of trees that share the buffer."
        ),
        click.option(
            "--split",
            metavar="NAME",
            help="How attention deals a sequence out to ranks: zig-zag, as by default, or "
            "contiguous.",
        ),
        click.option(
            "--mask",
            metavar="NAME",
            help="What queries see in attention: causal, as by default, or none for all keys.",
        ),
        click.option(
            "--steps",
            metavar="FIRST:END",
            help="Print these steps, from the first to before the end; numbers count from 0.",
        ),
    ]
    return _with(command, options)


def network_options(command: Command) -> Command:
    """Adds the options that say what links carry, by name, by number or as they were measured."""
    options = [
        click.option(
            "--network",
            metavar="NAME",
            help="Links of the cluster: a100, h100, h200, b200, gb200, mi300x, ethernet or "
            "another that is known by name; by default h100.",
        ),
        click.option(
            "--latency",
            metavar="US",
            help="Microseconds that a message takes, in the node and across, such as 3,14; one "
            "number stands for both.",
        ),
        click.option(
            "--bandwidth",
            metavar="GB/S",
            help="GB/s of a link one way, in the node and across, such as 370,45; one number "
            "stands for both.",
        ),
        click.option(
            "--nics-per-node",
            metavar="N",
            help="NICs of a node, which its ranks share; by default one for each rank.",
        ),
        click.option(
            "--busbw",
            metavar="FILE",
            help="Take times from a table that serried check --busbw measured.",
        ),
    ]
    return _with(command, options)


def _size(size: SizeField) -> Callable[[Command], Command]:
    return click.option(
        size.option, size.name, type=SizeValue(size), cls=SpokenOption, spoken=size.help
    )


def _with(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command
