"""Where a GPU's time went: idle, computing, or neither; and by kinds of operations.

    computation    ├──────┤      ├───┤
    communication      ├─────┤             ├──┤
    idle                      ├──┤    ├────┤
    no computation         ├──┤            ├──┤      busy, but with messages and copies alone

Source of the definitions: HolisticTraceAnalysis 0.5.0, ``get_temporal_breakdown``,
``get_comm_comp_overlap`` and ``get_gpu_kernel_breakdown``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from serried.trace.gpu.activity import OperationKind, Operations
from serried.trace.gpu.intervals import Union, common_length, joined, union_of


@dataclass(frozen=True)
class TimeBreakdown:
    """Holds where the time went from a GPU's first operation to the end of its last, in ns."""

    window_ns: int
    idle_ns: int
    computing_ns: int
    """At least one computation ran."""
    not_computing_ns: int
    """Something ran, but no computation."""
    communication_ns: int
    """At least one communication ran."""
    overlapped_ns: int
    """A communication and a computation ran at once."""

    @property
    def idle_share(self) -> float:
        """The share of the window in which nothing ran."""
        return self.idle_ns / self.window_ns if self.window_ns else 0.0

    @property
    def exposed_ns(self) -> int:
        """How long communication ran with no computation beside it."""
        return self.communication_ns - self.overlapped_ns

    @property
    def overlap(self) -> float | None:
        """The share of communication that ran beside computations; None without communication."""
        return self.overlapped_ns / self.communication_ns if self.communication_ns else None


@dataclass(frozen=True)
class KindShare:
    """Holds how long a set of kinds ran at once, and no other."""

    kinds: tuple[OperationKind, ...]
    length_ns: int


def time_breakdown(operations: Operations) -> TimeBreakdown:
    """Returns where the time of at least one operation went."""
    busy = union_of(operations)
    computing = union_of(operations.of_kind(OperationKind.COMPUTATION))
    communication = union_of(operations.of_kind(OperationKind.COMMUNICATION))
    window = int(busy.end[-1] - busy.start[0])
    return TimeBreakdown(
        window,
        window - busy.length,
        computing.length,
        busy.length - computing.length,
        communication.length,
        common_length(computing, communication),
    )


def kind_shares(operations: Operations) -> list[KindShare]:
    """Returns how long each set of kinds ran at once and alone, the longest first.

    They add up to the time in which anything ran.
    """
    of_kind = {kind: union_of(operations.of_kind(kind)) for kind in OperationKind}
    sets = [each for size in (1, 2, 3) for each in combinations(OperationKind, size)]
    # All kinds of a set at once are the sets that hold it; taking away those from the largest down
    # leaves the set alone.
    alone: dict[tuple[OperationKind, ...], int] = {}
    for kinds in reversed(sets):
        together = _shared([of_kind[kind] for kind in kinds])
        alone[kinds] = together - sum(
            length for larger, length in alone.items() if set(kinds) < set(larger)
        )
    found = [KindShare(kinds, length) for kinds, length in alone.items() if length]
    return sorted(found, key=lambda share: -share.length_ns)


def _shared(unions: list[Union]) -> int:
    """Returns how long all of up to three unions ran at once, by inclusion and exclusion."""
    total = 0
    for size in range(1, len(unions) + 1):
        sign = 1 if size % 2 else -1
        total += sign * sum(joined(*each).length for each in combinations(unions, size))
    return total
