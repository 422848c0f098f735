"""``serried serve``: the workbench in your browser, from a server on this machine alone."""

from __future__ import annotations

from pathlib import Path

import click

from serried.errors import EnvironmentProblem
from serried.views.cli.options import COUNT


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
@click.option("--no-open", is_flag=True, help="Open no browser, only print the address.")
@click.option("--token", help="Ask every visitor for this token.")
def serve(
    places: tuple[Path, ...],
    port: int,
    host: str,
    traces: tuple[Path, ...],
    checks: tuple[Path, ...],
    no_open: bool,
    token: str | None,
) -> None:
    """Opens the workbench: the cluster map, the groups, and the timelines of recorded runs.

    \b
    serried serve
    serried serve runs/demo
    serried serve --check check.json
    ssh -L 8765:localhost:8765 login-node
    serried serve --no-open
    """
    try:
        from serried.views.web import server
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("serried"):
            raise
        raise EnvironmentProblem(
            "the workbench needs {package}, which is not installed; pip install '{extra}' adds it",
            package=error.name,
            extra="serried[web]",
        ) from error
    server.serve(
        (*places, *traces),
        host=host,
        port=port,
        open_browser=not no_open,
        token=token,
        checks=checks,
    )
