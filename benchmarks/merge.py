"""Merges a run's recordings into a Parquet store, and the same spans as JSON is merged.

    python benchmarks/merge.py [spans]

Ten million spans of 64 ranks on 8 hosts, whose clocks are seconds apart, written by the real
recorder; `serried trace merge` runs as a process of its own, whose wall time and peak memory
are printed. The peer is what scripts do with a Chrome JSON of each rank: read all, move the
times by one offset a host, write one; without alignment. It is given a fortieth of the spans
and scaled up.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from serried.action import ActionKind
from serried.trace.model.record import RecordHeader, TracedJob, read_rank_record
from serried.trace.model.record_writer import RecordWriter

HOSTS, RANKS_A_HOST, MICROBATCHES = 8, 8, 32
RANKS = HOSTS * RANKS_A_HOST
FORWARD_NS, BACKWARD_NS, DELAY_NS = 1_000_000, 2_000_000, 40_000
WALL_NS = 1_700_000_000_000_000_000
PEERS_SHARE = 40


def job() -> TracedJob:
    """Returns 8 stages, one on every host, and 8 copies of the model."""
    sizes = {"tp": 1, "cp": 1, "pp": HOSTS, "dp": RANKS_A_HOST, "ep": 1, "edp": RANKS_A_HOST}
    return TracedJob("megatron", RANKS, sizes, "tp-cp-ep-dp-pp", "gpipe", MICROBATCHES)


def write_rank(folder: Path, rank: int, spans: int) -> None:
    """Records about so many spans of ``rank``: forwards, then backwards, and their messages."""
    random = np.random.default_rng(rank)
    host = rank // RANKS_A_HOST
    clock = np.random.default_rng(host)
    ahead, drift = int(clock.integers(10**15)), clock.uniform(-2e-5, 2e-5)
    wall = WALL_NS + int(clock.normal(0, 3e6))
    header = RecordHeader("bench", rank, job(), f"host-{host}", f"boot-{host}", ahead, wall)
    recorder = RecordWriter(folder, header)

    def add(kind: ActionKind, start: int, end: int, microbatch: int, peer: int = -1) -> None:
        first, last = (ahead + int(at + drift * at) for at in (start, end))
        recorder.add(kind, first, last, host, microbatch, peer, step=step)

    step_ns = (MICROBATCHES + HOSTS) * (FORWARD_NS + BACKWARD_NS + 4 * DELAY_NS)
    each = 2 * MICROBATCHES * (1 + (host > 0) + (host < HOSTS - 1))
    for step in range(max(1, spans // each)):
        delays = random.exponential(DELAY_NS / 8, (2, MICROBATCHES)).astype(int).tolist()
        early = random.integers(0, DELAY_NS // 2, (2, MICROBATCHES)).tolist()
        for way, (work, took) in enumerate(
            ((ActionKind.F, FORWARD_NS), (ActionKind.B, BACKWARD_NS))
        ):
            send, receive = (
                (ActionKind.SEND_F, ActionKind.RECV_F),
                (ActionKind.SEND_B, ActionKind.RECV_B),
            )[way]
            place = host if way == 0 else HOSTS - 1 - host
            sign = 1 if way == 0 else -1
            begun = step * step_ns + way * (MICROBATCHES + HOSTS) * (FORWARD_NS + 2 * DELAY_NS)
            for microbatch in range(MICROBATCHES):
                start = begun + (place + microbatch) * (took + 2 * DELAY_NS)
                if place:
                    late = start - DELAY_NS + delays[way][microbatch]
                    add(receive, start - 2 * DELAY_NS, late, microbatch, rank - sign * RANKS_A_HOST)
                end = start + took - early[way][microbatch]
                add(work, start, end, microbatch)
                if place < HOSTS - 1:
                    add(send, end, end + 5_000, microbatch, rank + sign * RANKS_A_HOST)
    recorder.close()


class Cost(NamedTuple):
    """Is what a process took: seconds of the wall, seconds of all cores, and its peak memory."""

    wall_s: float
    cpu_s: float
    peak_gib: float


def run(words: list[str]) -> Cost:
    """Runs a command, whose output is let go, and returns what it took."""
    begun = time.perf_counter()
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    child = os.posix_spawn(words[0], words, os.environ, file_actions=quiet)
    _, status, used = os.wait4(child, 0)
    if status:
        sys.exit(os.waitstatus_to_exitcode(status))
    wall_s = time.perf_counter() - begun
    return Cost(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20)


def write_json(recordings: Path, folder: Path, limit: int) -> int:
    """Writes the first ``limit`` spans of every rank as a Chrome JSON; returns how many."""
    count = 0
    for path in sorted(recordings.glob("*/rank-*.spans")):
        recording = read_rank_record(path)
        spans = recording.spans.where(np.arange(min(limit, len(recording.spans))))
        count += len(spans)
        columns = (spans.start_ns, spans.end_ns, spans.kind, spans.stage, spans.microbatch)
        events = [
            {
                "name": ActionKind(kind).name,
                "ph": "X",
                "pid": recording.header.rank,
                "tid": 0,
                "ts": start / 1000,
                "dur": (end - start) / 1000,
                "args": {"stage": stage, "microbatch": microbatch},
            }
            for start, end, kind, stage, microbatch in zip(
                *(column.tolist() for column in columns), strict=True
            )
        ]
        offset = recording.header.wall_ns - recording.header.monotonic_ns
        document = {"traceEvents": events, "offset": offset}
        (folder / f"{path.stem}.json").write_text(json.dumps(document))
    return count


def merge_json(folder: Path, output: Path) -> None:
    """Merges the Chrome JSON of every rank into one, as scripts do."""
    events = []
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text())
        for event in document["traceEvents"]:
            event["ts"] += document["offset"] / 1000
        events += document["traceEvents"]
    output.write_text(json.dumps({"traceEvents": events}))


def main() -> None:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for rank in range(RANKS):
            folder = place / "run" / f"node{rank // RANKS_A_HOST}"
            folder.mkdir(parents=True, exist_ok=True)
            write_rank(folder, rank, wanted // RANKS)
        folders = [str(folder) for folder in sorted((place / "run").iterdir())]
        store = place / "run.store"
        serried = Path(sys.executable).with_name("serried")
        words = [str(serried), "trace", "merge", *folders, "-o", str(store), "--format", "json"]
        ours = run(words)
        spans = json.loads((store / "_serried.json").read_text())["num_spans"]
        size = sum(path.stat().st_size for path in store.rglob("*.parquet"))
        (place / "json").mkdir()
        count = write_json(place / "run", place / "json", wanted // RANKS // PEERS_SHARE)
        begun = time.process_time()
        merge_json(place / "json", place / "all.json")
        theirs_s = (time.process_time() - begun) / count * spans
    print(f"{spans:,} spans of {RANKS} ranks on {HOSTS} hosts, on {os.cpu_count()} cores")
    print(
        f"serried trace merge   wall {ours.wall_s:6.1f} s   CPU {ours.cpu_s:6.1f} s   "
        f"{spans / ours.wall_s:>11,.0f} spans/s   peak {ours.peak_gib:.2f} GiB   "
        f"{size / spans:4.1f} B/span"
    )
    print(
        f"Chrome JSON, by json                   CPU {theirs_s:6.1f} s   "
        f"{spans / theirs_s:>11,.0f} spans/s"
    )
    print(f"ratio                                  CPU {theirs_s / ours.cpu_s:6.1f} x")


if __name__ == "__main__":
    main()
