"""The report of a check of six ranks on three nodes, of which the second sends slowly."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from serried.finding import Finding, Sentence
from serried.runtime.check.report import CheckReport, Link, Seat
from serried.views.runs.check_document import check_document
from tests.frameworks.asking import asked

SLOW = Finding(
    "slow-node",
    evidence=(
        Sentence(
            "{who} {does} {ratio} x slower than its like, of {count} compared, in every round, "
            "with messages of {sizes}",
            {"who": "node 1 (b)", "does": "sends", "ratio": 4.0, "count": 3, "sizes": "1 MB"},
        ),
    ),
    ranks=(2, 3),
)


def link(source: int, target: int, mb_per_s: float) -> Link:
    """A link whose messages of 1 MB take as long as its speed says; two ranks are a node."""
    times = np.array([[1e3, 1e9 / mb_per_s / 1e3]] * 2)
    return Link(source, target, source // 2 != target // 2, times)


LINKS = (
    *(link(a, a ^ 1, 4000) for a in range(6)),
    *(link(a, b, 1000) for a, b in ((0, 2), (1, 4), (4, 0), (5, 3), (0, 4))),
    *(link(a, b, 250) for a, b in ((2, 4), (3, 0))),
)


def document() -> dict[str, Any]:
    """Returns the report, as it is read from a file."""
    seats = tuple(Seat(rank, rank // 2, "abc"[rank // 2], 1, "cpu") for rank in range(6))
    sizes = (1000, 1_000_000)
    report = CheckReport(seats, "gloo", "2.13.0", sizes, 2, {}, {}, (), LINKS, (SLOW,))
    layout = asked("megatron 6 tp=2")
    made = check_document(report, layout, "en", options={"create_gloo_process_groups": "false"})
    read: dict[str, Any] = json.loads(json.dumps(made))
    return read
