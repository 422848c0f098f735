"""What is told of hosts' clocks: each by its name, the least sure first, as text and as JSON."""

from __future__ import annotations

from rich.cells import cell_len

from serried.trace.model.trace import AlignedClock
from serried.views.trace.clocks import clock_document, clock_lines

OWN = AlignedClock("a", "own", 0.0, 0.0, 0.0, 0.0)


def joined(lines: list[str]) -> str:
    """Returns what stands in lines, which hang by two columns more than the first, as one."""
    assert [len(line) - len(line.lstrip()) for line in lines] == [2, *[4] * (len(lines) - 1)]
    return " ".join(line.strip() for line in lines)


def test_a_host_is_told_with_what_moved_it_and_how_sure_that_is() -> None:
    clock = AlignedClock("b", "pings+messages", -7_500_000.0, 42.1e-6, 1_230_400.0, 12_300.0)
    assert joined(clock_lines([OWN, clock])) == (
        "b: by pings and messages between hosts, moved -7.50 ms, drift 42.1 ppm; within 1.23 ms "
        "whatever way messages took, or 12.3 us if they take as long either way"
    )
    assert "".join(each.strip() for each in clock_lines([OWN, clock], lang="zh")) == (
        "b：依据 ping 对时和主机间的消息校正 -7.50 ms，漂移 42.1 ppm；"
        "误差不超过 1.23 ms，不论消息怎么走；若来回一样快，则不超过 12.3 us"
    )
    assert clock_document(clock) == {
        "host": "b",
        "source": "pings+messages",
        "offset_us": -7_500.0,
        "drift_ppm": 42.1e-6 * 1e6,
        "uncertainty_us": 1_230.4,
        "even_us": 12.3,
    }


def test_a_host_of_any_name_is_told_in_a_hundred_columns() -> None:
    for name in ("b", "worker-17.rack-3.cluster.example", "机器" * 20):
        clock = AlignedClock(name, "pings+messages+order", -7.5e15, 42.1e-6, 1e15, 1e14)
        for lang in ("en", "zh"):
            assert max(map(cell_len, clock_lines([OWN, clock], lang=lang))) <= 100


def test_a_host_that_nothing_ties_says_so() -> None:
    clock = AlignedClock("b", "wall", 0.0, 0.0, None)
    assert clock_lines([OWN, clock]) == [
        "  b: by wall clocks alone; how far it is off is not known"
    ]
    assert clock_document(clock)["uncertainty_us"] is None


def test_of_many_hosts_the_least_sure_are_told_one_by_one() -> None:
    many = [AlignedClock(f"h{n}", "pings", 0.0, 0.0, 1_000.0 * n, 10.0) for n in range(1, 13)]
    lines = clock_lines([OWN, *many])
    named = [line.split(":")[0].strip() for line in lines[:-1] if ":" in line]
    assert named == [f"h{n}" for n in range(12, 4, -1)]
    assert lines[-1] == "  4 more hosts, each within 4.00 us"


def test_hosts_that_nothing_ties_are_not_counted_among_the_sure_ones() -> None:
    loose = [AlignedClock(f"w{n}", "wall", 0.0, 0.0, None) for n in range(10)]
    sure = [AlignedClock(f"h{n}", "pings", 0.0, 0.0, 4_000.0, 10.0) for n in range(3)]
    assert clock_lines([OWN, *loose, *sure])[-2:] == [
        "  2 more hosts; how far they are off is not known",
        "  3 more hosts, each within 4.00 us",
    ]


def test_a_host_whose_log_shows_no_drift_says_so() -> None:
    (first, *rest) = clock_lines([OWN, AlignedClock("b", "pings", 5_000.0, 0.0, 4_000.0, 300.0)])
    assert "moved 5.00 us, no drift seen; within 4.00 us" in " ".join([first, *rest])


def test_one_host_has_nothing_to_tell() -> None:
    assert clock_lines([OWN]) == []
