"""The JSON schemas of the documents that serried prints, one file for each name and version.

groups-1.json    serried.groups/1    what `serried groups --format json` prints
plan-1.json      serried.plan/1      what `serried plan --format json` prints

A key that is added keeps the version; one that goes, or changes what it means, makes the next.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from serried.errors import InputError, listed

__all__ = ["json_schema", "schema_names"]

_FOLDER = Path(__file__).parent


def schema_names() -> tuple[str, ...]:
    """Returns the names of all documents that have a schema, in the order of the alphabet.

    >>> schema_names()[:2]
    ('serried.advice/1', 'serried.busbw/1')
    """
    files = sorted(path.stem for path in _FOLDER.glob("*.json"))
    return tuple("serried.{}/{}".format(*stem.rsplit("-", 1)) for stem in files)


def json_schema(name: str) -> dict[str, Any]:
    """Returns the JSON schema (draft 2020-12) of a document, by what stands under its ``schema``.

    Raises InputError for a name that none has.

    >>> json_schema("serried.rank/1")["properties"]["world_size"]
    {'type': 'integer'}
    """
    names = schema_names()
    if name not in names:
        raise InputError(
            "there is no schema {name}; those that there are: {names}",
            name=name[:60],
            names=listed(names, limit=len(names)),
        )
    file = _FOLDER / f"{name.removeprefix('serried.').replace('/', '-')}.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found
