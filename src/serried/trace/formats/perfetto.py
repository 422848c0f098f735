"""Perfetto's own format of a Trace: a protobuf file of named, ordered tracks with arrows.

    node 0                         tracks hang below one another, each with its place
    └── rank 3 · stage 1           among its siblings; equal names are never merged
        ├── compute   ▇ forward ▇ backward
        ├── receive   ▇ receive forward wait
        ├── send      ▇ send forward ──arrow──> what was computed from it
        └── step      ▇ reduce gradients

A slice is two packets, begin and end, in order of time; of those at one instant, ends come
before begins, and the end of a slice without length last. Names, categories and actions are
interned. Times are nanoseconds from 0, and a clock snapshot says which wall time 0 was.

Source: perfetto v58, protos/perfetto/trace (TracePacket, TrackEvent, TrackDescriptor,
InternedData, ClockSnapshot), and the importer's rules in src/trace_processor. The same trace
gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from serried.action import ActionKind
from serried.errors import listed
from serried.trace.formats.protobuf import (
    FIXED64,
    LENGTH,
    VARINT,
    Bytes,
    bytes_field,
    fixed64,
    number_field,
    padded,
    scattered,
    tag,
    width_of,
)
from serried.trace.model.trace import Trace
from serried.trace.model.tracks import (
    SLICES,
    THREADS,
    Column,
    actions_of,
    arrows,
    lanes_of,
    stages_of,
    threads_of,
)
from serried.trace.store.about import about_document
from serried.whole_file import whole_file

# Field numbers of Trace and TracePacket.
_PACKET = 1
_TIMESTAMP, _SEQUENCE, _EVENT, _FLAGS, _INTERNED, _DESCRIPTOR, _CLOCKS = 8, 10, 11, 13, 12, 60, 6
_BUNDLE = 5
ABOUT = "serried"
"""Under this name all that a trace says but its spans stands among the file's metadata, as JSON."""
# SEQ_INCREMENTAL_STATE_CLEARED and SEQ_NEEDS_INCREMENTAL_STATE.
_CLEARED, _NEEDS = 1, 2
# TYPE_SLICE_BEGIN and TYPE_SLICE_END of a TrackEvent.
_BEGIN, _END = 1, 2
# BUILTIN_CLOCK_BOOTTIME and BUILTIN_CLOCK_REALTIME.
_BOOTTIME, _REALTIME = 6, 1
# Of a TrackDescriptor: ChildTracksOrdering EXPLICIT, and SIBLING_MERGE_BEHAVIOR_NONE.
_EXPLICIT, _NEVER_MERGED = 3, 2
_NUMBERS = ("step", "stage", "microbatch", "peer", "bytes", "group_number")
_COLUMNS = {"bytes": "size_bytes", "group_number": "group"}
"""Arguments that columns of spans have other names for."""
_ARGUMENTS = ("action", *_NUMBERS, "group")
_BITS = {"step": 5, "stage": 0, "microbatch": 1, "peer": 2, "bytes": 3, "group_number": 4}
"""Which bit of a shape says that a slice has an argument, in the order in which they stand."""
_EVENTS_A_CHUNK = 400_000


def write_perfetto(trace: Trace, path: Path) -> None:
    """Writes ``trace`` to ``path``, whole or not at all.

    Raises InputError when the file cannot be written.
    """
    with whole_file(path) as file:
        file.writelines(_packets(trace))


def _packets(trace: Trace) -> Iterator[bytes | memoryview]:
    yield _clock_snapshot(trace)
    yield _about(trace)
    lanes = lanes_of(trace.spans)
    uuids, descriptors = _tracks(trace, lanes)
    yield from descriptors
    actions, texts = actions_of(trace.spans)
    yield _interned(trace, texts)
    events = _Events(trace, uuids, actions, len(texts), _flows(trace))
    order = _in_time(trace)
    for first in range(0, len(order), _EVENTS_A_CHUNK):
        yield events.encoded(order[first : first + _EVENTS_A_CHUNK])


# ----------------------------------------------------------------------- what comes first


def _packet(*fields: bytes, flags: int = 0) -> bytes:
    """Returns a packet of the one sequence that all of the file is."""
    flagged = number_field(_FLAGS, flags) if flags else b""
    return bytes_field(_PACKET, b"".join(fields) + number_field(_SEQUENCE, 1) + flagged)


def _clock_snapshot(trace: Trace) -> bytes:
    """Says that 0 of the trace's clock was ``base_ns`` of the wall's."""
    clocks = b"".join(
        bytes_field(1, number_field(1, clock) + number_field(2, at_ns))
        for clock, at_ns in ((_BOOTTIME, 0), (_REALTIME, trace.base_ns))
    )
    primary = number_field(2, _BOOTTIME)
    return _packet(number_field(_TIMESTAMP, 0), bytes_field(_CLOCKS, clocks + primary))


def _about(trace: Trace) -> bytes:
    """Says of the run what no slice holds, so that the file can be read back."""
    # Of a ChromeEventBundle: metadata, of whose parts 1 is the name and 2 the text.
    told = bytes_field(1, ABOUT) + bytes_field(2, json.dumps(about_document(trace)))
    return _packet(bytes_field(_BUNDLE, bytes_field(2, told)))


def _tracks(trace: Trace, lanes: Column) -> tuple[Column, list[bytes]]:
    """Returns the uuid of each span's track, and the packets that name and order the tracks."""
    numbers = count(1)
    emulated = " (emulated)" if trace.is_emulated else ""
    # The order of the outermost tracks is asked for on their root, which has uuid 0.
    packets = [_packet(bytes_field(_DESCRIPTOR, number_field(1, 0) + number_field(11, _EXPLICIT)))]
    stages = stages_of(trace)
    nodes: dict[int, int] = {}
    ranks: dict[int, int] = {}
    for rank in trace.ranks:
        node = trace.placement.node(rank)
        if node not in nodes:
            nodes[node] = next(numbers)
            packets.append(_descriptor(nodes[node], 0, _node_name(trace, node, rank), node))
        ranks[rank] = next(numbers)
        stage = f" · stage {listed(stages[rank])}" if rank in stages else ""
        packets.append(_descriptor(ranks[rank], nodes[node], f"rank {rank}{stage}", rank))
    spans, threads = trace.spans, threads_of(trace.spans)
    # One number for each rank, lane and thread, which together are a track.
    place = (spans.rank.astype(np.int64) * (1 + int(lanes.max(initial=0))) + lanes) * len(THREADS)
    places, first, of = np.unique(place + threads, return_index=True, return_inverse=True)
    uuids = np.zeros(len(places), dtype=np.int64)
    for at, row in enumerate(first.tolist()):
        thread, lane = THREADS[threads[row]], int(lanes[row])
        uuids[at] = next(numbers)
        name = f"{thread}{emulated if thread == 'compute' else ''}{f' {lane + 1}' if lane else ''}"
        within = lane * len(THREADS) + int(threads[row])
        parent = ranks[int(spans.rank[row])]
        packets.append(_descriptor(int(uuids[at]), parent, name, within))
    return uuids[of], packets


def _node_name(trace: Trace, node: int, rank: int) -> str:
    host = next((host.name for host in trace.hosts if rank in host.ranks and host.name), "")
    return f"node {node} · {host}" if host else f"node {node}"


def _descriptor(uuid: int, parent: int, name: str, order: int) -> bytes:
    # Of a TrackDescriptor: uuid, name, parent_uuid, child_ordering, sibling_order_rank and
    # sibling_merge_behavior.
    fields = (
        number_field(1, uuid),
        bytes_field(2, name),
        number_field(5, parent) if parent else b"",
        number_field(11, _EXPLICIT),
        number_field(12, order),
        number_field(15, _NEVER_MERGED),
    )
    return _packet(bytes_field(_DESCRIPTOR, b"".join(fields)))


def _interned(trace: Trace, texts: list[str]) -> bytes:
    """Names by number: categories, slices, arguments, and the actions' texts."""

    def named(field: int, names: list[str]) -> bytes:
        return b"".join(
            bytes_field(field, number_field(1, iid) + bytes_field(2, name))
            for iid, name in enumerate(names, 1)
        )

    compute = "emulated compute" if trace.is_emulated else "compute"
    categories = [compute if thread == "compute" else thread for thread in THREADS]
    names = [SLICES[kind][0] if kind in SLICES else kind.name.lower() for kind in ActionKind]
    # Users' names follow those of the kinds: `_Events._names` counts on it.
    names += trace.names
    # Of InternedData: event_categories, event_names, debug_annotation_names, and
    # debug_annotation_string_values.
    # Groups' texts follow those of the actions: `_Events._begins` counts on it.
    texts = [*texts, *map(str, trace.groups)]
    data = named(1, categories) + named(2, names) + named(3, list(_ARGUMENTS)) + named(29, texts)
    return _packet(bytes_field(_INTERNED, data), flags=_CLEARED)


def _flows(trace: Trace) -> tuple[Column, Column]:
    """Returns for each span the arrow that leaves it and the one that ends at it; 0 is none."""
    sends, computes = arrows(trace.spans)
    leaves, ends = np.zeros((2, len(trace.spans)), dtype=np.int64)
    leaves[sends] = np.arange(1, len(sends) + 1)
    ends[computes] = np.arange(1, len(sends) + 1)
    return leaves, ends


# ----------------------------------------------------------------------- events


def _in_time(trace: Trace) -> Column:
    """Returns events in order of time; span ``n`` begins at event 2n and ends at 2n + 1."""
    start, end = trace.spans.start_ns, trace.spans.end_ns
    keys = np.empty(2 * len(start), dtype=np.int64)
    # At one moment what ended comes first, then what begins, last the ends of spans without
    # length: each track stays well nested.
    keys[0::2] = 4 * start + 1
    keys[1::2] = 4 * end + np.where(end > start, 0, 2)
    return np.argsort(keys, kind="stable")


@dataclass(frozen=True, eq=False)
class _Events:
    """Turns events into bytes: those with the same fields are one table with rows of one length."""

    trace: Trace
    uuids: Column
    actions: Column
    num_actions: int
    flows: tuple[Column, Column]

    @cached_property
    def _widths(self) -> dict[str, int]:
        """How many bytes each column takes, the same in every packet."""
        spans = self.trace.spans
        columns = {name: self._numbers(name) for name in _NUMBERS}
        columns |= {"uuid": self.uuids, "action": self.actions + 1, "name": self._names + 1}
        columns |= {"end_ns": spans.end_ns, "group": self._group_texts}
        return {name: width_of(column) for name, column in columns.items()}

    def _numbers(self, name: str) -> Column:
        """Returns the column of spans that an argument shows."""
        column: Column = getattr(self.trace.spans, _COLUMNS.get(name, name))
        return column

    @cached_property
    def _group_texts(self) -> Column:
        """The number of the text of each span's group, behind those of the actions."""
        return 1 + self.num_actions + self.trace.spans.group.astype(np.int64)

    @cached_property
    def _names(self) -> Column:
        """The place of each span's name: its kind's, or after those the one its user gave."""
        spans = self.trace.spans
        of_kind = np.searchsorted(list(ActionKind), spans.kind)
        is_named = (spans.kind == ActionKind.SPAN) & (spans.peer >= 0)
        return np.where(is_named, len(ActionKind) + spans.peer.astype(np.int64), of_kind)

    def encoded(self, events: Column) -> memoryview:
        """Returns the packets of ``events``, in their order."""
        span, is_end = events >> 1, events % 2 == 1
        spans = self.trace.spans
        # Which optional fields a begin has, one bit each: rows of one shape are of one length.
        shape = (
            (spans.stage[span] >= 0)
            + 2 * (spans.microbatch[span] >= 0)
            + 4 * ((spans.peer[span] >= 0) & (spans.kind[span] != ActionKind.SPAN))
            + 8 * (spans.size_bytes[span] >= 0)
            + 16 * (spans.group[span] >= 0)
            + 32 * (spans.step[span] >= 0)
            + 64 * (self.flows[0][span] > 0)
            + 128 * (self.flows[1][span] > 0)
        )
        shape = np.where(is_end, -1, shape)
        tables = []
        for each in np.unique(shape).tolist():
            places = np.flatnonzero(shape == each)
            rows = self._ends(span[places]) if each < 0 else self._begins(span[places], each)
            tables.append((places, rows))
        return scattered(tables, len(events))

    def _begins(self, span: Column, shape: int) -> Bytes:
        spans = self.trace.spans
        thread = threads_of(spans.where(span))
        # Of a TrackEvent: category_iids, name_iid, type and track_uuid; then debug_annotations,
        # whose value is a string_value_iid (17) or an int_value (4); last flow_ids (47) and
        # terminating_flow_ids (48).
        event = [
            *_number(3, thread + 1, 1),
            *_number(10, self._names[span] + 1, self._widths["name"]),
            number_field(9, _BEGIN),
            *_number(11, self.uuids[span], self._widths["uuid"]),
            *_argument(1, 17, self.actions[span] + 1, self._widths["action"]),
        ]
        # The bits are those of `encoded`, which gathers the rows of one shape.
        for number, bit in _BITS.items():
            if shape & 1 << bit:
                column = self._numbers(number)[span]
                event += _argument(_ARGUMENTS.index(number) + 1, 4, column, self._widths[number])
        if shape & 1 << _BITS["group_number"]:
            event += _argument(len(_ARGUMENTS), 17, self._group_texts[span], self._widths["group"])
        for bit, field, column in ((6, 47, self.flows[0]), (7, 48, self.flows[1])):
            event += [tag(field, FIXED64), fixed64(column[span])] if shape & 1 << bit else []
        needs = number_field(_FLAGS, _NEEDS)
        return _rows(spans.start_ns[span], event, needs, self._widths["end_ns"])

    def _ends(self, span: Column) -> Bytes:
        event = [number_field(9, _END), *_number(11, self.uuids[span], self._widths["uuid"])]
        return _rows(self.trace.spans.end_ns[span], event, b"", self._widths["end_ns"])


Part = bytes | Bytes
"""The same bytes in every row, or a row of them for each event."""


def _number(field: int, values: NDArray[np.int64], width: int) -> list[Part]:
    return [tag(field, VARINT), padded(values, width)]


def _argument(name_iid: int, field: int, values: NDArray[np.int64], width: int) -> list[Part]:
    """Returns a debug annotation: its name by number, its value in ``field``."""
    head = number_field(1, name_iid) + tag(field, VARINT)
    return [tag(4, LENGTH) + bytes([len(head) + width]) + head, padded(values, width)]


def _rows(at_ns: NDArray[np.int64], event: list[Part], flags: bytes, width: int) -> Bytes:
    """Returns a packet for each time, all of one length."""
    time: list[Part] = [tag(_TIMESTAMP, VARINT), padded(at_ns, width)]
    length = padded(np.array([_length(event)]), 2).tobytes()
    body = [*time, number_field(_SEQUENCE, 1) + flags, tag(_EVENT, LENGTH) + length, *event]
    whole = padded(np.array([_length(body)]), 2).tobytes()
    parts = [tag(_PACKET, LENGTH) + whole, *body]
    rows = np.empty((len(at_ns), _length(parts)), dtype=np.uint8)
    at = 0
    for part in parts:
        table = np.frombuffer(part, dtype=np.uint8) if isinstance(part, bytes) else part
        rows[:, at : at + table.shape[-1]] = table
        at += table.shape[-1]
    return rows


def _length(parts: list[Part]) -> int:
    return sum(len(part) if isinstance(part, bytes) else part.shape[1] for part in parts)
