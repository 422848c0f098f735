"""A guard's file as a dump: what a rank issued, by Python's calls and by C++ behind them.

    rank-00003.guard     sends, receives, collectives that Python called, with their steps
    rank-00003.fr.json   collectives that C++ alone issued, such as those of DDP's buckets
                         ──>  one FlightDump, in the order of time

Collectives of one group and number are one: the guard's row says which call it was, where gloo's
recorder holds how it was done (a reduce-scatter as an all-reduce).

A call of NCCL's comes back, and its wait too, when the operation is put into a stream. Whether it
is over the recorder alone tells, which asks the GPU; what it holds of such operations counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import attrgetter

import numpy as np

from serried.action import Action, ActionKind
from serried.diagnose.evidence.dumps.flight_recorder import FlightDump, FlightEntry
from serried.diagnose.evidence.records.guard_file import (
    DTYPES,
    MESSAGES,
    OPS,
    GuardFile,
    unpacked_place,
)
from serried.diagnose.evidence.records.left import GuardedRank

_NAMES = {
    "float32": "Float",
    "float64": "Double",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "int64": "Long",
    "int32": "Int",
    "int16": "Short",
    "int8": "Char",
    "uint8": "Byte",
    "bool": "Bool",
}
"""Data types as flight recorders call them."""
_RECORDED_DTYPES = tuple(_NAMES.get(name, name) or None for name in DTYPES)
"""The same by the number that a row holds; None is one that was not written down."""


def dump_of(guarded: GuardedRank, recorder: FlightDump | None = None) -> FlightDump:
    """Returns what a guarded rank issued; ``recorder`` is the flight record that it left."""
    file = guarded.file
    rows, behind = list(_rows(file)), list[FlightEntry]()
    if recorder is not None:
        rows = _as_recorded(rows, recorder.entries)
        behind = _behind(file, rows, recorder.entries)
    entries = sorted([*rows, *behind], key=attrgetter("created_ns"))
    return FlightDump(
        guarded.source,
        guarded.rank,
        tuple(entries),
        {group.name: group.ranks for group in file.groups},
        is_whole=file.num_begun <= len(rows),
        last_enqueued={},
    )


def _behind(
    file: GuardFile, rows: Sequence[FlightEntry], recorded: Sequence[FlightEntry]
) -> list[FlightEntry]:
    """Returns the collectives that only the recorder has: C++ issued them behind Python's back."""
    known = {(entry.group_id, entry.seq) for entry in rows if entry.peer is None}
    found = [
        entry._replace(is_unseen=True, op_id=0)  # its messages are rows of their own
        for entry in recorded
        if entry.peer is None and entry.seq and (entry.group_id, entry.seq) not in known
    ]
    if file.num_begun <= len(rows):
        return found
    # What came before the ring's first row is known in part only, so it is left out.
    first = min((entry.created_ns for entry in rows), default=0)
    return [entry for entry in found if entry.created_ns >= first]


QUEUED = "nccl"
"""The backend whose operations are over later than their calls."""


def _as_recorded(rows: Sequence[FlightEntry], recorded: Sequence[FlightEntry]) -> list[FlightEntry]:
    """Returns a guard's operations, those in a stream over only where the recorder says so.

    Collectives are the same by group and number; messages by group and peer, counted back from the
    last that the recorder has, which may be older than what the guard wrote.
    """
    by_seq = {(each.group_id, each.seq): each for each in recorded if each.peer is None}
    left: dict[tuple[str, str, int], list[FlightEntry]] = defaultdict(list)
    for entry in recorded:
        if entry.peer is not None:
            left[entry.group_id, entry.op, entry.peer].append(entry)
    found = []
    for row in reversed(rows):
        same = None
        if row.backend == QUEUED and row.peer is None:
            same = by_seq.get((row.group_id, row.seq))
        elif row.backend == QUEUED and row.peer is not None:
            mine = left[row.group_id, row.op, row.peer]
            # A message is called before it is recorded.
            if mine and row.created_ns <= mine[-1].created_ns:
                same = mine.pop()
        found.append(row._replace(is_finished=same.is_finished) if same is not None else row)
    return found[::-1]


def entry_of(file: GuardFile, number: int) -> FlightEntry | None:
    """Returns the operation of that number; None where the ring, or its group, has no place."""
    at = np.flatnonzero(file.rows["number"] == number)
    return _entry(file, file.rows[at[0]].item()) if at.size else None


def _rows(file: GuardFile) -> Iterator[FlightEntry]:
    for row in file.rows.tolist():
        entry = _entry(file, row)
        if entry is not None:
            yield entry


def _entry(file: GuardFile, row: Sequence[int]) -> FlightEntry | None:
    began, ended, numel_in, numel_out, seq, peer, step, place = row[:8]
    group_number, op_code, dtype, number = row[8:]
    if not 0 < group_number <= len(file.groups):
        return None
    group, op = file.groups[group_number - 1], OPS[op_code]
    # By place, in the order of its fields: a large job has millions of entries.
    return FlightEntry(
        op,
        group.name,
        group.desc,
        group_number - 1,
        seq if seq > 0 else 0,
        ended > 0,
        numel_in if numel_in >= 0 else None,
        numel_out if numel_out >= 0 else None,
        _RECORDED_DTYPES[dtype],
        began + file.alive_wall_ns - file.alive_ns,
        _place_in(group.ranks, peer) if op in MESSAGES else None,
        (),
        number,
        group.backend,
        step if step >= 0 else None,
        _action(op, place) if place else None,
    )


def _place_in(ranks: tuple[int, ...], rank: int) -> int:
    """Returns where in a group a rank stands; -1 for any, which a receive may be from."""
    if 0 <= rank < len(ranks) and ranks[rank] == rank:
        return rank
    return ranks.index(rank) if rank in ranks else -1


_ACTIONS = {
    ("send", False): ActionKind.SEND_F,
    ("recv", False): ActionKind.RECV_F,
    ("send", True): ActionKind.SEND_B,
    ("recv", True): ActionKind.RECV_B,
}


def _action(op: str, place: int) -> Action | None:
    at = unpacked_place(place)
    if at is None or op not in MESSAGES:
        return None
    stage, microbatch, is_backward = at
    return Action(_ACTIONS[op, is_backward], stage, microbatch)
