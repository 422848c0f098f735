"""Meetings: one collective as each of its ranks carried it out.

    rank 0   ├──────────── all_reduce, 3rd of step 4 in group 0 ─┤    8 ms: it came first
    rank 1                              ├── the same ────────────┤    3 ms: the last to come

A kernel of NCCL spins from its start until all members have come, so the time of the last to come
is the transfer, and what the others take longer they waited. That needs no common clock. Kernels
meet that are the same in number within a step and their group; where a profile does not record
groups, of the same name, and all ranks are taken for members.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from serried.trace.gpu.activity import CollectiveCall, GpuRank, OperationKind, Whole
from serried.trace.gpu.kind import short_name
from serried.trace.gpu.steps import steps_of_operations

Key = tuple[object, ...]


@dataclass(frozen=True)
class Meeting:
    """Holds one collective: who was in it, and each one's kernel by its times."""

    operation: str
    """``all_reduce``, ``all_gather``, ``sendrecv`` …"""
    call: CollectiveCall | None
    """What was asked; None where the profile does not record it."""
    ranks: tuple[int, ...]
    """Members with a file, ascending."""
    is_whole: bool
    """Whether every member has a file."""
    start_ns: tuple[int, ...]
    end_ns: tuple[int, ...]

    @property
    def took_ns(self) -> tuple[int, ...]:
        """How long each one's kernel ran."""
        return tuple(end - start for start, end in zip(self.start_ns, self.end_ns, strict=True))

    @property
    def transfer_ns(self) -> int:
        """How long the last to come took, which waited for nobody."""
        return min(self.took_ns)

    @property
    def last(self) -> int:
        """The rank that came last."""
        return self.ranks[int(np.argmin(self.took_ns))]


_OPERATIONS = (
    ("reducescatter", "reduce_scatter"),
    ("allreduce", "all_reduce"),
    ("allgather", "all_gather"),
    ("alltoall", "all_to_all"),
    ("sendrecv", "sendrecv"),
    ("broadcast", "broadcast"),
    ("barrier", "barrier"),
    ("reduce", "reduce"),
    ("gather", "gather"),
    ("scatter", "scatter"),
    ("send", "sendrecv"),
    ("recv", "sendrecv"),
)


def operation_of(name: str) -> str:
    """Returns the collective that torch's or NCCL's name says, as ``serried check`` calls it.

    >>> operation_of("_reduce_scatter_base"), operation_of("ncclDevKernel_AllReduce_Sum_f32")
    ('reduce_scatter', 'all_reduce')
    """
    bare = name.replace("_", "").lower()
    return next((known for word, known in _OPERATIONS if word in bare), "other")


def meetings(ranks: Sequence[GpuRank], world_size: int) -> list[Meeting]:
    """Returns the collectives that at least one of ``ranks``, of a job of so many, carried out.

    One that some members with a file have more often than others in a step is left out there: which
    belong together is not known.
    """
    found: dict[Key, dict[int, tuple[int, int]]] = defaultdict(dict)
    calls: dict[Key, tuple[str, CollectiveCall | None]] = {}
    counts: dict[Key, dict[int, int]] = defaultdict(dict)
    for rank in ranks:
        seen: Counter[Key] = Counter()
        operations = rank.operations
        rows = np.flatnonzero(operations.kind == OperationKind.COMMUNICATION)
        steps = steps_of_operations(rank)
        for row in rows.tolist():
            at = int(operations.exchange[row])
            call = rank.exchanges[at] if at >= 0 else None
            name = call.collective if call else short_name(rank.names[operations.name[row]])
            key = int(steps[row]), *_group(call, name)
            one = *key, seen[key]
            seen[key] += 1
            found[one][rank.rank] = int(operations.start_ns[row]), int(operations.end_ns[row])
            calls[one] = operation_of(name), call
        for key, count in seen.items():
            counts[key][rank.rank] = count
    present = frozenset(rank.rank for rank in ranks)
    met = (
        _meeting(calls[one], times, world_size)
        for one, times in found.items()
        if _agrees(calls[one][1], counts[one[:-1]], present)
    )
    return [*met]


def _group(call: CollectiveCall | None, name: str) -> Key:
    """Returns what kernels of one group and collective have alike."""
    return (call.group, call.ranks, name) if call else ("", (), name)


def _agrees(call: CollectiveCall | None, counts: dict[int, int], present: frozenset[int]) -> bool:
    """Tells whether all members with a file ran a collective equally often in a step."""
    members = present & {*call.ranks} if call and call.ranks else present
    return members == counts.keys() and len({*counts.values()}) == 1


def _meeting(
    asked: tuple[str, CollectiveCall | None],
    times: dict[int, tuple[int, int]],
    world_size: int,
) -> Meeting:
    operation, call = asked
    members = tuple(sorted(times))
    size = call.num_ranks if call else world_size
    starts, ends = zip(*(times[rank] for rank in members), strict=True)
    return Meeting(operation, call, members, len(members) >= max(2, size), starts, ends)


def sizes_of(found: Sequence[Meeting]) -> Whole:
    """Returns the size of each meeting in bytes, as nccl-tests counts it; -1 where not known."""
    return np.array([_size(each) for each in found], dtype=np.int64)


_ELEMENT_BYTES = {
    "Float": 4, "Double": 8, "Half": 2, "BFloat16": 2, "Byte": 1, "Char": 1, "Short": 2,
    "Int": 4, "Long": 8, "Bool": 1, "ComplexFloat": 8, "ComplexDouble": 16,
}  # fmt: skip


def _size(meeting: Meeting) -> int:
    call = meeting.call
    if call is None:
        return -1
    each = 1 if call.dtype.startswith("Float8") else _ELEMENT_BYTES.get(call.dtype)
    if each is None:
        return -1
    # The whole of it: what is gathered, or what is scattered.
    elements = max(call.elements_in, call.elements_out)
    return elements * each
