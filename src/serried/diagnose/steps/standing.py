"""Whether a recorded job stands still now, and what became of the processes of its ranks.

    rank 0   …|span|span|            mapped by process 4242, which sleeps       no span for 40 s,
    rank 1   …|span|                 mapped by process 4243, which is stopped   of steps of 2 s

Recordings alone do not tell a hang from a job that was ended in the middle of a step. So one of a
job that is over is taken for a hang only where a log says that ranks waited in vain.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from serried.diagnose.evidence.records.process import STOPPED, holders_of, state_of
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.job_state.state import RankCondition
from serried.diagnose.whom import named
from serried.errors import InputError
from serried.finding import Sentence, said
from serried.trace.model.record import RankRecord, boot_id, read_rank_record
from serried.trace.model.trace import Trace

LEAST_S = 5.0
"""How long no rank must have gone on, and how many steps that must be."""
LEAST_STEPS = 10.0
_WAITED = frozenset({"timeout", "gloo_timeout"})
"""Signs of a log that somebody waited for longer than a job may."""


def stands(files: Iterable[Path], signs: Iterable[Sign]) -> Mapping[int, RankCondition] | None:
    """Returns how the ranks of a job that stands still are, of its records; None if it does not.

    Only of a job that is here and now it is known how its processes are.
    """
    records = {file: record for file in files if (record := _record(file)) is not None}
    holders = holders_of(file for file, record in records.items() if record.torn)
    if not holders:
        return {} if any(sign.kind in _WAITED for sign in signs) else None
    idle_s = min(map(_idle_s, records.values()))
    if idle_s < max(LEAST_S, LEAST_STEPS * max(map(_step_s, records.values()))):
        return None
    return {
        record.header.rank: _condition(record, holders.get(file))
        for file, record in records.items()
    }


def never_closed(trace: Trace, files: Iterable[Path]) -> list[Sentence]:
    """Returns that ranks of a recording never closed their records, and whose.

    Where any process of this host still holds one, the job is here and goes on, or stands still.
    """
    if not trace.torn or holders_of(files):
        return []
    return [
        said(
            "{ranks} never closed the recording: a signal or a crash ended them, or they still "
            "run elsewhere; a recording does not tell which: give the job's logs and the kernel's",
            ranks=named(trace.torn),
        )
    ]


def _record(file: Path) -> RankRecord | None:
    try:
        return read_rank_record(file)
    except InputError:
        return None


def _condition(record: RankRecord, pid: int | None) -> RankCondition:
    if not record.torn:
        return RankCondition.FINISHED
    if pid is None:
        return RankCondition.DEAD
    return RankCondition.STOPPED if state_of(pid, 0) in STOPPED else RankCondition.RUNNING


def _idle_s(record: RankRecord) -> float:
    """Returns for how long no span of a rank has ended; 0 where another machine wrote it."""
    if not len(record.spans) or record.header.boot != boot_id():
        return 0.0
    return (time.monotonic_ns() - int(record.spans.end_ns.max())) / 1e9


def _step_s(record: RankRecord) -> float:
    """Returns how long the steps of a rank took, in the mean."""
    spans = record.spans
    if not len(spans):
        return 0.0
    steps = 1 + int(spans.step.max() - spans.step.min())
    return float(spans.end_ns.max() - spans.start_ns.min()) / 1e9 / steps
