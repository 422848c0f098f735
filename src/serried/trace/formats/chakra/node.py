"""A node of a Chakra execution trace, and the bytes that say it.

    rank.3.et   | length | metadata | length | node 1 | length | node 2 | …

    id 7  COMM_COLL_NODE  after 6    comm_type 0 (all-reduce)  comm_size 1048576  pg_name 2

Source: mlcommons/chakra 1.0.0, schema/protobuf/et_def.proto (numbers of messages, fields and
enumerations), src/feeder/et_feeder_node.cpp (which attribute has which type).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from serried.action import ActionKind
from serried.trace.formats.protobuf import bytes_field, number_field, varint
from serried.version import __version__

SCHEMA = "1.0.0"

# Field numbers of GlobalMetadata, Node and AttributeProto.
_VERSION, _METADATA_ATTRIBUTE = 1, 2
_ID, _NAME, _TYPE, _DATA_DEPS, _START, _DURATION, _ATTRIBUTE = 1, 2, 3, 5, 6, 7, 10
_ATTRIBUTE_NAME, _INT32, _INT64, _BOOL, _STRING = 1, 7, 9, 27, 29


class NodeType(IntEnum):
    """Says what a node does, by the numbers of Chakra's NodeType."""

    COMP_NODE = 4
    COMM_SEND_NODE = 5
    COMM_RECV_NODE = 6
    COMM_COLL_NODE = 7


COLLECTIVES = {
    ActionKind.ALL_REDUCE: 0,
    ActionKind.ALL_GATHER: 2,
    ActionKind.BROADCAST: 5,
    ActionKind.ALL_TO_ALL: 6,
    ActionKind.REDUCE_SCATTER: 7,
}
"""Kinds of collectives by the numbers of Chakra's CollectiveCommType."""

_INT32_ATTRIBUTES = frozenset({"comm_src", "comm_dst", "comm_tag"})


@dataclass(frozen=True)
class ChakraNode:
    """Holds one node of a rank: what it does, when it did so, and after which others it may."""

    number: int
    """From 1."""
    type: NodeType
    what: str
    after: tuple[int, ...]
    start_ns: int
    end_ns: int
    attributes: Mapping[str, int | str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        """Returns the node's bytes, behind their length.

        >>> ChakraNode(1, NodeType.COMP_NODE, "0F0", (), 0, 2000).encoded()[:4].hex(" ")
        '27 08 01 12'
        """
        # Both ends are rounded, so that the microseconds of many nodes do not add up wrongly.
        start, end = round(self.start_ns / 1000), round(self.end_ns / 1000)
        attributes: dict[str, int | str | bool] = {"is_cpu_op": False, **self.attributes}
        return framed(
            number_field(_ID, self.number)
            + bytes_field(_NAME, f"{self.type.name}_{self.what}")
            + number_field(_TYPE, self.type)
            + (_packed(_DATA_DEPS, self.after) if self.after else b"")
            + number_field(_START, start)
            + number_field(_DURATION, end - start)
            + b"".join(bytes_field(_ATTRIBUTE, _attribute(*each)) for each in attributes.items())
        )


def metadata(run: str, rank: int) -> bytes:
    """Returns what stands first in the file of a rank, behind its length."""
    told: dict[str, int | str] = {"written_by": f"serried {__version__}", "run": run, "rank": rank}
    attributes = (bytes_field(_METADATA_ATTRIBUTE, _attribute(*each)) for each in told.items())
    return framed(bytes_field(_VERSION, SCHEMA) + b"".join(attributes))


def framed(message: bytes) -> bytes:
    """Returns a message behind its length."""
    return varint(len(message)) + message


def _attribute(name: str, value: int | str | bool) -> bytes:
    if isinstance(value, bool):
        told = number_field(_BOOL, value)
    elif isinstance(value, str):
        told = bytes_field(_STRING, value)
    else:
        told = number_field(_INT32 if name in _INT32_ATTRIBUTES else _INT64, value)
    return bytes_field(_ATTRIBUTE_NAME, name) + told


def _packed(number: int, values: tuple[int, ...]) -> bytes:
    return bytes_field(number, b"".join(map(varint, values)))
