"""The answers of a report as one text, packed as ``static/base/kept.js`` reads them.

length of head | head | body | body | …      little-endian, then gzip, then base64
head: {"absent": sentence, "answers": [[key, status, bytes, places of differences], …]}
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass

from serried.views.report.differences import as_differences


@dataclass(frozen=True)
class Kept:
    """Holds one answer: what a server would send."""

    body: bytes
    status: int = 200


def packed(answers: Mapping[str, Kept], absent: str) -> str:
    """Returns the answers as a text of letters, digits, + / and =.

    ``absent`` is the sentence for a question that is not among them.

    >>> text = packed({"words?": Kept(b'{"ok": "OK"}')}, "It is not kept.")
    >>> gzip.decompress(base64.b64decode(text))[4:].decode()
    '{"absent": "It is not kept.", "answers": [["words?", 200, 12, []]]}{"ok": "OK"}'
    """
    rows, bodies = [], []
    for key, each in answers.items():
        body, places = as_differences(each.body)
        rows.append([key, each.status, len(body), places])
        bodies.append(body)
    head = json.dumps({"absent": absent, "answers": rows}).encode()
    whole = len(head).to_bytes(4, "little") + head + b"".join(bodies)
    return base64.b64encode(gzip.compress(whole, 9, mtime=0)).decode()
