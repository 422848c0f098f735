"""The beginning of a JSON document: the keys of its outermost object, without reading the rest.

A document may be of gigabytes, and may break off; what stands first tells what it is.

>>> outer_keys('{"schema": "serried.check/1", "links": [{"from": 0}, {"fr')
{'schema': 'serried.check/1', 'links': None}
>>> outer_keys('[{"name": "F0", "ph": "B", "args": {}}, {"name": "F1"')
{'name': 'F0', 'ph': 'B', 'args': None}
"""

from __future__ import annotations

import json
import re

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_OPEN, _CLOSE = "{[", "}]"


def outer_keys(text: str) -> dict[str, str | None]:
    """Returns the keys of the outermost object, or of the first in a list, as far as they stand.

    Each has its value where that is a text, else None. No keys where it is no JSON.
    """
    found: dict[str, str | None] = {}
    depth, key, is_value = 0, "", False
    outer = 1
    for token in (match[0] for match in _TOKEN.finditer(text)):
        if not depth and token == "[" and not found:
            outer = 2
        if not depth and token not in _OPEN:
            return {}
        if token in _OPEN:
            depth += 1
        elif token in _CLOSE:
            depth -= 1
            if depth < outer:
                return found
        elif depth == outer and token == ":":
            is_value = True
        elif depth == outer and token == ",":
            is_value = False
        elif depth == outer and token[0] == '"':
            word = _word(token)
            if is_value and found.get(key, "") is None:
                found[key] = word
            elif not is_value:
                key = word
                found.setdefault(key, None)
    return found


def _word(token: str) -> str:
    try:
        return str(json.loads(token))
    except ValueError:
        return token.strip('"')
