"""The server that assistants talk to over standard input and output, by the official SDK."""

from __future__ import annotations

from typing import Any

import anyio
import click
import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

from serried.version import __version__
from serried.views.assistants.calls import call
from serried.views.assistants.tools import CommandTool, tools

INSTRUCTIONS = (
    "serried answers about parallel training jobs: which rank is in which process group under the "
    "rules of Megatron, DeepSpeed, torchtitan and others (groups), pipeline schedules and bubbles "
    "(schedule), memory, traffic, step time and MFU (plan), the best layouts of a model on a "
    "cluster (search), collectives step by step (collective), recorded runs (trace_stats), and "
    "which rank hung or is slow, and why (diagnose). Say every figure with its unit and, of plans, "
    "with its interval; accuse no rank that the answer does not name."
)


def serve(root: click.Group) -> None:
    """Answers assistants by the commands of ``root`` until standard input ends."""
    anyio.run(_serve, root)


def server_of(root: click.Group) -> Server[Any]:
    """Returns the server with all tools; it is not connected to anything yet."""

    async def listed(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(each) for each in tools(root)])

    async def called(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        answer = await call(root, params.name, params.arguments or {})
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answer.text)],
            structured_content=answer.document,
            is_error=answer.is_error,
        )

    return Server(
        "serried",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=listed,
        on_call_tool=called,
    )


async def _serve(root: click.Group) -> None:
    server = server_of(root)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def _tool(tool: CommandTool) -> types.Tool:
    """Returns a tool as the protocol lists it: it reads, and reaches nothing outside."""
    return types.Tool(
        name=tool.name,
        description=tool.about,
        input_schema=tool.schema(),
        annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )
