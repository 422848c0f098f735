"""What Perfetto asks of its own format, checked packet by packet; written apart from the writer."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    Trace as Packets,
)
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)

Argument = str | int


@dataclass
class Slice:
    """Is one slice as Perfetto would show it."""

    name: str
    category: str
    track: int
    start: int
    end: int
    arguments: dict[str, Argument]
    leaves: list[int]
    ends_here: list[int]


@dataclass
class Read:
    """Holds a file's slices and tracks, all of them well-formed."""

    slices: list[Slice] = field(default_factory=list)
    tracks: dict[int, TrackDescriptor] = field(default_factory=dict)
    wall_ns: int = 0
    arrows: list[tuple[Slice, Slice]] = field(default_factory=list)

    def path(self, track: int) -> tuple[str, ...]:
        """Names a track and those above it, the top first."""
        descriptor = self.tracks[track]
        above = self.path(descriptor.parent_uuid) if descriptor.parent_uuid else ()
        return (*above, descriptor.name)

    def ordered(self, parent: int) -> list[str]:
        """Names the tracks below ``parent`` in the order in which Perfetto puts them."""
        below = [each for each in self.tracks.values() if each.uuid and each.parent_uuid == parent]
        return [each.name for each in sorted(below, key=lambda each: each.sibling_order_rank)]


def read(raw: bytes) -> Read:
    """Reads a file and checks every rule; raises AssertionError at the first that is broken."""
    packets = Packets()
    packets.ParseFromString(raw)
    found = Read()
    names: dict[str, dict[int, str]] = {}
    open_slices: dict[int, list[Slice]] = defaultdict(list)
    before = 0
    for packet in packets.packet:
        assert packet.trusted_packet_sequence_id == 1
        if packet.HasField("interned_data"):
            assert packet.sequence_flags == TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
            assert not names, "interned twice"
            names = _interned(packet)
        if packet.HasField("clock_snapshot"):
            clocks = {clock.clock_id: clock.timestamp for clock in packet.clock_snapshot.clocks}
            assert clocks[6] == packet.timestamp == 0
            found.wall_ns = clocks[1]
        if packet.HasField("track_descriptor"):
            _take_track(found, packet.track_descriptor)
        if packet.HasField("track_event"):
            assert packet.timestamp >= before, "out of order"
            before = packet.timestamp
            _take_event(found, packet, names, open_slices[packet.track_event.track_uuid])
    assert not any(open_slices.values()), "begun and never ended"
    _check_arrows(found)
    return found


def _interned(packet: TracePacket) -> dict[str, dict[int, str]]:
    data = packet.interned_data
    return {
        "categories": {each.iid: each.name for each in data.event_categories},
        "names": {each.iid: each.name for each in data.event_names},
        "arguments": {each.iid: each.name for each in data.debug_annotation_names},
        "texts": {each.iid: each.str.decode() for each in data.debug_annotation_string_values},
    }


def _take_track(found: Read, track: TrackDescriptor) -> None:
    assert track.uuid not in found.tracks, "described twice"
    assert track.parent_uuid in found.tracks or not track.parent_uuid, "before its parent"
    assert track.child_ordering == TrackDescriptor.EXPLICIT
    if track.uuid:
        assert track.name
        assert track.sibling_merge_behavior == TrackDescriptor.SIBLING_MERGE_BEHAVIOR_NONE
    found.tracks[track.uuid] = track


def _take_event(
    found: Read, packet: TracePacket, names: dict[str, dict[int, str]], stack: list[Slice]
) -> None:
    event = packet.track_event
    assert event.track_uuid in found.tracks, "on a track that nothing describes"
    if event.type == TrackEvent.TYPE_SLICE_END:
        stack.pop().end = packet.timestamp
        return
    assert event.type == TrackEvent.TYPE_SLICE_BEGIN
    assert packet.sequence_flags == TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
    assert not stack or stack[-1].start == packet.timestamp, "overlaps the one before"
    (category,) = event.category_iids
    arguments = {
        names["arguments"][each.name_iid]: (
            names["texts"][each.string_value_iid] if each.string_value_iid else each.int_value
        )
        for each in event.debug_annotations
    }
    begun = Slice(
        names["names"][event.name_iid],
        names["categories"][category],
        event.track_uuid,
        packet.timestamp,
        -1,
        arguments,
        list(event.flow_ids),
        list(event.terminating_flow_ids),
    )
    stack.append(begun)
    found.slices.append(begun)


def _check_arrows(found: Read) -> None:
    leaves = {flow: each for each in found.slices for flow in each.leaves}
    ends = {flow: each for each in found.slices for flow in each.ends_here}
    assert len(leaves) == sum(len(each.leaves) for each in found.slices), "an arrow leaves twice"
    assert set(leaves) == set(ends), "an arrow with one end"
    for flow, source in leaves.items():
        assert source.start <= ends[flow].start, "Perfetto draws no arrow back in time"
        found.arrows.append((source, ends[flow]))
