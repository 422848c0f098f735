"""Clocks of several hosts: brought onto one, with an uncertainty that holds what it says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from serried.action import COMPUTE, Action, Span
from serried.trace.clocks.align import Crossings, aligned
from serried.trace.clocks.pings import ping_file, ping_line
from serried.trace.formats.reading import read_trace
from serried.trace.measure.statistics import measure
from serried.trace.merge.in_memory import merge
from serried.trace.model.pairs import SENDS
from serried.trace.model.record_writer import RecordWriter
from serried.trace.model.trace import Host, Trace
from tests.trace.recorded_run import Clock, Run, record, table

RUN = Run(pp=4, dp=2, num_microbatches=8, num_steps=4)
PADDLE = Path(__file__).parents[2] / "goldens" / "traces" / "paddle"
SECOND = 1_000_000_000


def test_paddles_order_of_forwards_and_backwards_finds_its_machines_clocks() -> None:
    trace = read_trace([PADDLE / "multi"])  # machine1's clock is 7.5 ms ahead
    assert [(clock.source, round(clock.offset_ns)) for clock in trace.clocks] == [
        ("own", 0),
        ("order", -7_500_000),
    ]
    starts = [int(trace.spans.start_ns[trace.spans.rank == rank].min()) for rank in range(4)]
    assert starts == [0, 10_000_000, 20_000_000, 30_000_000]


@pytest.mark.parametrize("ahead_ms", [-500, 3, 80_000])
def test_messages_find_the_clock_of_a_host_and_leave_none_early(
    tmp_path: Path, ahead_ms: int
) -> None:
    ahead_ns = ahead_ms * 1_000_000
    clocks = [Clock("a")] * 4 + [Clock("b", late_ns=ahead_ns)] * 4
    trace = read_trace([RUN.write(tmp_path, clocks=clocks)])
    truth = merge([RUN.write(tmp_path / "truth")])
    moved = trace.spans.start_ns - truth.spans.start_ns
    stated = trace.clocks[1].uncertainty_ns
    assert stated is not None
    # Sends and receives of this run take no time of their own, so the truth is half way at most.
    assert abs(moved).max() <= stated + 5_000
    assert measure(trace).alignment.causality_violations == 0
    assert measure(trace).alignment.uncertainty_us == stated / 1000


def test_a_chain_of_hosts_is_joined_through_its_neighbours(tmp_path: Path) -> None:
    clocks = [
        Clock(host, late_ns=late)
        for host, late in (("a", 0), ("b", 7_000_000), ("c", -9_000_000), ("d", 2_000_000))
        for _ in range(2)
    ]
    trace = read_trace([RUN.write(tmp_path, clocks=clocks)])
    offsets = [clock.offset_ns for clock in trace.clocks]
    assert offsets == pytest.approx([0, -7_000_000, 9_000_000, -2_000_000], abs=20_000)
    assert measure(trace).alignment.causality_violations == 0


def test_pings_find_offset_and_drift_where_there_are_no_messages(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    run = Run(pp=1, dp=2, num_microbatches=4, num_steps=2)
    folder = run.write(tmp_path, clocks=[Clock("a"), Clock("b", ahead_ns=5 * SECOND)])
    lines = []
    for begun in (0, SECOND):
        for _ in range(40):
            sent = begun + int(rng.integers(SECOND // 100))
            there, back = (30_000 + rng.exponential(5_000, 2)).astype(int).tolist()
            drifted = 5 * SECOND + 20 * (sent + there) // 1_000_000
            times = (sent, sent + there + drifted, sent + there + drifted + 9, sent + there + back)
            lines.append(ping_line(1, times))
    (folder / ping_file(0)).write_text("".join(lines))
    trace = read_trace([folder])
    clock = trace.clocks[1]
    assert clock.source == "pings"
    assert clock.drift == pytest.approx(-20e-6, abs=2e-6)
    assert clock.uncertainty_ns is not None and 30_000 <= clock.uncertainty_ns < 40_000
    assert clock.symmetric_ns is not None and clock.symmetric_ns < 5_000
    assert measure(trace).alignment.uncertainty_us == clock.uncertainty_ns / 1000


def test_a_host_that_nothing_ties_keeps_its_wall_clock(tmp_path: Path) -> None:
    run = Run(pp=1, dp=2, num_microbatches=4)
    trace = read_trace([run.write(tmp_path, clocks=[Clock("a"), Clock("b", late_ns=9)])])
    assert [clock.source for clock in trace.clocks] == ["own", "wall"]
    assert trace.clocks[1].uncertainty_ns is None
    assert measure(trace).alignment.uncertainty_us is None


def test_one_hosts_clock_is_its_own(tmp_path: Path) -> None:
    trace = read_trace([RUN.write(tmp_path)])
    assert [clock.source for clock in trace.clocks] == ["own"]
    assert measure(trace).alignment.uncertainty_us == 0


def test_spans_that_hold_their_wait_are_tied_by_their_ends() -> None:
    rows = [
        # The second host's clock is 100 ahead; its forward began to wait before the first's end.
        *(Span(0, Action.parse(f"0F{m}"), 0, 10 * m, 10 * m + 10) for m in range(4)),
        *(Span(1, Action.parse(f"1F{m}"), 0, 10 * m + 105, 10 * m + 115) for m in range(4)),
        *(Span(1, Action.parse(f"1B{m}"), 0, 10 * m + 145, 10 * m + 155) for m in range(4)),
        *(Span(0, Action.parse(f"0B{m}"), 0, 10 * m + 50, 10 * m + 60) for m in range(4)),
    ]
    run = Run(pp=2, num_microbatches=4)
    trace = Trace(
        *("waits", run.job, table(rows), 0),
        hosts=(Host("a", (0,), 0), Host("b", (1,), 0)),
        ranks=(0, 1),
        torn=(),
        missing=(),
        warnings=(),
        layout=None,
    )
    found = aligned(replace(trace, waits_inside=True)).clocks[1]
    assert found.source == "order"
    assert found.offset_ns == pytest.approx(-100, abs=5)


def noisy(seed: int, *, steps: int, unit_ns: int) -> Trace:
    """Returns a run of four stages on up to four hosts, its stamps late or early by microseconds.

    Its hosts' clocks are off and do not drift; stamps are cut to whole units.
    """
    rng = np.random.default_rng(seed)
    num_hosts = int(rng.integers(2, 5))
    run = Run(pp=4, num_microbatches=int(rng.integers(2, 9)), num_steps=steps)
    spans = table(run.spans())
    late, early = rng.exponential(2_000, (2, len(spans))).astype(int)
    computes, sends = np.isin(spans.kind, sorted(COMPUTE)), np.isin(spans.kind, SENDS)
    # Computations shrink, sends begin earlier and receives end later: all that causes comes first.
    start = spans.start_ns + np.where(computes, late, np.where(sends, -late, 0))
    end = spans.end_ns + np.where(computes, -early, np.where(sends, 0, early))
    host = np.arange(4) * num_hosts // 4
    off = np.array([0, *rng.integers(-3_000_000, 3_000_000, num_hosts - 1)])[host[spans.rank]]
    start, end = ((each + off) // unit_ns * unit_ns for each in (start, end))
    moved = replace(spans, start_ns=start, end_ns=np.maximum(start, end))
    trace = Trace(
        *("noisy", run.job, moved.where(np.lexsort((start, spans.rank))), 0),
        hosts=tuple(
            Host(str(each), tuple(np.flatnonzero(host == each).tolist()), 0)
            for each in range(num_hosts)
        ),
        ranks=(0, 1, 2, 3),
        torn=(),
        missing=(),
        warnings=(),
        layout=None,
        resolution_ns=unit_ns,
    )
    return aligned(trace)


@pytest.mark.parametrize("unit_ns", [1, 1_000, 1_000_000])
@pytest.mark.parametrize("steps", [1, 3])
def test_a_log_too_short_to_show_a_drift_has_none_fitted(steps: int, unit_ns: int) -> None:
    for seed in range(5):
        for clock in noisy(seed, steps=steps, unit_ns=unit_ns).clocks:
            assert abs(clock.drift) <= 200e-6
            assert abs(clock.drift) <= 70e-6  # what hard bounds alone bend the line by
            assert clock.source == "own" or (clock.uncertainty_ns or 0) >= unit_ns


@pytest.mark.parametrize("sample", ["multi"])
def test_clocks_agree_no_better_than_stamps_tell(sample: str) -> None:
    trace = read_trace([PADDLE / sample])
    assert trace.resolution_ns == 1_000
    clock = trace.clocks[1]
    assert clock.uncertainty_ns is not None and clock.uncertainty_ns >= 1_000
    assert clock.symmetric_ns is not None and clock.symmetric_ns >= 1_000


def test_clocks_agree_no_better_than_they_can_be_read() -> None:
    crossings = [(a, 1 - a, 100 * k, 100 * k + 3) for k in range(9) for a in (0, 1)]
    clock = hosts_apart(crossings, 2).clocks[1]
    assert (clock.uncertainty_ns, clock.symmetric_ns) == (100, 100)


def test_crossings_on_one_host_say_nothing() -> None:
    none = np.array([], dtype=np.int64)
    assert len(Crossings(none, none, none, none)) == 0


def hosts_apart(crossings: list[tuple[int, int, int, int]], count: int) -> Trace:
    """Returns a trace of ``count`` hosts of a rank each, aligned by ``crossings``."""
    run = Run(pp=count, num_microbatches=1)
    trace = Trace(
        *("apart", run.job, table([Span(0, Action.parse("0F0"), 0, 0, 10)]), 0),
        hosts=tuple(Host(str(rank), (rank,), 0) for rank in range(count)),
        ranks=tuple(range(count)),
        torn=(),
        missing=(),
        warnings=(),
        layout=None,
    )
    return aligned(trace, Crossings(*np.array(crossings, dtype=np.int64).T))


def test_hosts_that_are_equally_sure_of_one_another_are_joined() -> None:
    every = [(a, b) for a in range(4) for b in range(4) if a != b]
    crossings = [(a, b, 100 * k, 100 * k + 5) for a, b in every for k in range(8)]
    trace = hosts_apart(crossings, 4)
    assert [clock.offset_ns for clock in trace.clocks] == pytest.approx([0] * 4, abs=1)


def test_clocks_whose_bounds_contradict_are_of_unknown_uncertainty() -> None:
    # Either host's message arrived before it left: no line is between the bounds.
    trace = hosts_apart([(0, 1, 100_000, 50_000), (1, 0, 100_000, 50_000)], 2)
    assert trace.clocks[1].uncertainty_ns is None
    assert measure(trace).alignment.uncertainty_us is None
    assert [str(each) for each in trace.warnings[0].evidence] == [
        "messages of 1 contradict any clock: some arrived before they can have left; how far its "
        "times are off is not known"
    ]


def set_clock(run: Run, folder: Path, *, at_ns: int, by_ns: int) -> Path:
    """Records ``run`` on two hosts; the second's clock is set ``by_ns`` forward at ``at_ns``."""
    folder.mkdir(parents=True)
    spans = run.spans()
    for rank in range(run.world_size):
        host = "a" if rank < run.world_size // 2 else "b"
        recorder = RecordWriter(folder, Clock(host).header(run.name, rank, run.job))
        for span in spans:
            if span.rank == rank:
                is_late = host == "b" and span.start_ns >= at_ns
                record(recorder, span, by_ns if is_late else 0)
        recorder.close()
    return folder


@pytest.mark.parametrize(
    ("by_ns", "way"),
    [(-50_000_000, "set, by up to 50.0 ms"), (2 * SECOND, "set forward by 2.00 s")],
)
def test_a_clock_that_was_set_within_a_run_is_said_and_followed(
    tmp_path: Path, by_ns: int, way: str
) -> None:
    run = Run(pp=4, num_microbatches=16, num_steps=6)
    truth = merge([run.write(tmp_path / "truth")])
    at_ns = int(np.sort(truth.spans.start_ns)[len(truth.spans) // 2])
    trace = read_trace([set_clock(run, tmp_path / "run", at_ns=at_ns, by_ns=by_ns)])
    (warning,) = trace.warnings
    assert (warning.kind, warning.ranks) == ("clock", (2, 3))
    assert f"the clock of b was {way} against that of a, " in str(warning.evidence[0])
    stated_ns = trace.clocks[1].uncertainty_ns
    assert stated_ns is not None and stated_ns >= abs(by_ns) / 2
    # Messages within b that were on their way when its clock went back seem to have come early.
    early = measure(trace).alignment.causality_violations
    assert 0 < early <= 4 if by_ns < 0 else early == 0
    order = [
        np.lexsort((t.spans.step, t.spans.microbatch, t.spans.kind, t.spans.rank))
        for t in (trace, truth)
    ]
    apart = trace.spans.start_ns[order[0]] - truth.spans.start_ns[order[1]]
    assert np.median(np.abs(apart - np.median(apart))) < 10_000_000


def test_an_early_message_within_a_host_is_no_clock_s_fault(tmp_path: Path) -> None:
    run = Run(pp=4, num_microbatches=4, num_steps=1)
    folder = tmp_path / "run"
    folder.mkdir()
    for rank, host in enumerate("aabb"):
        recorder = RecordWriter(folder, Clock(host).header(run.name, rank, run.job))
        for span in run.spans():
            if span.rank == rank:
                # Rank 1's stamps are 20 us early, on the host that it shares with rank 0.
                record(recorder, span, -20_000 if rank == 1 else 0)
        recorder.close()
    found = measure(read_trace([folder])).alignment
    assert found.uncertainty_us is not None and found.uncertainty_us < 5_000
    assert 0 < found.causality_violations <= 4


def test_a_wall_clock_that_was_set_between_the_starts_of_two_ranks_moves_nothing(
    tmp_path: Path,
) -> None:
    late = [0, 0, 0, 3600 * SECOND, 0, 0, -SECOND, 0]  # each rank's wall clock when it started
    clocks = [Clock("ab"[rank // 4], late_ns=late[rank]) for rank in range(8)]
    trace = read_trace([RUN.write(tmp_path, clocks=clocks)])
    truth = read_trace(
        [RUN.write(tmp_path / "truth", clocks=[Clock("ab"[r // 4]) for r in range(8)])]
    )
    assert (trace.spans.start_ns == truth.spans.start_ns).all()
