"""The payload: one message of a JSON header and little-endian columns, read by 20 lines of JS.

    u32   length of the header, padding included
    ...   JSON, UTF-8, padded with spaces so that what follows starts at a multiple of 8
    ...   columns, each padded with zeros to a multiple of 8

The header carries ``"schema": "serried.payload/1"`` and a list ``columns`` of
``{"name", "type", "length", "offset"}``, offsets counted from the end of the header.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

SCHEMA = "serried.payload/1"
ALIGNMENT = 8
_TYPES = {"u8": "|u1", "u16": "<u2", "i32": "<i4", "u32": "<u4", "f64": "<f8"}

Column = NDArray[np.generic]


def pack(header: Mapping[str, Any], columns: Mapping[str, Column]) -> bytes:
    """Returns the message of a header and its columns, in their order.

    >>> message = pack({"kind": "none"}, {"a": np.array([1, 2], dtype=np.int32)})
    >>> len(message) % 8, message[-8:]
    (0, b'\\x01\\x00\\x00\\x00\\x02\\x00\\x00\\x00')
    """
    described, blocks, offset = [], [], 0
    for name, column in columns.items():
        code = _code(column)
        block = _padded(np.ascontiguousarray(column).astype(_TYPES[code]).tobytes(), b"\0")
        described.append({"name": name, "type": code, "length": len(column), "offset": offset})
        blocks.append(block)
        offset += len(block)
    document = {"schema": SCHEMA, **header, "columns": described}
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # The 4 bytes of the length and the text are padded together, so that columns begin at a
    # multiple of 8, as typed arrays in the page need.
    padded = _padded(b"\0\0\0\0" + text.encode(), b" ")[4:]
    return struct.pack("<I", len(padded)) + padded + b"".join(blocks)


def unpack(message: bytes) -> tuple[dict[str, Any], dict[str, Column]]:
    """Returns the header of a message, without the list of its columns, and the columns.

    >>> header, columns = unpack(pack({"kind": "none"}, {"a": np.array([1, 2], dtype=np.int32)}))
    >>> header["kind"], columns["a"].tolist()
    ('none', [1, 2])
    """
    (length,) = struct.unpack_from("<I", message)
    header: dict[str, Any] = json.loads(message[4 : 4 + length])
    columns = {
        each["name"]: np.frombuffer(
            message, _TYPES[each["type"]], each["length"], 4 + length + each["offset"]
        )
        for each in header.pop("columns")
    }
    return header, columns


def _code(column: Column) -> str:
    """Returns the wire type of a column: whole numbers up to 32 bits, else doubles."""
    match column.dtype.kind, column.dtype.itemsize:
        case "u", 1:
            return "u8"
        case "u", 2:
            return "u16"
        case "u", 4:
            return "u32"
        case "i", 4:
            return "i32"
        # Longer whole numbers, such as nanoseconds, go as doubles, exact up to 2**53.
        case _:
            return "f64"


def _padded(block: bytes, filler: bytes) -> bytes:
    return block + filler * (-len(block) % ALIGNMENT)
