"""Clocks of several hosts: brought onto one, with an uncertainty that holds what it says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from serried.span import Action, Span
from serried.trace.align import Crossings, aligned
from serried.trace.clock_fit import Bounds, fit_clock
from serried.trace.clock_pings import ping_file, ping_line, read_pings
from serried.trace.merge import Host, Trace, merge
from serried.trace.reading import read_trace
from serried.trace.statistics import measure
from tests.trace.recorded_run import Clock, Run, table

RUN = Run(pp=4, dp=2, num_microbatches=8, num_steps=4)
PADDLE = Path(__file__).parents[1] / "goldens" / "traces" / "paddle"
SECOND = 1_000_000_000


def bounds(
    rng: np.random.Generator, at: np.ndarray, offset: np.ndarray, sign: int, extra_ns: float
) -> Bounds:
    """Returns bounds of ``offset``: each off by a delay of at least 50 us, more at random."""
    delay = 50_000 + rng.exponential(extra_ns, len(at))
    value = np.rint(offset + sign * delay)
    return Bounds(at.astype(np.int64), value.astype(np.int64))


@pytest.mark.parametrize("extra_ns", [2_000, 30_000])
@pytest.mark.parametrize("pattern", ["start and end", "every few minutes", "all along"])
def test_the_stated_uncertainty_holds_in_95_of_100_draws(pattern: str, extra_ns: int) -> None:
    rng = np.random.default_rng(7)
    length = 600 * SECOND
    errors, stated = [], []
    for _ in range(120):
        offset, drift = rng.uniform(-5, 5) * SECOND, rng.uniform(-50e-6, 50e-6)
        sides = []
        for sign in (-1, 1):
            begins = {
                "start and end": rng.choice([0.0, length], 200),
                "every few minutes": rng.choice(np.linspace(0, length, 5), 200),
                "all along": rng.uniform(0, length, 200),
            }[pattern]
            at = begins + rng.uniform(0, SECOND / 100, 200)
            sides.append(bounds(rng, at, offset + drift * at, sign, extra_ns))
        line = fit_clock(*sides)
        assert line is not None
        for at_ns in (0, length):
            found = line.offset_at(np.array([at_ns]))[0]
            errors.append(abs(found - (offset + drift * at_ns)))
            stated.append(line.uncertainty_ns(at_ns))
    holds = np.mean(np.array(errors) <= np.array(stated))
    assert holds >= 0.95
    assert np.median(stated) <= 5 * np.median(errors)


def test_a_one_sided_clock_has_no_line() -> None:
    nothing = Bounds(np.array([], dtype=np.int64), np.array([], dtype=np.int64))
    assert fit_clock(nothing, nothing) is None


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
    assert clock.uncertainty_ns is not None and clock.uncertainty_ns < 20_000
    assert measure(trace).alignment.uncertainty_us == clock.uncertainty_ns / 1000


def test_lines_that_are_no_ping_are_left_out(tmp_path: Path) -> None:
    folder = Run(pp=2).write(tmp_path, clocks=[Clock("a"), Clock("b")])
    good = ping_line(1, (10, 20, 21, 30))
    bad = [
        *("not json", "[]", "{}", '{"peer": 1}', '{"peer": 1, "times": [1, 2]}'),
        *(ping_line(1, (30, 20, 21, 10)), ping_line(9, (1, 2, 3, 4)), good[:-5]),
        json.dumps({"peer": 1, "times": [1.5, 2, 3, 4]}),
    ]
    (folder / ping_file(0)).write_text("\n".join([*bad, good]))
    (folder / "clock-x.jsonl").write_text(good)
    crossings = read_pings([folder], merge([folder]))
    assert len(crossings) == 2
    assert crossings.from_host.tolist() == [0, 1]


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
    trace = hosts_apart([(0, 1, 100, 50), (1, 0, 100, 50)], 2)
    assert trace.clocks[1].uncertainty_ns is None
    assert measure(trace).alignment.uncertainty_us is None
