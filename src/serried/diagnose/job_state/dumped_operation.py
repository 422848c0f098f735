"""One entry of a dump as an operation of the job: its group, its peer, and how far it is told."""

from __future__ import annotations

from serried.diagnose.evidence.dumps.flight_recorder import FlightEntry
from serried.diagnose.evidence.quote import Quote
from serried.diagnose.evidence.records.as_dump import QUEUED
from serried.diagnose.job_state.state import JobGroup, RankOperation


def dumped_operation(source: str, entry: FlightEntry, group: JobGroup | None) -> RankOperation:
    """Returns what a rank issued, by an entry of the dump ``source``."""
    peer = entry.peer
    if peer is not None and group is not None and peer < len(group.ranks):
        peer = group.ranks[peer] if peer >= 0 else None
    quote = None
    if not entry.is_finished:
        name = group.name if group else entry.group_name
        which = f"with rank {peer}" if peer is not None else f"{entry.seq} of {name}"
        quote = Quote(source, 0, f"{entry.backend}:{entry.op} {which}, not over")
    return RankOperation(
        entry.op,
        group.name if group else None,
        None if entry.peer is not None else entry.seq,
        peer,
        entry.numel_in,
        entry.numel_out,
        entry.dtype,
        entry.is_finished,
        entry.created_ns or None,
        entry.step,
        entry.action,
        quote,
        entry.op_id - entry.seq if _counts_messages(entry) else None,
        entry.is_unseen,
        entry.backend == QUEUED,
        entry.frames,
    )


def _counts_messages(entry: FlightEntry) -> bool:
    return entry.backend == "gloo" and entry.peer is None and entry.op_id >= entry.seq > 0
