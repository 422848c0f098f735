"""Reads a payload as the page does, so that tests can see what it was sent."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

TYPES = {"u8": "|u1", "u16": "<u2", "i32": "<i4", "u32": "<u4", "f64": "<f8"}


@dataclass(frozen=True)
class Message:
    """A payload's header and columns."""

    header: dict[str, Any]
    columns: dict[str, NDArray[Any]]

    def lists(self, number: int) -> list[list[int]]:
        """Returns the groups of the ``number``-th kind in view."""
        members, bounds = self.columns[f"members:{number}"], self.columns[f"bounds:{number}"]
        return [members[a:b].tolist() for a, b in pairwise(bounds)]


def read(message: bytes) -> Message:
    """Unpacks ``message``, which must be aligned and used to its end."""
    (length,) = struct.unpack_from("<I", message)
    header = json.loads(message[4 : 4 + length])
    start = 4 + length
    assert start % 8 == 0
    columns = {}
    end = start
    for each in header["columns"]:
        assert each["offset"] % 8 == 0
        column = np.frombuffer(
            message, TYPES[each["type"]], each["length"], offset=start + each["offset"]
        )
        columns[each["name"]] = column
        end = start + each["offset"] + -(-column.nbytes // 8) * 8
    assert end == len(message)
    return Message(header, columns)
