"""Writes one trace as Perfetto protobuf, and the same slices with Perfetto's own builder.

    python benchmarks/perfetto_file.py [slices]

Both write name, category, action, step, stage and microbatch of every slice. CPU seconds of
this process; the peer writes a tenth of the slices and is scaled up.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

from serried.action import ActionKind, Spans
from serried.trace.formats.foreign import foreign_trace
from serried.trace.formats.perfetto import write_perfetto
from serried.trace.model.laid_out import laid_out
from serried.trace.model.trace import Trace
from serried.trace.model.tracks import SLICES

RANKS, MICROBATCHES = 64, 32
KINDS = (ActionKind.RECV_F, ActionKind.F, ActionKind.SEND_F, ActionKind.B)


def trace_of(slices: int) -> Trace:
    """Returns a trace of about so many slices on 64 ranks."""
    each = slices // RANKS
    place = np.arange(each)
    rank = np.repeat(np.arange(RANKS, dtype=np.int32), each)
    start = np.tile(place * 1000, RANKS) + rank.astype(np.int64)
    spans = Spans(
        rank=rank,
        stage=(rank % 8).astype(np.int32),
        kind=np.tile(np.array(KINDS, dtype=np.int32)[place % len(KINDS)], RANKS),
        microbatch=np.tile((place // len(KINDS) % MICROBATCHES).astype(np.int32), RANKS),
        step=np.tile((place // (len(KINDS) * MICROBATCHES)).astype(np.int32), RANKS),
        peer=np.full(len(rank), -1, dtype=np.int32),
        start_ns=start,
        end_ns=start + 900,
    )
    layout = laid_out("megatron", RANKS, {"pp": 8})
    return foreign_trace("bench", layout, {"a": range(RANKS)}, spans)


def with_the_builder(trace: Trace, path: Path, limit: int) -> int:
    """Writes the first ``limit`` slices with Perfetto's builder, and returns how many."""
    spans = trace.spans
    columns = (spans.rank, spans.kind, spans.stage, spans.microbatch, spans.step)
    columns = tuple(column[:limit].tolist() for column in columns)
    times = spans.start_ns[:limit].tolist(), spans.end_ns[:limit].tolist()
    with path.open("wb") as file:
        builder = StreamingTraceProtoBuilder(file)
        for rank, kind, stage, microbatch, step, start, end in zip(*columns, *times, strict=True):
            name, thread = SLICES[ActionKind(kind)]
            for at, type_ in (
                (start, TrackEvent.TYPE_SLICE_BEGIN),
                (end, TrackEvent.TYPE_SLICE_END),
            ):
                packet = builder.create_packet()
                packet.timestamp, packet.trusted_packet_sequence_id = at, 1
                packet.track_event.type, packet.track_event.track_uuid = type_, rank + 1
                if type_ == TrackEvent.TYPE_SLICE_BEGIN:
                    packet.track_event.name = name
                    packet.track_event.categories.append(thread)
                    for key, value in (
                        ("step", step),
                        ("stage", stage),
                        ("microbatch", microbatch),
                    ):
                        argument = packet.track_event.debug_annotations.add()
                        argument.name, argument.int_value = key, value
                builder.write_packet(packet)
    return min(limit, len(spans))


def main() -> None:
    slices = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    trace = trace_of(slices)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.pftrace"
        costs = []
        for _ in range(3):
            begun = time.process_time()
            write_perfetto(trace, path)
            costs.append(time.process_time() - begun)
        ours_s, size = min(costs) / len(trace.spans), path.stat().st_size
        begun = time.process_time()
        count = with_the_builder(trace, path, len(trace.spans) // 10)
        theirs_s = (time.process_time() - begun) / count
        their_size = path.stat().st_size
    print(f"{len(trace.spans):,} slices of {RANKS} ranks, arguments and all; CPU of one core")
    print(
        f"serried            {1 / ours_s:>12,.0f} slices/s   {size / len(trace.spans):5.0f} B/slice"
    )
    print(f"perfetto's builder {1 / theirs_s:>12,.0f} slices/s   {their_size / count:5.0f} B/slice")
    print(f"ratio              {theirs_s / ours_s:12.1f} x")


if __name__ == "__main__":
    main()
