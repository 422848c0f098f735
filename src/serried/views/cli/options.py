"""Options that several commands share: sizes, framework, placement, and where output goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import click

from serried.errors import InputError

Command = TypeVar("Command", bound=Callable[..., object])


class Count(click.ParamType[int]):
    """Reads a whole number; says in one sentence when it is none."""

    name = "number"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Returns ``value`` as an int; raises InputError when it is not a whole number."""
        if isinstance(value, int):
            return value
        try:
            return int(str(value))
        except ValueError as error:
            option = param.opts[0] if param else "the option"
            raise InputError(
                "{option} takes a whole number, such as 16; it got '{value}'",
                option=option,
                value=value,
            ) from error


COUNT = Count()


class Counts(click.ParamType[tuple[int, ...]]):
    """Reads whole numbers separated by commas, most often just one."""

    name = "number"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Returns ``value`` as ints; raises InputError for a part that is not a whole number."""
        if isinstance(value, tuple):
            return value
        parts = str(value).rstrip(",").split(",")
        return tuple(COUNT.convert(part, param, ctx) for part in parts)


COUNTS = Counts()


def size_options(command: Command) -> Command:
    """Adds the options that say a layout: sizes, framework, order, settings, placement."""
    options = [
        click.option("--world-size", type=COUNTS, help="Ranks in the job; several: 96,128,160."),
        click.option("--tp", type=COUNT, help="Tensor parallel size."),
        click.option("--pp", type=COUNT, help="Pipeline parallel size."),
        click.option("--cp", type=COUNT, help="Context parallel size."),
        click.option("--dp", type=COUNT, help="Data parallel size; it follows from the others."),
        click.option("--ep", type=COUNT, help="Expert parallel size."),
        click.option("--etp", type=COUNT, help="Tensor parallel size of experts."),
        click.option("--zero", type=COUNT, help="ZeRO stage, 0 to 3."),
        click.option("--zero1-size", type=COUNT, help="Ranks that share one optimizer state."),
        click.option("--nettest-size", type=COUNT, help="Ranks of a network-test window."),
        click.option("--order", help="Axis order, as the framework writes it."),
        click.option("--framework", help="NAME or NAME@VERSION; megatron, unless FILE tells."),
        click.option(
            "--set",
            "settings",
            multiple=True,
            metavar="KEY=VALUE",
            help="A framework's own setting.",
        ),
        click.option("--gpus-per-node", type=COUNT, help="8, unless FILE tells."),
        click.option("--gpus-per-rank", type=COUNT, help="1, unless given."),
    ]
    return _with(command, options)


def job_options(command: Command) -> Command:
    """Adds the options that say more of a job than its layout: hosts, layers, fast links."""
    path = click.Path(path_type=Path)
    options = [
        click.option("--hostfile", type=path, help="Hosts and slots to run on: NAME slots=8."),
        click.option("--include", default="", help="Of the hostfile, only NAME:0,2@NAME."),
        click.option("--exclude", default="", help="Of the hostfile, all but NAME:0,2@NAME."),
        click.option("--layers", type=COUNTS, help="Layers, or a list: one number per stage."),
        click.option("--chunks", type=COUNT, help="Model chunks of each rank."),
        click.option("--nvlink-domain", type=COUNT, help="GPUs joined by NVLink; a node."),
    ]
    return _with(command, options)


def _with(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def settings_of(texts: tuple[str, ...]) -> dict[str, str]:
    """Returns ``KEY=VALUE`` texts as a mapping; raises InputError for one without '='.

    >>> settings_of(("num_experts=4",))
    {'num_experts': '4'}
    """
    settings: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InputError(
                "--set takes KEY=VALUE, such as num_experts=4; it got '{text}'", text=text
            )
        settings[key.strip()] = value.strip()
    return settings
