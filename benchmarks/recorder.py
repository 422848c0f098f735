"""What one recorded span costs, beside other ways to keep one; run by ``make bench``.

Each keeps the same span (kind, start, end, step, stage, microbatch, peer). The JSON lines are
flushed one by one, for without that a killed process loses them; ``record_function`` is timed
as a user would write it, with torch's profiler off (where it keeps nothing) and on.
Time is the processor's, the best of several rounds, of which the machine disturbs the fewest.
"""

from __future__ import annotations

import importlib.util
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from serried.action import ActionKind
from serried.trace.model.record import HEADER_BYTES, RecordHeader, TracedJob
from serried.trace.model.record_writer import RecordWriter

NUM_SPANS = 20_000
ROUNDS = 7
TARGET_NS, TARGET_BYTES = 500, 64


class Cost(NamedTuple):
    """Is what one span took: processor time, and bytes on disk (None where none are kept)."""

    ns: float
    size_bytes: float | None


def best(round_once: Callable[[], Cost]) -> Cost:
    return min((round_once() for _ in range(ROUNDS)), key=lambda cost: cost.ns)


def per_span(start_ns: int) -> float:
    return (time.process_time_ns() - start_ns) / NUM_SPANS


def recorder() -> Cost:
    job = TracedJob("megatron", 8, {"tp": 2, "pp": 2, "dp": 2}, "tp-cp-ep-dp-pp", "1f1b", 8)
    with tempfile.TemporaryDirectory() as folder:
        record = RecordWriter(Path(folder), RecordHeader("bench", 0, job))
        add, kind, now = record.add, ActionKind.F, time.monotonic_ns()
        record.begin_step(0)
        start = time.process_time_ns()
        for i in range(NUM_SPANS):
            add(kind, now, now + i, 3, i, 4)  # as hooks call it
        ns = per_span(start)
        record.close()
        return Cost(ns, (record.path.stat().st_size - HEADER_BYTES) / NUM_SPANS)


def json_lines() -> Cost:
    now = time.monotonic_ns()
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        start = time.process_time_ns()
        for i in range(NUM_SPANS):
            span = {"kind": "F", "start_ns": now, "end_ns": now + i, "step": i}
            span |= {"stage": 3, "microbatch": i, "peer": 4}
            file.write(json.dumps(span) + "\n")
            file.flush()
        return Cost(per_span(start), Path(file.name).stat().st_size / NUM_SPANS)


def record_function() -> Cost:
    from torch.profiler import record_function

    start = time.process_time_ns()
    for i in range(NUM_SPANS):
        with record_function(f"3F{i}"):
            pass
    return Cost(per_span(start), None)


def profiled() -> Cost:
    from torch.profiler import ProfilerActivity, profile

    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            cost = record_function()
        profiler.export_chrome_trace(file.name)
        return Cost(cost.ns, Path(file.name).stat().st_size / NUM_SPANS)


def doors(folder: Path) -> dict[str, float]:
    """Returns the processor's nanoseconds of an event through each door, beyond calling one."""
    import torch

    import serried
    from serried.runtime.recording import api as recorder_doors

    one = torch.ones(1)
    found: dict[str, float] = {}
    with serried.record_steps(0, 0, 1, folder=folder):
        session = recorder_doors._current
        assert session is not None
        sink, start = session.tracer, session.tracer.mark()
        hooked = session.hooks._exchanges.timed(ActionKind.ALL_REDUCE)(lambda tensor: None)

        def span() -> None:
            with serried.span("augment", 3):
                pass

        calls: dict[str, Callable[[], object]] = {
            "sink.keep (the event)": lambda: sink.keep(ActionKind.F, start, start, 0, 0),
            "with serried.span(…)": span,
            "a hooked collective": lambda: hooked(one),
        }
        for name, call in calls.items():
            found[name] = called(call) - called(lambda: None)
    recorder_doors.finish()
    return found


def window_ns(folder: Path) -> float:
    """Returns what it takes to begin a recording and to end it, hooks in and out."""
    import serried
    from serried.runtime.recording import api as recorder_doors

    with serried.record_steps(0, 0, 1, folder=folder):
        session = recorder_doors._current
        assert session is not None

    def window() -> None:
        session.begin_step(0, is_recorded=True)
        session.end_step()

    found = called(window, count=200)
    recorder_doors.finish()
    return found


def called(call: Callable[[], object], count: int = 2000) -> float:
    """Returns the processor's nanoseconds of a call, the best of several rounds."""

    def once() -> float:
        start = time.process_time_ns()
        for _ in range(count):
            call()
        return (time.process_time_ns() - start) / count

    return min(once() for _ in range(ROUNDS))


def main() -> None:
    ours = best(recorder)
    print(f"{'one span':44} {'CPU ns':>8} {'bytes':>6}   beside ours")
    print(
        f"{'serried RecordWriter.add, survives kill -9':44} {ours.ns:8.0f} {ours.size_bytes:6.0f}"
    )
    if importlib.util.find_spec("torch"):
        with tempfile.TemporaryDirectory() as folder:
            for name, ns in doors(Path(folder)).items():
                print(f"{name:44} {ns:8.0f}")
    peers = {"a flushed JSON line, survives kill -9": json_lines}
    if importlib.util.find_spec("torch"):
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler tells of each start and stop
        peers["torch record_function, profiler off"] = record_function
        peers["torch record_function in torch.profiler"] = profiled
    for name, peer in peers.items():
        cost = best(peer)
        size = "-" if cost.size_bytes is None else f"{cost.size_bytes:.0f}"
        print(f"{name:44} {cost.ns:8.0f} {size:>6}   {cost.ns / ours.ns:.1f} x the time")
    print(f"target: at most {TARGET_NS} ns and {TARGET_BYTES} bytes a span")


if __name__ == "__main__":
    main()
