"""What serried promises to those who build on it, a line each: names, options, keys of documents.

    python -m tests.promised    adds what is new to the promise, as a version is made

What the file names is taken away only as docs/stable.md says.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import serried
from serried.schemas import json_schema, schema_names
from website.commands import commands

PROMISED = Path(__file__).parent / "goldens" / "promised.txt"


def promised() -> set[str]:
    """Returns what the file names."""
    return set(PROMISED.read_text(encoding="utf-8").splitlines())


def offered() -> set[str]:
    """Returns what there is now."""
    return {*names(), *options(), *keys()}


def names() -> Iterator[str]:
    """Yields the public names, and what they are called with."""
    for name in serried.__all__:
        yield f"serried.{name}"
        taken = inspect.signature(getattr(serried, name)).parameters
        yield from (f"serried.{name}({each})" for each in taken)


def options() -> Iterator[str]:
    """Yields the commands and their options, each under every name that it has."""
    for words, command in commands():
        said = f"serried {' '.join(words)}"
        yield said
        for option in command.params:
            yield from (f"{said} {each}" for each in option.opts if each.startswith("-"))


def keys() -> Iterator[str]:
    """Yields every key of every document with its types; what is not known is null anywhere."""
    for name in schema_names():
        yield name
        yield from (f"{name} {each}" for each in key_types(json_schema(name), ""))


def key_types(schema: dict[str, Any], path: str) -> Iterator[str]:
    for key, value in schema.get("properties", {}).items():
        inner = f"{path}.{key}".lstrip(".")
        kinds = value.get("type", [])
        told = [kinds] if isinstance(kinds, str) else sorted(set(kinds) - {"null"})
        yield " ".join([inner, *told])
        yield from key_types(value, inner)
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(key), dict):
            yield from key_types(schema[key], path + mark)


if __name__ == "__main__":
    before = promised() if PROMISED.is_file() else set()
    PROMISED.write_text("\n".join(sorted(before | offered())) + "\n", encoding="utf-8")
