"""Protobuf's wire format, as much of it as a trace needs: varints, and whole columns of them.

A field is a tag (number times 8 plus wire type) and a value. A varint may be padded: leading
groups of seven bits that are zero still parse, so a column of numbers becomes a table of bytes
of one width, and a million messages are written without a loop.

    300, width 3    1010 1100   1000 0010   0000 0000
                    └ low 7 bits, more follow           └ the last

Source: protobuf.dev, Encoding; padding is accepted by the official parsers (tested).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
"""Wire types."""

Bytes = NDArray[np.uint8]


def varint(value: int) -> bytes:
    """Returns ``value`` in as few bytes as hold it; a negative one takes ten.

    >>> varint(300).hex()
    'ac02'
    """
    value &= 2**64 - 1
    groups = []
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def tag(number: int, wire_type: int) -> bytes:
    """Returns what begins field ``number``."""
    return varint(number * 8 + wire_type)


def number_field(number: int, value: int) -> bytes:
    """Returns a field that holds a whole number."""
    return tag(number, VARINT) + varint(value)


def bytes_field(number: int, value: bytes | str) -> bytes:
    """Returns a field that holds a text or another message.

    >>> bytes_field(2, "rank").hex()
    '120472616e6b'
    """
    raw = value.encode() if isinstance(value, str) else value
    return tag(number, LENGTH) + varint(len(raw)) + raw


def padded(values: NDArray[np.int64], width: int) -> Bytes:
    """Returns whole numbers from 0 on as varints of ``width`` bytes, a row each.

    >>> padded(np.array([300]), 3).tobytes().hex()
    'ac8200'
    """
    groups = np.empty((len(values), width), dtype=np.uint8)
    for group in range(width):
        more = 0x80 if group < width - 1 else 0
        groups[:, group] = values >> 7 * group & 0x7F | more
    return groups


def width_of(values: NDArray[np.int64]) -> int:
    """Returns how many bytes the largest of ``values`` needs as a varint.

    >>> width_of(np.array([1, 128])), width_of(np.array([], dtype=int))
    (2, 1)
    """
    return len(varint(int(values.max(initial=0))))


def fixed64(values: NDArray[np.int64]) -> Bytes:
    """Returns numbers as eight bytes, low byte first, a row each."""
    return np.ascontiguousarray(values.astype("<u8")).view(np.uint8).reshape(-1, 8)


def scattered(tables: list[tuple[NDArray[np.int64], Bytes]], count: int) -> memoryview:
    """Returns ``count`` messages in order; each table holds those of one length at its places.

    >>> a, b = np.array([[1, 1]], np.uint8), np.array([[2], [3]], np.uint8)
    >>> scattered([(np.array([1]), a), (np.array([0, 2]), b)], 3).hex()
    '02010103'
    """
    lengths = np.zeros(count, dtype=np.int64)
    for places, rows in tables:
        lengths[places] = rows.shape[1]
    begins = np.cumsum(lengths) - lengths
    out = np.empty(int(lengths.sum()), dtype=np.uint8)
    for places, rows in tables:
        width = rows.shape[1]
        if len(places):
            # Windows over the output that begin at every byte: a row is copied whole.
            shape = (len(out) - width + 1, width)
            windows = np.lib.stride_tricks.as_strided(out, shape, (1, 1))
            windows[begins[places]] = rows
    return out.data


# ----------------------------------------------------------------------- reading


class WireField(NamedTuple):
    """Says where a field's value stands."""

    number: int
    wire_type: int
    begin: int
    end: int


def fields_in(raw: bytes, first: int, last: int) -> Iterator[WireField]:
    """Yields the fields of the message from ``first`` to before ``last``.

    >>> [field.number for field in fields_in(bytes_field(2, "rank") + number_field(3, 300), 0, 9)]
    [2, 3]

    Raises ValueError where it is none, or ends within a field.
    """
    at = first
    while at < last:
        key, begin = varint_at(raw, at, last)
        wire_type = key & 7
        if wire_type == VARINT:
            _, at = varint_at(raw, begin, last)
        elif wire_type == LENGTH:
            length, begin = varint_at(raw, begin, last)
            at = begin + length
        elif wire_type in _FIXED:
            at = begin + _FIXED[wire_type]
        else:
            raise ValueError(wire_type)
        if at > last:
            raise ValueError(at)
        yield WireField(key >> 3, wire_type, begin, at)


_FIXED = {FIXED64: 8, FIXED32: 4}
_LONGEST = 10
"""Bytes of the longest varint."""


def varint_at(raw: bytes, at: int, last: int) -> tuple[int, int]:
    """Returns the whole number that stands at ``at``, and what follows it.

    >>> varint_at(bytes.fromhex("ac8200"), 0, 3)
    (300, 3)

    Raises ValueError where none ends before ``last``.
    """
    value = 0
    for place, byte in enumerate(raw[at : min(last, at + _LONGEST)]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    raise ValueError(at)


def unpadded(table: Bytes) -> NDArray[np.int64]:
    """Returns the whole numbers of varints of one width, a row each.

    >>> unpadded(padded(np.array([300, 5]), 3)).tolist()
    [300, 5]
    """
    groups = table.astype(np.int64) & 0x7F
    return np.asarray((groups << 7 * np.arange(table.shape[1])).sum(axis=1), dtype=np.int64)
