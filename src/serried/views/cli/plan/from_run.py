"""``serried plan --from``: the step of a recorded run, timed again under what options ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from serried.errors import InputError
from serried.views.cli.count import COUNT
from serried.views.cli.output import PATH, TABLE_OR_JSON, OutputChoice, as_json, width

Command = TypeVar("Command", bound=Callable[..., object])

OWN = ("microbatches", "compute_speed", "hop")
"""What only a recorded run is asked with."""
TAKEN = ("runs", *OWN, "pp", "dp", "tp", "schedule", "chunks", "lang", "form", "output")

_OPTIONS = (
    click.option(
        "--from",
        "runs",
        type=PATH,
        multiple=True,
        metavar="RUN",
        help="Time the step of this recorded run again, under the --pp, --dp, --tp, --schedule, "
        "--chunks and --microbatches given; repeated, of several runs of one model.",
    ),
    click.option(
        "--microbatches",
        type=COUNT,
        metavar="N",
        help="With --from: microbatches of a step; the global batch stays.",
    ),
    click.option(
        "--compute-speed",
        type=click.FLOAT,
        metavar="FACTOR",
        help="With --from: how many times as fast computations are, as on another GPU.",
    ),
    click.option(
        "--hop",
        type=click.FLOAT,
        metavar="US",
        help="With --from: microseconds that a message takes from rank to rank, as over another "
        "network.",
    ),
)


def from_options(command: Command) -> Command:
    """Adds --from, and what only a recorded run is asked with."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def require_run(options: Mapping[str, Any]) -> None:
    """Raises InputError for an option that changes a recorded run, where none is given."""
    for name in OWN:
        if options[name] is not None:
            raise InputError(
                "{option} changes a recorded run; give it with --from RUN, or leave out {option}",
                option=f"--{name.replace('_', '-')}",
            )


def retimed_plan(options: Mapping[str, Any]) -> int:
    """Times the step of the runs again, and prints or writes it.

    Raises InputError for an option that says a job of a model on a cluster.
    """
    _require_own()
    from serried.plan.retime.observed import observe
    from serried.plan.retime.retimed import Target, retime
    from serried.plan.retime.several import together
    from serried.trace.formats.reading import read_trace
    from serried.views.cli.progress import told
    from serried.views.layout.advice import warned
    from serried.views.plan.retimed_text import retimed_answer, retimed_parts

    output = OutputChoice.of(options, TABLE_OR_JSON)
    form = output.form_among(TABLE_OR_JSON)
    hop = options["hop"]
    target = Target(
        **{name: options[name] for name in ("pp", "dp", "tp", "schedule", "microbatches")},
        chunks=options["chunks"],
        compute_speed=1.0 if options["compute_speed"] is None else options["compute_speed"],
        hop_s=None if hop is None else hop / 1e6,
    )
    traces = [read_trace([path], listener=told(output.lang)) for path in options["runs"]]
    for warning in (warning for trace in traces for warning in trace.warnings):
        click.echo(warned(warning, lang=output.lang), err=True)
    step = retime(together([observe(trace) for trace in traces]), target)
    if form == "json":
        output.write(as_json(retimed_answer(step)))
    else:
        output.show(*retimed_parts(step, columns=width(), lang=output.lang))
    return 0


def _require_own() -> None:
    context = click.get_current_context()
    for param in context.command.params:
        name = param.name or ""
        source = context.get_parameter_source(name)
        is_given = source is not None and source is not click.core.ParameterSource.DEFAULT
        if is_given and name not in TAKEN:
            told = param.opts[0] if isinstance(param, click.Option) else str(context.params[name])
            raise InputError(
                "{option} says a job of a model on a cluster, and --from takes a recorded run; "
                "leave out one of them",
                option=told,
            )
