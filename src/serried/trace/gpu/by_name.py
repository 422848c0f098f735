"""Kernels by name: how often each ran and how long, the longest together first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serried.trace.gpu.activity import GpuRank, OperationKind


@dataclass(frozen=True)
class NamedOperations:
    """Holds the operations of one name on one rank; times are ns."""

    name: str
    kind: OperationKind
    count: int
    total_ns: int
    least_ns: int
    most_ns: int
    deviation_ns: float
    """Standard deviation of a sample; 0 for one alone."""

    @property
    def mean_ns(self) -> float:
        """How long one takes in the mean."""
        return self.total_ns / self.count


def by_name(rank: GpuRank) -> list[NamedOperations]:
    """Returns a rank's operations, all those of a name together."""
    operations = rank.operations
    order = np.argsort(operations.name, kind="stable")
    names, firsts = np.unique(operations.name[order], return_index=True)
    durations, kinds = operations.duration_ns[order], operations.kind[order]
    found = [
        NamedOperations(
            rank.names[name],
            OperationKind(int(kinds[first])),
            len(some),
            int(some.sum()),
            int(some.min()),
            int(some.max()),
            float(some.std(ddof=1)) if len(some) > 1 else 0.0,
        )
        for name, first, some in zip(
            names.tolist(), firsts.tolist(), np.split(durations, firsts[1:]), strict=True
        )
    ]
    return sorted(found, key=lambda each: (-each.total_ns, each.name))
