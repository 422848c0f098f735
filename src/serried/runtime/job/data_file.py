"""What kind of data a file holds, which its name's end says, and where its tokens are kept."""

from __future__ import annotations

import os
from pathlib import Path

TABLES = {".csv": ",", ".tsv": "\t"}
"""What parts the columns of a table, by how its name ends."""
LINES = (".jsonl", ".ndjson")
"""How the name of a file ends that holds a JSON object a line."""


def has_documents(data: Path | None) -> bool:
    """Tells whether a data file holds documents under a key, rather than being text itself.

    >>> has_documents(Path("notes.jsonl")), has_documents(Path("notes.txt")), has_documents(None)
    (True, False, False)
    """
    return data is not None and data.suffix.lower() in (*TABLES, *LINES)


def cache_folder() -> Path:
    """Returns the folder that tokens are kept in, which may be removed at any time."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "serried" / "tokens"
