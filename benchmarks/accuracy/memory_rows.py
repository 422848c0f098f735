"""One figure of memory that was measured, the job that it was measured of, and what tables hold."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from serried.plan.cluster.cluster import Gpu
from serried.plan.memory.job_memory import JobMemory, job_memory
from serried.plan.request import PlanRequest

Cells = Mapping[str, str]
GIB = 1 << 30
B200 = Gpu("b200", "nvidia", {"bf16": 2250e12, "fp8": 4500e12}, 180e9, 8e12, 900e9)
H100 = Gpu("h100", "nvidia", {"bf16": 989e12, "fp8": 1979e12}, 80e9, 3.35e12, 450e9)
A100 = Gpu("a100", "nvidia", {"bf16": 312e12}, 80e9, 2.039e12, 300e9)


@dataclass(frozen=True)
class MeasuredMemory:
    """Holds one figure that was measured, and the job that it was measured of."""

    table: str
    row: str
    what: str
    """Which figure of the plan it is: allocated, steady or in use."""
    group: str
    request: PlanRequest
    num_bytes: float | None
    """None where the job did not fit."""

    def planned(self) -> float:
        """Returns the figure that the plan has for it."""
        return FIGURES[self.what](job_memory(self.request))


FIGURES: Mapping[str, Callable[[JobMemory], float]] = {
    "allocated": lambda job: max(each.allocated for each in job.of_ranks),
    "allocated, last stage": lambda job: job.of_ranks[-1].allocated,
    "steady, last stage": lambda job: job.of_ranks[-1].steady,
    "in use": lambda job: job.fullest.total,
    "reserved": lambda job: max(each.reserved for each in job.of_ranks),
}


def cells_of(path: Path) -> Iterator[Cells]:
    lines = path.read_text(encoding="utf-8").splitlines()
    yield from csv.DictReader(line for line in lines if not line.startswith("#"))


def number(cells: Cells, name: str, otherwise: int = 0) -> int:
    told = cells.get(name) or ""
    return int(float(told)) if told else otherwise
