"""Options that several commands share: sizes, framework, placement, and where output goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from serried.errors import InputError
from serried.frameworks import Sizes
from serried.mesh import Placement

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


def size_options(command: Command) -> Command:
    """Adds the options that say a layout: sizes, framework, order, settings, placement."""
    options = [
        click.option("--world-size", type=COUNT, help="Ranks in the job."),
        click.option("--tp", type=COUNT, default=1, help="Tensor parallel size."),
        click.option("--pp", type=COUNT, default=1, help="Pipeline parallel size."),
        click.option("--cp", type=COUNT, default=1, help="Context parallel size."),
        click.option("--dp", type=COUNT, help="Data parallel size; it follows from the others."),
        click.option("--ep", type=COUNT, default=1, help="Expert parallel size."),
        click.option("--etp", type=COUNT, help="Tensor parallel size of experts."),
        click.option("--zero1-size", type=COUNT, help="Ranks that share one optimizer state."),
        click.option("--nettest-size", type=COUNT, help="Ranks of a network-test window."),
        click.option("--order", help="Axis order, as the framework writes it."),
        click.option(
            "--framework", default="megatron", show_default=True, help="NAME or NAME@VERSION."
        ),
        click.option(
            "--set",
            "settings",
            multiple=True,
            metavar="KEY=VALUE",
            help="A framework's own setting.",
        ),
        click.option("--gpus-per-node", type=COUNT, default=8, show_default=True),
        click.option("--gpus-per-rank", type=COUNT, default=1, show_default=True),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def sizes_of(options: Mapping[str, Any]) -> Sizes:
    """Returns the Sizes that the options of ``size_options`` say.

    The world size may be left out where ``--dp`` completes the product.
    """
    world_size = options["world_size"]
    if world_size is None and options["dp"] is not None:
        world_size = options["tp"] * options["pp"] * options["cp"] * options["dp"]
    if world_size is None:
        raise InputError("the number of ranks is missing; give it, such as --world-size 16")
    return Sizes(
        world_size=world_size,
        **{name: options[name] for name in ("tp", "pp", "cp", "dp", "ep", "etp", "order")},
        zero1=options["zero1_size"],
        nettest=options["nettest_size"],
        options=settings_of(options["settings"]),
    )


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


def placement_of(options: Mapping[str, Any], world_size: int) -> Placement:
    """Returns the Placement that ``--gpus-per-node`` and ``--gpus-per-rank`` say."""
    return Placement(world_size, options["gpus_per_node"], options["gpus_per_rank"])
