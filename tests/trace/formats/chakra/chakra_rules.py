"""Chakra traces read by protobuf's own parser, and run as a simulator runs them.

The messages are declared here by the numbers of mlcommons/chakra 1.0.0's et_def.proto, apart from
the writer.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from google.protobuf.internal.decoder import _DecodeVarint32

COMP, SEND, RECV, COLL = 4, 5, 6, 7
_FIELDS = {
    "Attribute": (
        ("name", 1, Field.TYPE_STRING),
        ("int32_val", 7, Field.TYPE_INT32),
        ("int64_val", 9, Field.TYPE_INT64),
        ("bool_val", 27, Field.TYPE_BOOL),
        ("string_val", 29, Field.TYPE_STRING),
    ),
    "Metadata": (("version", 1, Field.TYPE_STRING), ("attr", 2, "Attribute")),
    "Node": (
        ("id", 1, Field.TYPE_UINT64),
        ("name", 2, Field.TYPE_STRING),
        ("type", 3, Field.TYPE_INT32),
        ("data_deps", 5, [Field.TYPE_UINT64]),
        ("start_time_micros", 6, Field.TYPE_UINT64),
        ("duration_micros", 7, Field.TYPE_UINT64),
        ("attr", 10, "Attribute"),
    ),
}


def _messages() -> tuple[Any, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="chakra.proto", package="t", syntax="proto3")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field_name, number, kind in fields:
            added = message.field.add(name=field_name, number=number, label=Field.LABEL_OPTIONAL)
            if isinstance(kind, str):
                added.type, added.type_name = Field.TYPE_MESSAGE, f".t.{kind}"
                added.label = Field.LABEL_REPEATED
            elif isinstance(kind, list):
                added.type, added.label = kind[0], Field.LABEL_REPEATED
            else:
                added.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = (pool.FindMessageTypeByName(f"t.{name}") for name in ("Metadata", "Node"))
    metadata, node = (message_factory.GetMessageClass(each) for each in found)
    return metadata, node


METADATA, NODE = _messages()


@dataclass(frozen=True)
class Node:
    """Is one node, as a simulator sees it."""

    id: int
    name: str
    type: int
    deps: tuple[int, ...]
    micros: int
    attributes: dict[str, int | str]


@dataclass(frozen=True)
class Chakra:
    """Is a folder of traces."""

    ranks: dict[int, list[Node]]
    groups: dict[str, list[int]]
    told: dict[int, dict[str, Any]]

    def finished(self) -> dict[int, int]:
        """Runs all ranks on a network that takes no time; returns each one's last microsecond.

        Fails where ranks wait for one another for ever.
        """
        ends: dict[tuple[int, int], int] = {}
        waiting = {(rank, node.id): node for rank, nodes in self.ranks.items() for node in nodes}
        turns: dict[tuple[int, str], int] = defaultdict(int)
        met: dict[tuple[object, ...], dict[tuple[int, int], int]] = defaultdict(dict)
        while waiting:
            ready = [
                (key, node)
                for key, node in waiting.items()
                if all((key[0], dep) in ends for dep in node.deps)
            ]
            assert ready, f"{len(waiting)} nodes wait for one another"
            moved = False
            for key, node in ready:
                begun = max((ends[key[0], dep] for dep in node.deps), default=0)
                if node.type == COMP:
                    ends[key] = begun + node.micros
                elif not any(key in each for each in met.values()):
                    met[self._meeting(key[0], node, turns)][key] = begun
                    moved = True
            for name, there in met.items():
                if there and len(there) == (2 if name[0] == "p2p" else self._size(name)):
                    for key in there:
                        ends[key] = max(there.values())
                    there.clear()
            done = [key for key in waiting if key in ends]
            assert done or moved, "ranks are in different collectives"
            for key in done:
                del waiting[key]
        last: dict[int, int] = defaultdict(int)
        for (rank, _), end in ends.items():
            last[rank] = max(last[rank], end)
        return dict(last)

    def _size(self, name: tuple[object, ...]) -> int:
        return len(self.groups[str(name[1])])

    @staticmethod
    def _meeting(rank: int, node: Node, turns: dict[tuple[int, str], int]) -> tuple[object, ...]:
        told = node.attributes
        if node.type == COLL:
            group = str(told["pg_name"])
            turns[rank, group] += 1
            return ("coll", group, turns[rank, group], told["comm_type"], told["comm_size"])
        ends = (told["comm_src"], told["comm_dst"], told["comm_tag"], told["comm_size"])
        assert rank == ends[0 if node.type == SEND else 1]
        return ("p2p", *ends)


def read(folder: Path) -> Chakra:
    """Reads what was written into ``folder``."""
    ranks, told = {}, {}
    for file in folder.glob("rank.*.et"):
        messages = list(_messages_in(file.read_bytes()))
        metadata = METADATA.FromString(messages[0])
        assert metadata.version == "1.0.0"
        rank = int(file.name.split(".")[1])
        told[rank] = _attributes(metadata)
        ranks[rank] = [_node(NODE.FromString(each)) for each in messages[1:]]
    groups = json.loads((folder / "groups.json").read_text(encoding="utf-8"))
    return Chakra(ranks, groups, told)


def _messages_in(raw: bytes) -> Any:
    at = 0
    while at < len(raw):
        size, at = _DecodeVarint32(raw, at)
        yield raw[at : at + size]
        at += size


def _node(read: Any) -> Node:
    attributes = _attributes(read)
    assert attributes.pop("is_cpu_op") is False
    deps = tuple(read.data_deps)
    assert all(0 < dep < read.id for dep in deps)
    return Node(read.id, read.name, read.type, deps, read.duration_micros, attributes)


def _attributes(read: Any) -> dict[str, Any]:
    return {
        each.name: next((got for field, got in each.ListFields() if field.name != "name"), False)
        for each in read.attr
    }
