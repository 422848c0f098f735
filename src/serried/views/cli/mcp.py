"""``serried mcp``: the answers of serried for assistants, over the Model Context Protocol."""

from __future__ import annotations

import click

from serried.errors import EnvironmentProblem


@click.command()
@click.pass_context
def mcp(context: click.Context) -> None:
    """Answers assistants over the Model Context Protocol, on standard input and output.

    Its tools are groups, schedule, collective, plan, search, trace_stats and diagnose, with the
    options of these commands; each answers with what --format json prints. Nothing is run and no
    file is written.

    \b
    {"mcpServers": {"serried": {"command": "serried", "args": ["mcp"]}}}
    """
    try:
        from serried.views.assistants.server import serve
    except ModuleNotFoundError as error:
        # A missing module of serried's own is a mistake of serried, and no extra would add it.
        if (error.name or "").startswith("serried"):
            raise
        raise EnvironmentProblem(
            "assistants need {package}, which is not installed; pip install '{extra}' adds it",
            package=error.name,
            extra="serried[mcp]",
        ) from error
    root = context.find_root().command
    assert isinstance(root, click.Group)
    serve(root)
