"""Span traffic: what collectives moved over each kind of group of a recorded run, and how fast.

    rank 0   ├──── all_reduce, 3rd of step 4 over 0, 1 ─┤     8 ms: it came first
    rank 1                          ├── the same ───────┤     3 ms: the last to come

Spans meet that are the same in number within a step and their group; the shortest of a meeting
waited for nobody, which needs no common clock. One that was on its way behind a computation counts
from its issue to the end of the wait for it, so that it took that long at most. The first step is
left out where there are several, for libraries make their connections in it.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from serried.action import ActionKind, Spans
from serried.trace.model.group_traffic import GroupKinds, GroupTraffic
from serried.trace.model.trace import Trace

Whole = NDArray[np.int64]

OPERATIONS = {
    ActionKind.ALL_GATHER: "all_gather",
    ActionKind.REDUCE_SCATTER: "reduce_scatter",
    ActionKind.ALL_REDUCE: "all_reduce",
    ActionKind.BROADCAST: "broadcast",
    ActionKind.ALL_TO_ALL: "all_to_all",
}
"""Kinds of collectives as nccl-tests call them."""
_FASTEST = 2e12
"""Bytes a second that no link carries: what seems quicker was only launched in its span."""


def span_traffic(trace: Trace) -> list[GroupTraffic]:
    """Returns what kinds of groups moved, the slowest by busbw first.

    Left out are collectives that some members have more often than others in a step, for which
    belong together is not known, spans of several groups, and what seems quicker than any link:
    its span holds the launch alone.
    """
    spans = trace.spans
    rows = np.flatnonzero((spans.group >= 0) & (spans.size_bytes > 0))
    if len(steps := np.unique(spans.step[rows])) > 1:
        rows = rows[spans.step[rows] > steps[0]]
    sums = _by_group(trace, rows)
    kinds = GroupKinds(trace.layout)
    together: dict[tuple[str, str, int, int], list[int]] = defaultdict(list)
    for number in sorted(sums):
        group = trace.groups[number]
        name = kinds.of(group.ranks) or (
            "world" if len(group.ranks) == trace.job.world_size else f"[{group}]"
        )
        nodes = len({trace.placement.node(rank) for rank in group.ranks})
        together[name, OPERATIONS[group.kind], len(group.ranks), nodes].append(number)
    found = [_row(key, [sums[number] for number in each]) for key, each in together.items()]
    return sorted(
        (row for row in found if (row.busbw_bytes_per_s or 0) < _FASTEST),
        key=lambda row: row.busbw_bytes_per_s or 0,
    )


_Sums = tuple[int, int, int, float, bool]
"""Collectives of a group, their bytes, their transfer and wait in ns, and if that is whole."""


def _row(key: tuple[str, str, int, int], sums: list[_Sums]) -> GroupTraffic:
    count, size, transfer, wait, whole = zip(*sums, strict=True)
    return GroupTraffic(
        *key,
        count=sum(count),
        size_bytes=sum(size),
        transfer_ns=sum(transfer),
        wait_ns=sum(wait),
        is_whole=all(whole),
    )


def _by_group(trace: Trace, rows: Whole) -> dict[int, _Sums]:
    """Returns the sums of each group over its meetings."""
    spans = trace.spans.where(rows)
    took, was_in_flight = _took(trace.spans, spans)
    held = spans.end_ns - spans.start_ns
    order = np.lexsort((spans.start_ns, spans.rank, spans.step, spans.group))
    group, step, rank = (column[order] for column in (spans.group, spans.step, spans.rank))
    # Of a rank's spans of a step over a group the k-th meets the k-th of every other member.
    is_new = np.diff(rank, prepend=-1) != 0
    is_new |= (np.diff(step, prepend=-1) != 0) | (np.diff(group, prepend=-1) != 0)
    begins = np.flatnonzero(is_new)
    ordinal = np.arange(len(order)) - np.repeat(begins, np.diff(begins, append=len(order)))
    meeting = np.lexsort((ordinal, step, group))
    order, group, step, ordinal = order[meeting], group[meeting], step[meeting], ordinal[meeting]
    changes = (np.diff(group, prepend=-1) != 0) | (np.diff(step, prepend=-1) != 0)
    first = np.flatnonzero(changes | (np.diff(ordinal, prepend=-1) != 0))
    if not len(first):
        return {}
    members = np.diff(first, append=len(order))
    present = np.array([len({*each.ranks} & {*trace.ranks}) for each in trace.groups])
    is_met = members == present[group[first]]
    # Where one member has more of them than another, nothing says which of a step belong together.
    blocks = np.flatnonzero(changes[first])
    is_even = np.repeat(np.logical_and.reduceat(is_met, blocks), np.diff(blocks, append=len(first)))
    transfer = np.minimum.reduceat(took[order], first)
    wait = np.add.reduceat(held[order], first) / members - transfer
    size = np.add.reduceat(spans.size_bytes[order], first) // members
    flew = np.logical_or.reduceat(was_in_flight[order], first)
    sums: dict[int, _Sums] = {}
    for number in np.unique(group[first][is_even]).tolist():
        mine = is_even & (group[first] == number)
        each = trace.groups[number]
        whole = int(present[number]) == len(each.ranks) and not flew[mine].any()
        sums[number] = (
            int(mine.sum()) * each.count,
            int(size[mine].sum()),
            int(transfer[mine].sum()),
            float(np.maximum(wait[mine], 0).sum()),
            bool(whole),
        )
    return sums


def _took(spans: Spans, mine: Spans) -> tuple[Whole, NDArray[np.bool_]]:
    """Returns how long each took from its issue, and whether it was on its way before its span."""
    flights = np.flatnonzero(spans.kind == ActionKind.IN_FLIGHT)
    start = mine.start_ns.copy()
    was_in_flight = np.zeros(len(mine), dtype=np.bool_)
    if len(flights):
        # What was on its way ends where the wait for it begins, on the same rank.
        issued = {
            (rank, end): begin
            for rank, end, begin in zip(
                *(
                    column[flights].tolist()
                    for column in (spans.rank, spans.end_ns, spans.start_ns)
                ),
                strict=True,
            )
        }
        for row, key in enumerate(zip(mine.rank.tolist(), start.tolist(), strict=True)):
            if key in issued:
                start[row] = issued[key]
                was_in_flight[row] = True
    return mine.end_ns - start, was_in_flight
