"""Options that several commands share: sizes, framework, placement, and where output goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import click

from serried.errors import InputError

Command = TypeVar("Command", bound=Callable[..., object])


MOST = 2**63 - 1
"""The largest number that any option takes; most have bounds of their own below it."""

MOST_DIGITS = len(str(MOST))


def shortened(text: str) -> str:
    """Returns a value as a sentence can hold it.

    >>> shortened("1" * 50)
    '1111111111111111111111111111111111111111…'
    """
    return text if len(text) <= 40 else f"{text[:40]}…"


class Count(click.ParamType[int]):
    """Reads a whole number; says in one sentence when it is none."""

    name = "number"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Returns ``value`` as an int; raises InputError when it is not a whole number."""
        if isinstance(value, int):
            return value
        option = param.opts[0] if param else "the option"
        digits = str(value).strip().lstrip("+-")
        if digits.isdecimal() and (len(digits) > MOST_DIGITS or int(digits) > MOST):
            raise InputError(
                "{option} {value} is too large; it is at most {most}",
                option=option,
                value=shortened(str(value)),
                most=MOST,
            )
        try:
            return int(str(value))
        except ValueError as error:
            raise InputError(
                "{option} takes a whole number, such as 16; it got '{value}'",
                option=option,
                value=shortened(str(value)),
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
        click.option(
            "--world-size",
            type=COUNTS,
            help="Ranks in the job; several, such as 96,128,160, are laid out one after the other.",
        ),
        click.option(
            "--tp", type=COUNT, help="Ranks that every layer is split over (tensor parallelism)."
        ),
        click.option(
            "--pp", type=COUNT, help="Stages that the layers are cut into (pipeline parallelism)."
        ),
        click.option(
            "--cp", type=COUNT, help="Ranks that each sequence is split over (context parallelism)."
        ),
        click.option(
            "--dp",
            type=COUNT,
            help="Replicas that read different samples (data parallelism); by default what the "
            "other sizes leave of the world.",
        ),
        click.option(
            "--ep",
            type=COUNT,
            help="Ranks that the experts of each MoE layer are spread over (expert parallelism).",
        ),
        click.option(
            "--etp",
            type=COUNT,
            help="Ranks that each expert is split over; by default as the framework does.",
        ),
        click.option(
            "--zero",
            type=COUNT,
            help="ZeRO stage: 0 shards nothing over data ranks, 1 the optimizer state, 2 "
            "gradients too, 3 weights too.",
        ),
        click.option(
            "--zero1-size",
            type=COUNT,
            help="Ranks that share one optimizer state (zero1 of InternLM and InternEvo); by "
            "default all data ranks.",
        ),
        click.option(
            "--nettest-size",
            type=COUNT,
            help="Ranks among which InternLM and InternEvo test the network at a time; by "
            "default 32.",
        ),
        click.option(
            "--order",
            help="Order of the axes as the framework writes it, such as tp-cp-ep-dp-pp for "
            "megatron.",
        ),
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
        click.option(
            "--gpus-per-node",
            type=COUNTS,
            help="GPUs of a node, or of each where they differ, such as 4,1; by default what FILE "
            "says, else 8.",
        ),
        click.option("--gpus-per-rank", type=COUNT, help="GPUs that one rank owns; by default 1."),
    ]
    return _with(command, options)


def job_options(command: Command) -> Command:
    """Adds the options that say more of a job than its layout: hosts, layers, fast links."""
    path = click.Path(path_type=Path)
    options = [
        click.option(
            "--hostfile",
            type=path,
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
        click.option(
            "--layers",
            type=COUNTS,
            help="Layers of the model, to show which stage holds which; or a list, one number "
            "for each stage.",
        ),
        click.option(
            "--chunks",
            type=COUNT,
            help="Model chunks on each rank (virtual pipeline stages); by default 1.",
        ),
        click.option(
            "--nvlink-domain",
            type=COUNT,
            help="GPUs that reach one another over NVLink; by default those of a node.",
        ),
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
