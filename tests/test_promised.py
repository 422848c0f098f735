"""Nothing that was promised goes but as docs/stable.md says: named in the changelog as removed."""

from __future__ import annotations

import re
from pathlib import Path

from serried.schemas import json_schema
from tests.promised import key_types, offered, promised

CHANGES = (Path(__file__).parent.parent / "CHANGELOG.md").read_text(encoding="utf-8")


def removed(changes: str) -> set[str]:
    """Returns what stands in backquotes under the headings *Removed* of a changelog."""
    sections = re.findall(r"^Removed\n((?:[- ].*\n)+)", changes, re.MULTILINE)
    return {each for section in sections for each in re.findall(r"`([^`]+)`", section)}


def test_what_was_promised_is_there_or_is_named_as_removed() -> None:
    gone = promised() - offered()
    told = "\n".join(sorted(gone - removed(CHANGES)))
    assert not told, f"these were promised; docs/stable.md says how they may go:\n{told}"


def test_the_promise_names_functions_options_and_keys() -> None:
    assert {
        "serried.layout(launch)",
        "serried.Costs(forward)",
        "serried groups --world-size",
        "serried.groups/1 sharding.weights[].bytes.held.parameters integer",
    } <= promised()


def test_a_key_of_another_type_is_another_promise() -> None:
    schema = json_schema("serried.rank/1")
    schema["properties"]["world_size"] = {"type": ["string", "null"]}
    assert {*key_types(schema, "")} ^ {*key_types(json_schema("serried.rank/1"), "")} == {
        "world_size integer",
        "world_size string",
    }


def test_removed_is_what_stands_under_that_heading() -> None:
    changes = "## A\n\nRemoved\n- `serried x --y`, for\n  `--z`.\n\nElsewhere\n- `serried a`.\n"
    assert removed(changes) == {"serried x --y", "--z"}
