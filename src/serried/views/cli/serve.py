"""``serried serve``: the workbench in your browser, from a server on this machine alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from serried.errors import EnvironmentProblem
from serried.views.cli.options import COUNT
from serried.views.cli.output import as_json


@click.command()
@click.argument("places", nargs=-1, type=click.Path(path_type=Path), metavar="[TRACE]...")
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
    help="Recordings, or the store they were merged to; the same as TRACE.",
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
    ask: str | None,
) -> None:
    """Opens the workbench: the cluster map, the groups, and the timelines of recorded runs.

    \b
    serried serve
    serried serve runs/demo
    serried serve --check check.json
    serried serve --evidence logs/
    ssh -L 8765:localhost:8765 login-node
    serried serve --no-open
    serried serve runs/demo --ask 'trace/stretch?from=0&to=1000000'
    """
    if ask is not None:
        return _print_answer(ask, (*places, *traces), checks, evidence)
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
    return server.serve(
        (*places, *traces),
        host=host,
        port=port,
        open_browser=not no_open,
        token=token,
        checks=checks,
        evidence=evidence,
    )


def _print_answer(
    question: str, places: Sequence[Path], reports: Sequence[Path], evidence: Sequence[Path]
) -> None:
    """Prints what the page would be answered; it takes no server and none of its packages."""
    from serried.views.web.check.heat import read_check
    from serried.views.web.diagnose.cases import read_case
    from serried.views.web.questions import answer_document, questions
    from serried.views.web.trace.shelf import Shelf

    answers = questions(
        Shelf.of_places(places, at_once=True),
        [*map(read_check, reports)],
        [*map(read_case, evidence)],
    )
    click.echo(as_json(answer_document(question, answers)))
