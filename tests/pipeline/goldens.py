"""Reads tests/goldens/schedules: what real packages made, and how to ask for the same here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from serried.pipeline import Costs, Links, Memory, Request

FOLDER = Path(__file__).parents[1] / "goldens" / "schedules"
METRICS: dict[str, Any] = json.loads((FOLDER / "METRICS.json").read_text(encoding="utf-8"))
SETTINGS = {"unit": Costs(), "10_12_7_c1": Costs(10, 12, 7, links=Links(1))}
"""The times of METRICS.json: forward, input half, weight half, and latency."""

NAMES = {
    "1F1B": "1f1b",
    "Megatron-1F1B": "1f1b",
    "GPipe": "gpipe",
    "Interleaved1F1B": "interleaved-1f1b",
    "Megatron-interleaved": "interleaved-1f1b",
    "vpp": "interleaved-1f1b",
    "InterleavedZeroBubble": "interleaved-zb",
    "LoopedBFS": "looped-bfs",
    "ZBVZeroBubble": "zbv",
    "DualPipeV": "dualpipev",
    "v1f1b": "1f1b-v",
    "vhalf": "v-half",
    "vmin": "v-min",
    "group": "group-interleaved",
    "zb": "auto",
}
"""The packages' names for our schedules; the rest have the same."""


@dataclass(frozen=True)
class Golden:
    """Is one file: the schedule it asks for, and what came out, as lists or as an error."""

    file: str
    name: str
    request: Request
    ranks: list[list[str]] | None
    error: str | None


def read(path: Path) -> Golden:
    case = json.loads(path.read_text(encoding="utf-8"))
    schedule, *parameters = case["schedule"].split(":")
    p, m = case["pp"], case["microbatches"]
    group = case.get("microbatch_group_size_per_vp_stage")
    if schedule == "Interleaved1F1B":
        group = m // max(1, m // p)
    if schedule == "group":
        group = int(parameters[1])
    costs = None
    if "cost" in case:
        f, i, w, c = (Fraction(each) for each in case["cost"])
        costs = Costs(f, i, w, links=Links(c))
    name = NAMES.get(schedule, schedule)
    request = Request(
        p,
        m,
        case.get("stages_per_rank"),
        group,
        moe_overlap=case.get("moe_overlap", False),
        costs=costs,
        memory=Memory(case.get("mem_limit")),
    )
    ranks = [rank.split() for rank in case["ranks"]] if "ranks" in case else None
    return Golden(path.name, name, request, ranks, case.get("error"))


ALL = [read(path) for path in sorted(FOLDER.glob("*.json")) if path.name != "METRICS.json"]
EXECUTED = [golden for golden in ALL if golden.ranks]
REFUSED = [golden for golden in ALL if golden.error]
