"""``serried diagnose``: which rank hung, which is slow, and why."""

from __future__ import annotations

from pathlib import Path

import click

from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed
from serried.errors import InputError
from serried.views.cli.language import lang_option
from serried.views.cli.output import (
    PATH,
    TABLE_OR_JSON,
    OutputChoice,
    as_json,
    printed_form_option,
    width,
)
from serried.views.cli.progress import told
from serried.views.diagnose.document import diagnosis_document
from serried.views.diagnose.text import diagnosis_lines


@click.command("diagnose")
@click.argument("what", nargs=-1, required=True, type=PATH)
@click.option(
    "--watch",
    is_flag=True,
    help="Follow a job that runs: WHAT is the folder in which its ranks write.",
)
@click.option(
    "--still",
    type=float,
    metavar="S",
    help="How long a watched job may stand still; by default as its own steps and pauses tell.",
)
@click.option(
    "--every",
    type=float,
    metavar="S",
    default=2.0,
    show_default=True,
    help="How often a watched job is looked at.",
)
@click.option(
    "--metrics",
    metavar="[HOST:]PORT",
    help="Serve step time, bubble, lateness and stalls of a watched job to Prometheus.",
)
@click.option(
    "--export",
    "exports",
    multiple=True,
    metavar="KIND[=WHERE]",
    help="Send these figures of a watched job: otlp=URL, tensorboard=DIR, wandb=PROJECT, "
    "mlflow=URI.",
)
@click.option(
    "--pid",
    type=int,
    metavar="PID",
    help="Watch only as long as this process of the job lives, and until its last figures are out.",
)
@click.option("--once", is_flag=True, help="Stop watching at the first thing that is wrong.")
@printed_form_option
@lang_option
def diagnose(
    what: tuple[Path, ...],
    watch: bool,
    still: float | None,
    every: float,
    metrics: str | None,
    exports: tuple[str, ...],
    pid: int | None,
    once: bool,
    form: str,
    lang: str,
) -> int:
    """Says which rank hung, which is slow, and why; or what evidence is missing.

    Reads logs, flight-recorder dumps, stacks and records, in files and folders, any mixture.
    Exits with 1 where something was found, and with 2 where nothing could be read.

    \b
    serried diagnose logs/
    serried diagnose console.log /tmp/nccl_trace_rank_* stacks/ --format json
    serried diagnose --watch runs/pp4
    serried diagnose --watch runs/pp4 --metrics 9464
    serried diagnose --watch runs/pp4 --export otlp=http://localhost:4318
    """
    output = OutputChoice(lang, form)
    if watch:
        from serried.views.cli.diagnose.watch import Watching, watch_job  # only this needs it

        if len(what) != 1:
            raise InputError("--watch follows one folder; {count} were given", count=len(what))
        is_json = output.form_among(TABLE_OR_JSON) == "json"
        asked = Watching(what[0], every, still, once, is_json, lang, metrics, exports, pid)
        return watch_job(asked)
    if once or pid is not None or still is not None or metrics is not None or exports:
        raise InputError("--still, --once, --pid, --metrics and --export belong to --watch")
    found = diagnosed(gather(what, told(lang)))
    if output.form_among(TABLE_OR_JSON) == "json":
        output.write(as_json(diagnosis_document(found, lang)))
    else:
        output.write("\n".join(diagnosis_lines(found, lang=lang, width=width())) + "\n")
    return (1 if found.found else 0) if found.was_read else 2
