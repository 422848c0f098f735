"""``serried serve``: the workbench in your browser, from a server on this machine alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from serried.errors import EnvironmentProblem, SerriedError
from serried.finding import Sentence
from serried.views.cli.count import COUNT
from serried.views.cli.language import current_language
from serried.views.sentences import say

if TYPE_CHECKING:
    from serried.views.web.opening.kinds import Kind


@click.command()
@click.argument("places", nargs=-1, type=click.Path(path_type=Path), metavar="[WHAT]...")
@click.option(
    "--port",
    type=COUNT,
    default=8765,
    show_default=True,
    help="Port to listen on; 0 takes any free one.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; any but this machine's own loopback needs the printed token.",
)
@click.option(
    "--trace",
    "traces",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Recordings, or the store they were merged to; WHAT that is said to be a trace.",
)
@click.option(
    "--check",
    "checks",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Report of serried check, as JSON, to show on the map; may be repeated.",
)
@click.option(
    "--evidence",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Logs, dumps and records of a job that hung or failed, to diagnose; may be repeated.",
)
@click.option("--no-open", is_flag=True, help="Open no browser, only print the address.")
@click.option("--token", help="Ask every visitor for this token.")
@click.option(
    "--behind",
    multiple=True,
    metavar="NAME",
    help="Host name of a proxy that browsers come through, as a JupyterHub's; may be repeated.",
)
@click.option(
    "--ask",
    metavar="QUESTION",
    help="Print the answer to a question of the page as JSON and end: what follows api/ there.",
)
def serve(
    places: tuple[Path, ...],
    port: int,
    host: str,
    traces: tuple[Path, ...],
    checks: tuple[Path, ...],
    evidence: tuple[Path, ...],
    no_open: bool,
    token: str | None,
    behind: tuple[str, ...],
    ask: str | None,
) -> None:
    """Opens the workbench: the cluster map, the groups, and the timelines of recorded runs.

    WHAT is anything of a job, recognised by what it holds: a launch file, a hostfile, a
    model's config.json, recordings, a store, traces of other tools, logs and dumps, JSON of
    serried check, plan, diagnose or groups. The page opens at once and says how far reading is.

    \b
    serried serve
    serried serve runs/demo
    serried serve train.sh
    serried serve logs/ check.json
    ssh -L 8765:localhost:8765 login-node
    serried serve --no-open
    serried serve runs/demo --ask 'trace/stretch?from=0&to=1000000'
    """
    given = {
        **dict.fromkeys(places),
        **dict.fromkeys(traces, "trace"),
        **dict.fromkeys(checks, "check"),
        **dict.fromkeys(evidence, "evidence"),
    }
    if ask is not None:
        return _print_answer(ask, given)
    try:
        from serried.views.web import server
    except ModuleNotFoundError as error:
        # A missing module of serried's own is a mistake of serried, and no extra would add it.
        if (error.name or "").startswith("serried"):
            raise
        raise EnvironmentProblem(
            "the workbench needs {package}, which is not installed; pip install '{extra}' adds it",
            package=error.name,
            extra="serried[web]",
        ) from error
    lang = current_language()
    return server.serve(
        _kinds(given),
        host=host,
        port=port,
        open_browser=not no_open,
        token=token,
        behind=behind,
        tell=lambda told: click.echo(_told(told, lang), err=True),
    )


def _kinds(given: Mapping[Path, str | None]) -> dict[Path, Kind | None]:
    """Returns what each place is said to be, None for what is recognised."""
    from serried.views.web.opening.kinds import Kind

    said = {"trace": Kind.RECORDING, "check": Kind.CHECK, "evidence": Kind.LOG}
    return {place: said[what] if what else None for place, what in given.items()}


def _told(told: Sentence | SerriedError, lang: str) -> str:
    """Returns what is said of an opening as a line of the terminal."""
    is_error = isinstance(told, SerriedError)
    return f"serried: {say(told, lang)}" if is_error else f"{say(told, lang)} …"


def _print_answer(question: str, given: Mapping[Path, str | None]) -> None:
    """Prints what the page would be answered; it takes no server and none of its packages."""
    from serried.views.cli.output import as_json
    from serried.views.web.opening.desk import OpeningDesk
    from serried.views.web.opening.folder import recognised_as
    from serried.views.web.questions import answer_document, questions

    desk = OpeningDesk()
    try:
        for place, kind in _kinds(given).items():
            desk.open(place, found=recognised_as(place, kind))
        desk.settle()
        if problem := next((each.problem for each in desk.openings if each.problem), None):
            raise problem
        click.echo(as_json(answer_document(question, questions(desk))))
    finally:
        desk.close()
