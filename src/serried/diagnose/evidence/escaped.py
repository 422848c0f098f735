"""Lines that a program wrote down on one line, with ``\\n`` between them, as they were printed.

    {"log": "step 3\\nValueError: x\\n", "rank": 5}       a logger that writes JSON
    "stderr": "step 3\\nValueError: x\\n",                a document that holds what a job printed
    output=b'step 3\\nValueError: x\\n'                   what Python shows of a text

>>> unescaped(b"output=b'step 3" + b"\\\\nValueError: x" + b"\\\\nstep 4" + b"\\\\n'")
[b"output=b'step 3", b'ValueError: x', b'step 4', b"'"]
>>> unescaped(b'{"log": "step 3' + b'\\\\nKilled' + b'\\\\n", "rank": 5}')
[b'{"log": "step 3", "rank": 5}', b'{"log": "Killed", "rank": 5}']
"""

from __future__ import annotations

import json
import re

from serried.diagnose.evidence.json_line import TEXTS

FEWEST = 2
"""Ends of lines that a line must hold: a program's own text often holds one."""
_END = re.compile(r"(?:\\+r)?\\+n")
_ITEM = re.compile(r"^['\"],? ?b?['\"]")
"""What stands between two lines of a list that Python shows."""
_INDENTED = re.compile(r"\s+(?!\s|\"[\w .\-]{1,60}\": ?\")")
"""A line of a program's text in a traceback, but not one of a document."""
_COLOUR = re.compile(r"\\+(?:x1b|u001b|033)\[[0-9;]*m")
_SIGN = re.compile(r"\\+(?=[\"'/])")
_TAB = re.compile(r"\\+t")


def unescaped(line: bytes) -> list[bytes]:
    """Returns the lines that a line holds: itself alone where it holds no others."""
    if line.count(b"\\n") < FEWEST:
        return [line]
    text = line.decode("utf-8", "replace")
    if held := _of_json(text):
        return [row.encode() for row in held]
    if _INDENTED.match(text):
        return [line]
    parts = [_ITEM.sub("", part) for part in _END.split(text)]
    return [_printed(part).encode() for part in parts]


def _of_json(text: str) -> list[str]:
    """Returns a line of JSON for each line that one carries; none where it carries but one."""
    try:
        fields = json.loads(text) if text.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return []
    if not isinstance(fields, dict):
        return []
    key = next((name for name in TEXTS if isinstance(fields.get(name), str)), None)
    rows = fields[key].rstrip("\n").split("\n") if key else []
    return [json.dumps({**fields, key: row}) for row in rows] if len(rows) > 1 else []


def _printed(part: str) -> str:
    return _SIGN.sub("", _TAB.sub("\t", _COLOUR.sub("", part)))
