"""Several hosts, made of network namespaces: slow links named, lost ranks named, training."""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.hosts import Hosts, delayed, hosts, lacking, outcome

LACKING = lacking()
pytestmark = pytest.mark.skipif(bool(LACKING), reason=f"this machine lacks {LACKING}")
needs_tap = pytest.mark.skipif(
    not os.access("/dev/net/tun", os.W_OK), reason="this machine lacks /dev/net/tun"
)

CHECK = (
    *("check", "--device", "cpu", "--framework", "custom", "--set", "axes=all={world}"),
    *("--operations", "all_reduce", "--sizes", "4KiB,256KiB", "--iterations", "3"),
    *("--rounds", "3", "--timeout", "60", "--format", "json"),
)
DRAWN = random.Random()  # which host is slow differs from run to run; its seed is not fixed


def checked(made: Hosts, folder: Path, *more: str) -> tuple[list[int | None], dict[str, Any]]:
    """Checks with a rank on each host; returns exit codes and rank 0's document."""
    words = [word.format(world=made.count) for word in (*CHECK, *more)]
    ended = outcome(made.start_ranks(words, folder, ranks_per_host=1))
    assert ended[0][1], ended[0][2]
    return [code for code, _, _ in ended], json.loads(ended[0][1])


def test_healthy_hosts_name_none_and_a_throttled_one_is_named(tmp_path: Path) -> None:
    with hosts(4) as made:
        codes, document = checked(made, tmp_path)
        assert (codes, document["findings"]) == ([0] * 4, [])
        slow = DRAWN.randrange(made.count)
        made.throttle(slow, "50mbit")
        codes, document = checked(made, tmp_path)
    assert codes == [1, 0, 0, 0]
    assert [(each["kind"], each["ranks"]) for each in document["findings"]] == [
        ("slow-node", [slow])
    ]
    assert [node["is_slow"] for node in document["map"]["nodes"]] == [
        node == slow for node in range(made.count)
    ]
    relative = {(p["from"], p["to"]): p["relative"] for p in document["map"]["paths"]}
    through = {
        is_slow: [v for p, v in relative.items() if (slow in p) == is_slow]
        for is_slow in (True, False)
    }
    assert max(through[True]) < min(through[False])


@needs_tap
def test_a_host_whose_messages_take_longer_is_named_for_all_sizes(tmp_path: Path) -> None:
    with hosts(4) as made:
        slow = DRAWN.randrange(made.count)
        with delayed(made, slow, 0.01):
            codes, document = checked(made, tmp_path, "--sizes", "1KiB,64KiB")
    assert codes == [1, 0, 0, 0]
    (finding,) = document["findings"]
    assert (finding["kind"], finding["ranks"]) == ("slow-node", [slow])
    assert "with messages of 1.02 kB, 65.5 kB" in finding["evidence"][0]


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
    words = [word.format(world=3) for word in CHECK]
    words[words.index("--timeout") + 1] = "6"
    words[words.index("--rounds") + 1] = "1000"
    lost = DRAWN.choice((1, 2))
    os.mkfifo(tmp_path / "rank-0.err")  # reading from it waits until rank 0 says something
    with hosts(3) as made:
        started = made.start_ranks(words, tmp_path, ranks_per_host=1)
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
