"""How often each class of fault happens, by what large operators published.

Each source (Meta's Llama 3, ByteDance's ByteRobust, Shanghai AI Lab's Acme, Alibaba's C4, Crusoe)
counts its own faults in its own words; ``data/fault_taxonomy.csv`` gives each a class and its
source. Within a source the shares are made to add up to one; over sources their mean is taken, so
that no operator counts more for having counted more.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

CLASSES = (
    "hang", "exception", "network", "host_oom", "hardware", "storage", "data", "gpu_oom",
    "cuda_error", "startup", "node_lost", "straggler", "external_stop", "numerics", "no_fault",
)  # fmt: skip
MIN_CLASSES = 3
"""Classes that a source must tell apart to count: a study of one kind of fault is no survey."""


def class_weights(table: Path) -> dict[str, float]:
    """Returns the weight of each class, which add up to one; 0 for what nobody counted."""
    sources: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    with table.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            share = _share(row)
            if share and row["tool_class"] in CLASSES:
                sources[row["source"]][row["tool_class"]] += share
    surveys = [shares for shares in sources.values() if len(shares) >= MIN_CLASSES]
    means: dict[str, float] = defaultdict(float)
    for shares in surveys:
        for name, share in shares.items():
            means[name] += share / sum(shares.values()) / len(surveys)
    return {name: means.get(name, 0.0) for name in CLASSES}


def _share(row: dict[str, str]) -> float:
    try:
        return float(row["share_percent"].lstrip(">"))
    except ValueError:
        return 0.0
