"""Two profiles by name: what a step calls and runs more, less, longer or shorter.

    name                     A: a step          B: a step
    aten::mm                 40 x, 1.3 ms       40 x, 1.2 ms      as often, 0.1 ms more
    ncclDevKernel_AllReduce   8 x, 9.0 ms        4 x, 6.0 ms      more often, 3.0 ms more
    triton_poi_fused_add                        12 x, 0.2 ms      only in B

A call belongs to the step in which it begins, an operation to that of its launch. Calls of
PyTorch hold those within them, so host times of nested names count twice; a GPU's do not.
Source: HolisticTraceAnalysis 0.5.0, hta/trace_diff.py (``compare_traces``, ``ops_diff``), which
takes the first step of either; here it is the mean of the steps that count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from serried.errors import InputError
from serried.trace.gpu.activity import GpuRank, Whole
from serried.trace.gpu.steps import steps_counted, steps_of_calls, steps_of_operations


class Frequency(Enum):
    """Says how often a name stands in the first profile, against the second."""

    ONLY_FIRST = "only first"
    ONLY_SECOND = "only second"
    MORE_OFTEN = "more often"
    LESS_OFTEN = "less often"
    AS_OFTEN = "as often"


@dataclass(frozen=True)
class NameTotals:
    """Holds what a step has of one name in the mean."""

    count: float
    total_ns: float


@dataclass(frozen=True)
class NameDifference:
    """Holds one name in two profiles."""

    name: str
    is_on_gpu: bool
    first: NameTotals
    second: NameTotals

    @property
    def more_ns(self) -> float:
        """How much more time a step of the first profile spends on it."""
        return self.first.total_ns - self.second.total_ns

    @property
    def frequency(self) -> Frequency:
        """How often it stands in the first profile, against the second."""
        one, other = self.first.count, self.second.count
        if not other:
            return Frequency.ONLY_FIRST
        if not one:
            return Frequency.ONLY_SECOND
        if one == other:
            return Frequency.AS_OFTEN
        return Frequency.MORE_OFTEN if one > other else Frequency.LESS_OFTEN


@dataclass(frozen=True)
class GpuComparison:
    """Holds two ranks by name, the largest difference first."""

    ranks: tuple[int, int]
    steps: tuple[tuple[int, ...], tuple[int, ...]]
    """The steps of either that were compared; none where a profile marks none."""
    rows: tuple[NameDifference, ...]

    def on_gpu(self) -> list[NameDifference]:
        """Returns the rows of kernels and copies."""
        return [row for row in self.rows if row.is_on_gpu]

    def on_host(self) -> list[NameDifference]:
        """Returns the rows of calls."""
        return [row for row in self.rows if not row.is_on_gpu]


def compare_gpus(
    first: GpuRank,
    second: GpuRank,
    steps: tuple[Sequence[int], Sequence[int]] | None = None,
) -> GpuComparison:
    """Returns two ranks' names side by side, a mean step of each.

    Without ``steps`` those that count are taken, or all where none are marked. Raises InputError
    for a step that a profile does not have.
    """
    mine = steps or (steps_counted(first), steps_counted(second))
    totals = [_totals(each, chosen) for each, chosen in zip((first, second), mine, strict=True)]
    none = NameTotals(0.0, 0.0)
    rows = [
        NameDifference(*key, *(each.get(key, none) for each in totals))
        for key in dict.fromkeys([*totals[0], *totals[1]])
    ]
    rows.sort(key=lambda row: (-abs(row.more_ns), row.name))
    return GpuComparison((first.rank, second.rank), (tuple(mine[0]), tuple(mine[1])), tuple(rows))


def _totals(rank: GpuRank, chosen: Sequence[int]) -> dict[tuple[str, bool], NameTotals]:
    calls, operations = rank.calls, rank.operations
    of_call, of_operation = steps_of_calls(rank), steps_of_operations(rank)
    if chosen:
        if missing := sorted({*chosen} - {*rank.steps.number.tolist()}):
            raise InputError(
                "{path} has no step {step}; it has steps {first} to {last}",
                path=rank.path,
                step=missing[0],
                first=min(rank.steps.number.tolist(), default=0),
                last=max(rank.steps.number.tolist(), default=0),
            )
        calls = calls.where(np.isin(of_call, chosen))
        operations = operations.where(np.isin(of_operation, chosen))
    per_step = max(1, len(chosen))
    found = _by_name(rank, operations.name, operations.duration_ns, per_step, is_on_gpu=True)
    return found | _by_name(rank, calls.name, calls.duration_ns, per_step, is_on_gpu=False)


def _by_name(
    rank: GpuRank, names: Whole, durations: Whole, per_step: int, *, is_on_gpu: bool
) -> dict[tuple[str, bool], NameTotals]:
    counts = np.bincount(names, minlength=len(rank.names))
    totals = np.bincount(names, weights=durations, minlength=len(rank.names))
    return {
        (rank.names[at], is_on_gpu): NameTotals(
            float(counts[at]) / per_step, float(totals[at]) / per_step
        )
        for at in np.flatnonzero(counts).tolist()
    }
