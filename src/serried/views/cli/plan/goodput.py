"""Options of ``serried plan`` on failures: how often GPUs fail, what saving and restarting take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from serried.errors import InputError, listed
from serried.views.cli.count import COUNT

if TYPE_CHECKING:
    from serried.plan.goodput import JobGoodput
    from serried.plan.job_plan import JobPlan

Command = TypeVar("Command", bound=Callable[..., object])

NEEDED = ("gpu_mtbf", "checkpoint_time", "restart_time")
ELSEWHERE = ("calibrate", "emit", "explain")
"""Options whose answer has no place for goodput."""
FURTHER = ("write_time", "repair_time", "spares", "steps", "tokens")

_OPTIONS = (
    click.option(
        "--gpu-mtbf",
        type=click.FLOAT,
        metavar="HOURS",
        help="Plan the job with failures: mean time between those of one GPU, its part of host and "
        "network counted, such as 50000.",
    ),
    click.option(
        "--checkpoint-time",
        type=click.FLOAT,
        metavar="S",
        help="With --gpu-mtbf: seconds that training stands still for a checkpoint.",
    ),
    click.option(
        "--write-time",
        type=click.FLOAT,
        metavar="S",
        help="With --gpu-mtbf: seconds that it is written on while training goes on.",
    ),
    click.option(
        "--restart-time",
        type=click.FLOAT,
        metavar="S",
        help="With --gpu-mtbf: seconds from a failure to the first step of new work.",
    ),
    click.option(
        "--repair-time",
        type=click.FLOAT,
        metavar="HOURS",
        help="With --gpu-mtbf: hours that a failed node is away; by default it is used again at "
        "once.",
    ),
    click.option(
        "--spares", type=COUNT, metavar="N", help="With --repair-time: nodes that stand by."
    ),
    click.option(
        "--steps", type=COUNT, metavar="N", help="With --gpu-mtbf: steps of the whole job."
    ),
    click.option(
        "--tokens",
        metavar="COUNT",
        help="With --gpu-mtbf: tokens of the whole job instead of steps, such as 15T.",
    ),
)


def goodput_options(command: Command) -> Command:
    """Adds the options that say failures, checkpoints and restarts."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def require_goodput(options: Mapping[str, Any], form: str | None = None) -> None:
    """Raises InputError where what failures need is missing, or an answer has no goodput."""
    given = [name for name in (*NEEDED, *FURTHER) if options[name] is not None]
    missing = [name for name in NEEDED if options[name] is None]
    if given and missing:
        raise InputError(
            "{given} is of a job with failures, which needs {missing} too",
            given=_flag(given[0]),
            missing=listed(map(_flag, missing)),
        )
    other = next((name for name in ELSEWHERE if given and options[name]), None)
    if other is not None or (given and form in ("svg", "png")):
        raise InputError(
            "goodput stands in the table and in JSON; leave out {other} or {given}",
            other=f"--format {form}" if other is None else _flag(other),
            given=_flag(given[0]),
        )
    if options["steps"] is not None and options["tokens"] is not None:
        raise InputError("--steps and --tokens both say how long the job is; leave out one of them")
    if options["spares"] is not None and options["repair_time"] is None:
        raise InputError("--spares counts nodes while others are repaired; give --repair-time too")
    if options["steps"] is not None and options["steps"] < 1:
        raise InputError(
            "a job of {steps} steps cannot be; give at least 1", steps=options["steps"]
        )


def job_goodput(plan: JobPlan, options: Mapping[str, Any]) -> JobGoodput | None:
    """Returns what failures do to a planned job; None where nothing is said of them."""
    if options["gpu_mtbf"] is None:
        return None
    from serried.plan.goodput import FailingJob, JobGoodput

    asked = plan.asked
    job = FailingJob(
        asked.degrees.world_size,
        options["gpu_mtbf"] * 3600,
        options["checkpoint_time"],
        options["restart_time"],
        options["write_time"] or 0.0,
        asked.cluster.gpus_per_node,
        options["spares"] or 0,
        (options["repair_time"] or 0.0) * 3600,
    )
    return JobGoodput(job, plan.step_s, _steps(options, plan))


def _steps(options: Mapping[str, Any], plan: JobPlan) -> int | None:
    if options["tokens"] is None:
        return options["steps"]  # type: ignore[no-any-return]
    from serried.plan.model_states import read_parameters

    try:
        tokens = read_parameters(options["tokens"])
    except InputError as error:
        raise InputError(
            "'{text}' is not a number of tokens; one reads 15T, 300B or 1.5e12",
            text=options["tokens"][:40],
        ) from error
    return -(-tokens // plan.tokens)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
