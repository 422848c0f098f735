"""Several hosts, made of network namespaces: they train, and ranks that are lost are named."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from tests.runtime.hosts import hosts, lacking, outcome

LACKING = lacking()
pytestmark = pytest.mark.skipif(bool(LACKING), reason=f"this machine lacks {LACKING}")

CHECK = (
    *("check", "--device", "cpu", "--framework", "custom", "--set", "axes=all=3"),
    *("--operations", "all_reduce", "--sizes", "4KiB,256KiB", "--iterations", "3"),
    *("--rounds", "1000", "--timeout", "6", "--format", "json"),
)


def test_a_run_trains_over_two_hosts(tmp_path: Path) -> None:
    words = [
        "train",
        "--tp",
        "2",
        "--pp",
        "2",
        "--steps",
        "2",
        "--layers",
        "2",
        "--device",
        "cpu",
        "--explain",
    ]
    with hosts(2) as made:
        ended = outcome(made.start_ranks(words, tmp_path, ranks_per_host=2))
    assert [code for code, _, _ in ended] == [0] * 4, ended
    assert "2 steps on 4 ranks" in ended[0][1]
    assert not any(out for _, out, _ in ended[1:])


def test_a_rank_that_never_starts_is_named_by_all_others(tmp_path: Path) -> None:
    words = ["train", "--tp", "2", "--pp", "2", "--device", "cpu", "--timeout", "6"]
    with hosts(2) as made:
        ended = outcome(made.start_ranks(words, tmp_path, ranks_per_host=2, absent=3))
    assert [code for code, _, _ in ended] == [1, 1, 1]
    for rank, (_, _, err) in enumerate(ended):
        assert f"serried: rank {rank}: 1 of 4 ranks did not come within 6 s: rank 3;" in err


def test_a_rank_that_stops_during_a_check_is_named_and_the_others_exit(tmp_path: Path) -> None:
    lost = random.Random().choice((1, 2))  # which one differs from run to run
    os.mkfifo(tmp_path / "rank-0.err")  # reading from it waits until rank 0 says something
    with hosts(3) as made:
        started = made.start_ranks(CHECK, tmp_path, ranks_per_host=1)
        with (tmp_path / "rank-0.err").open() as told:
            assert told.readline().startswith("3 ranks have met (gloo, nodes: 3); ")
            os.kill(int(started[lost].process.pid or 0), signal.SIGSTOP)
            first = told.read()
        stopped = started.pop(lost)
        codes = [each.ended() for each in started]
        stopped.end()
    assert codes == [1, 1]
    for heard in (first, started[1].err.read_text()):
        assert f"rank {lost} does not answer; rank " in heard
