"""veScale ndtimeline's local timeline: Chrome events by rank, in the metrics' own names.

    {"name": "forward-compute", "ph": "X", "ts": …, "dur": …, "pid": "dp rank[0]", "tid": 30,
     "args": {"rank": 3, "step": 7, "tp": 0, "pp": 1}}

Metrics carry no microbatch: the k-th forward of a rank in a step is taken for microbatch k,
which holds for one stage a rank. So two runs in one file would be steps of twice as many; they
show where a rank computes two of one kind at a time, or comes back to a step.

Source: volcengine/veScale 20cf5c7, legacy/vescale/ndtimeline (predefined metrics,
local_timeline_handler).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from serried.action import ActionKind
from serried.errors import InputError
from serried.finding import Finding, Sentence, said
from serried.trace.formats.event_file import Event, TraceEventFile, nanoseconds, whole
from serried.trace.formats.foreign import (
    ForeignSpan,
    foreign_trace,
    one_after_another,
    pipelines,
    spans_of,
    with_peers,
)
from serried.trace.formats.two_runs import of_two_runs
from serried.trace.model.trace import Trace

_KINDS = {
    "forward-compute": ActionKind.F,
    "backward-compute": ActionKind.B,
    "forward-send": ActionKind.SEND_F,
    "forward-recv": ActionKind.RECV_F,
    "backward-send": ActionKind.SEND_B,
    "backward-recv": ActionKind.RECV_B,
    "unshard-all-gather": ActionKind.UNSHARD,
    "grad-reduce-scatter": ActionKind.REDUCE_GRAD,
    "grad-all-reduce": ActionKind.REDUCE_GRAD,
    "optimizer": ActionKind.OPTIMIZER,
    "optimizer-step": ActionKind.OPTIMIZER,
}
_BOTH = {
    "forward-send-backward-recv": (ActionKind.SEND_F, ActionKind.RECV_B),
    "backward-send-forward-recv": (ActionKind.SEND_B, ActionKind.RECV_F),
}
_OF_NAME = {**{name: (kind,) for name, kind in _KINDS.items()}, **_BOTH}
_NAMES = {ActionKind.F: "forward-compute", ActionKind.B: "backward-compute"}
_OF_A_MICROBATCH = frozenset({*(_KINDS[name] for name in list(_KINDS)[:6])})


def of_ndtimeline(event: Event) -> bool:
    """Tells whether an event is of a metric of ndtimeline's."""
    return event.get("ph") == "X" and str(event.get("name")) in _OF_NAME


def is_ndtimeline(file: TraceEventFile) -> bool:
    """Tells whether ``file`` was written by ndtimeline."""
    return any(map(of_ndtimeline, file.events))


def ndtimeline_trace(
    files: Sequence[TraceEventFile], sizes: Mapping[str, int] | None = None
) -> Trace:
    """Returns the Trace of ndtimeline files, of one rank or of many.

    Raises InputError when no event names its rank.
    """
    named = sorted(
        ((row, file.path) for file in files for row in _rows(file)),
        key=lambda each: (each[0].rank, each[0].start_ns),
    )
    rows = [row for row, _ in named]
    if not rows:
        raise InputError(
            "{path} holds no ndtimeline event with a rank, a step and a duration",
            path=files[0].path,
        )
    turns: dict[tuple[int, int, ActionKind], int] = defaultdict(int)
    numbered = []
    for row in rows:
        key = (row.rank, row.step, row.kind)
        # An optimizer or a reduction is of no microbatch; what is counts in order of its start.
        microbatch = turns[key] if row.kind in _OF_A_MICROBATCH else -1
        turns[key] += 1
        numbered.append(row._replace(microbatch=microbatch))
    layout = pipelines(numbered, None, sizes)
    spans = one_after_another(spans_of(with_peers(numbered, layout)))
    findings = _second_run(named)
    return foreign_trace(
        files[0].path.stem, layout, {"": range(layout.world_size)}, spans, findings=findings
    )


def _second_run(named: Sequence[tuple[ForeignSpan, Path]]) -> list[Finding]:
    """Returns what is to be said of two runs on one rank, whose rows come by rank and start.

    A writer that begins each step at 0 lays steps over one another: there only two computations
    of one step say anything.
    """
    computing = [each for each in named if each[0].kind in _NAMES]
    pairs = [pair for pair in pairwise(computing) if pair[0][0].rank == pair[1][0].rank]
    for (one, _), (other, path) in pairs:
        # Neighbours may touch, for stamps are rounded; they do not share half of the shorter.
        is_alike = (one.step, one.kind) == (other.step, other.kind)
        if is_alike and 2 * (one.end_ns - other.start_ns) > _shorter(one, other) > 0:
            return [of_two_runs(_said_of_both(other, path), other.rank)]
    # Steps that lie over one another were each begun at 0: that one comes after a later one
    # says nothing then.
    if any(
        one.step != other.step and one.end_ns > other.start_ns for (one, _), (other, _) in pairs
    ):
        return []
    for (one, _), (other, path) in pairs:
        if other.step < one.step:
            return [of_two_runs(_said_of_return(one, other, path), other.rank)]
    return []


def _shorter(one: ForeignSpan, other: ForeignSpan) -> int:
    return min(one.end_ns - one.start_ns, other.end_ns - other.start_ns)


def _said_of_both(row: ForeignSpan, path: Path) -> Sentence:
    return said(
        "{path} seems to hold two runs: rank {rank} runs two of {name} at a time in step "
        '{step}, the second from "ts": {ts} on',
        path=path,
        rank=row.rank,
        name=_NAMES[row.kind],
        step=row.step,
        ts=_ts(row),
    )


def _said_of_return(before: ForeignSpan, row: ForeignSpan, path: Path) -> Sentence:
    return said(
        "{path} seems to hold two runs, or one that was started again: rank {rank} is in step "
        '{step} after step {before}, from "ts": {ts} on',
        path=path,
        rank=row.rank,
        step=row.step,
        before=before.step,
        ts=_ts(row),
    )


def _ts(row: ForeignSpan) -> str:
    """Returns a start as the file has it, in microseconds.

    >>> _ts(ForeignSpan(0, 0, ActionKind.F, 0, 0, 12_500, 13_000))
    '12.5'
    """
    whole_us, rest = divmod(row.start_ns, 1_000)
    return f"{whole_us}.{rest:03}".rstrip("0").rstrip(".")


def _rows(file: TraceEventFile) -> list[ForeignSpan]:
    rows = []
    for event in file.events:
        name, arguments = event.get("name"), event.get("args")
        kinds = _OF_NAME.get(str(name))
        start, length = nanoseconds(event.get("ts")), nanoseconds(event.get("dur"))
        if not kinds or not isinstance(arguments, dict) or start is None:
            continue
        if length is None or length < 0:
            continue
        rank, step = whole(arguments.get("rank")), whole(arguments.get("step"))
        stage = whole(arguments.get("pp"))
        if rank is None or step is None or rank < 0:
            continue
        # A batched exchange (forward-send-backward-recv) becomes its send and its receive; a rank
        # without a pp stands at stage 0.
        at = max(stage or 0, 0)
        rows += [ForeignSpan(rank, at, kind, -1, step, start, start + length) for kind in kinds]
    return rows
