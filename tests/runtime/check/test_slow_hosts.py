"""Checks over hosts of network namespaces name the slow one, by pace."""

from __future__ import annotations

import json
import os
import random
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


def named(document: dict[str, Any]) -> list[tuple[str, list[int]]]:
    """Returns what is found slow; a busy machine may make a second host so."""
    return [(each["kind"], each["ranks"]) for each in document["findings"]]


@pytest.mark.soak
def test_healthy_hosts_name_none(tmp_path: Path) -> None:
    """Belongs to the soak: where others share the machine's cores, a host is slow indeed."""
    with hosts(4) as made:
        codes, document = checked(made, tmp_path)
    assert (codes, document["findings"]) == ([0] * 4, [])


def test_a_throttled_host_is_named(tmp_path: Path) -> None:
    with hosts(4) as made:
        slow = DRAWN.randrange(made.count)
        made.throttle(slow, "50mbit")
        codes, document = checked(made, tmp_path)
    assert codes == [1, 0, 0, 0]
    assert ("slow-node", [slow]) in named(document)
    assert document["map"]["nodes"][slow]["is_slow"]
    relative = {(p["from"], p["to"]): p["relative"] for p in document["map"]["paths"]}
    through = {
        is_slow: [v for p, v in relative.items() if (slow in p) == is_slow]
        for is_slow in (True, False)
    }
    assert max(through[True]) < min(through[False])


@needs_tap
def test_a_host_whose_smallest_messages_take_longer_is_named(tmp_path: Path) -> None:
    with hosts(4) as made:
        slow = DRAWN.randrange(made.count)
        with delayed(made, slow, 0.01):
            codes, document = checked(made, tmp_path, "--sizes", "1KiB,64KiB")
    assert codes == [1, 0, 0, 0]
    finding = document["findings"][named(document).index(("slow-node", [slow]))]
    assert "with messages of 1.02 kB" in finding["evidence"][0]
