"""An assistant, here the official client, gets what the commands print, or one sentence why not."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

from serried.views.assistants.calls import SERRIED, CallAnswer, call
from serried.views.assistants.server import server_of
from serried.views.assistants.tools import OFFERED, tools
from serried.views.cli.main import serried as root
from tests.conftest import Call

JOB = {"model": "llama3-8b", "cluster": "h100", "sequence": 8192, "global_batch": 64}
WORDS = ("--model", "llama3-8b", "--cluster", "h100", "--sequence", "8192", "--global-batch", "64")
RUN = Path(__file__).parents[2] / "goldens" / "traces" / "straggler_analysis" / "trace-ST.parquet"
CALLS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "groups": (
        {"world_size": 16, "tp": 2, "pp": 4},
        ("--world-size", "16", "--tp", "2", "--pp", "4"),
    ),
    "schedule": (
        {"names": ["zb-h1"], "stages": 4, "microbatches": 6},
        ("zb-h1", "--pp", "4", "--microbatches", "6"),
    ),
    "collective": ({"name": "all-reduce", "ranks": 4}, ("all-reduce", "--ranks", "4")),
    "plan": (
        {**JOB, "world_size": 16, "tp": 2, "pp": 4},
        (*WORDS, "--world-size", "16", "--tp", "2", "--pp", "4"),
    ),
    "search": (
        {**JOB, "world_size": 8, "most": 2},
        (*WORDS, "--world-size", "8", "--most", "2"),
    ),
    "diagnose": ({"what": [str(RUN)]}, (str(RUN),)),
    "trace_stats": ({"places": [str(RUN)]}, (str(RUN),)),
}
"""What each tool is given, and the words of its command that say the same."""


def asked(name: str, given: Mapping[str, Any]) -> types.CallToolResult:
    """Returns what a client gets of a server in the same process."""

    async def ask() -> types.CallToolResult:
        async with Client(server_of(root)) as client:
            return await client.call_tool(name, dict(given))

    return anyio.run(ask)


def refused(name: str, given: Mapping[str, Any]) -> str:
    """Returns the sentence that refuses a call."""
    found = asked(name, given)
    assert found.is_error and isinstance(found.content[0], types.TextContent)
    return found.content[0].text


@pytest.mark.parametrize("name", CALLS)
def test_a_tool_answers_what_its_command_prints(name: str, serried: Call) -> None:
    given, words = CALLS[name]
    printed = json.loads(serried(*OFFERED[name], *words, "--format", "json").out)
    assert asked(name, given).structured_content == printed


def test_a_process_of_its_own_lists_every_tool_with_what_it_takes() -> None:
    async def listed() -> types.ListToolsResult:
        server = StdioServerParameters(command=SERRIED[0], args=[*SERRIED[1:], "mcp"])
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            return await session.list_tools()

    found = {each.name: each for each in anyio.run(listed).tools}
    assert list(found) == list(OFFERED)
    assert all(each.description for each in found.values())
    assert found["diagnose"].input_schema["required"] == ["what"]
    sizes = found["groups"].input_schema["properties"]
    assert sizes["tp"]["type"] == "integer" and "tensor parallelism" in sizes["tp"]["description"]


def test_nothing_that_waits_runs_ranks_or_writes_is_offered() -> None:
    taken = {key for tool in tools(root) for key in tool.schema()["properties"]}
    assert not taken & {"watch", "try", "trace", "calibrate", "output", "format", "emit"}
    assert not taken & {"metrics", "export", "pid"}


def test_refusals_are_the_sentences_of_the_command_line() -> None:
    assert refused("groups", {"world_size": 10**9}) == (
        "world size 1000000000 is more than serried lays out; at most 16777216 ranks"
    )
    assert refused("groups", {"world_size": 64, "tp": 3}) == (
        "tp=3 does not divide 64 ranks; sizes that do: 1, 2, 4, 8, 16, 32, 64"
    )
    assert refused("plan", {"modle": "llama3-8b"}) == "plan takes no 'modle'; nearest: model, order"
    assert refused("diagnose", {"places": []}) == "diagnose takes no 'places'; nearest: what, lang"
    assert refused("train", {}).startswith("there is no tool 'train'; there are groups, schedule")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"framework": "x" * 300_000},
            "the call holds 300,001 bytes; an assistant may give at most 65,536",
        ),
        ({"set": ["啊" * 30_000]}, "the call holds 90,001 bytes"),
        ({"order": "tp\0dp"}, "order holds a NUL character, which no name and no number has"),
        ({"tp": [1, 2]}, "tp takes one value, not several"),
        ({"tp": {"size": 2}}, "tp takes one value, not several"),
    ],
)
def test_what_no_command_line_holds_is_refused_in_a_sentence(
    given: dict[str, Any], sentence: str
) -> None:
    assert refused("groups", {"world_size": 8, **given}).startswith(sentence)


def test_a_tool_that_is_given_no_name_says_what_there_is() -> None:
    assert "none is named; there are gpipe, 1f1b," in refused("schedule", {})


def test_a_file_that_begins_with_a_dash_is_no_option(tmp_path: Path) -> None:
    assert "--lang=zz" in refused("diagnose", {"what": ["--lang=zz"]})
    assert "-x" in refused("groups", {"framework": "-x", "world_size": 8})


def test_no_tool_asks_another_machine_and_refusals_are_in_the_language_asked_for() -> None:
    given = {"places": ["s3://bucket/run"]}
    assert refused("trace_stats", given) == (
        "places is s3://bucket/run; an assistant reads files of this machine only"
    )
    assert "只能读本机的文件" in refused("trace_stats", given | {"lang": "zh"})


def test_an_answer_that_no_assistant_could_read_is_refused() -> None:
    sentence = refused("groups", {"world_size": 65536, "tp": 8, "all": True})
    assert sentence.startswith("the answer has ") and "ask for less" in sentence


def test_a_call_that_takes_too_long_is_ended() -> None:
    async def ask() -> CallAnswer:
        return await call(root, "search", {**JOB, "world_size": 64}, seconds=0)

    answer = anyio.run(ask)
    assert answer.is_error
    assert answer.text == "search took more than 0 s and was ended; ask for less at once"


def test_serving_assistants_without_their_package_names_the_extra(
    serried: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.lowlevel.server", None)
    monkeypatch.delitem(sys.modules, "serried.views.assistants.server")
    done = serried("mcp")
    assert done.code == 3 and "pip install 'serried[mcp]'" in done.err
