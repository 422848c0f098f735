"""Where ranks stand of which only recordings are there: what comes next, by their own steps before.

    step 6   RECV_F0  F0  SEND_F0  RECV_F1  F1  SEND_F1 …
    step 7   RECV_F0  F0  SEND_F0  |                        next: RECV_F1, from rank 0

A span is written as it ends, so what a rank is in was never written. But ranks begin the same in
every step, in the same order, and what is missing first is what a rank is in. Who would receive
waits for the sender, who would reduce for its group; who would compute is in that computation, and
keeps the others waiting. Messages may overtake one another, so a later one tells nothing; a
computation that is done tells that what stood before it is not waited for.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE, Action, ActionKind
from serried.diagnose.evidence.quote import Quote
from serried.diagnose.job_state.given import WORLD, groups_of_layout
from serried.diagnose.job_state.state import (
    JobGroup,
    JobState,
    RankCondition,
    RankOperation,
    RankState,
)
from serried.finding import said
from serried.trace.measure.ranks.garbage import COLLECTION
from serried.trace.model.pairs import RECEIVES, SENDS
from serried.trace.model.record import file_name
from serried.trace.model.trace import Trace

LOOKED_BACK = 6
"""Steps of a rank, its last among them, that tell what comes next."""
EVERYBODY = "all ranks"
"""The group of the gradients' reduction where no collective of it was recorded by itself."""
_REDUCING = frozenset({ActionKind.B, ActionKind.REDUCE_GRAD, ActionKind.ALL_REDUCE})
"""What data parallel ranks wait for all others in."""


Ended = Mapping[int, NDArray[np.int64]]
"""How many collectives each rank ended in each of a trace's groups."""


@dataclass(frozen=True)
class _Next:
    """Says what a rank would have written next: its kind, place, peer or name, and group."""

    kind: ActionKind
    stage: int
    microbatch: int
    peer: int
    group: int

    def named(self, trace: Trace) -> str:
        """Returns it as the timeline writes it, or by the name that its user gave."""
        if self.kind is ActionKind.SPAN:
            return trace.called(self.peer) or self.kind.name
        return str(Action(self.kind, self.stage, self.microbatch))


def recorded_state(
    trace: Trace, conditions: Mapping[int, RankCondition], ended: Ended | None = None
) -> JobState | None:
    """Returns the state of a job that stands still, by its recording; None where it tells none.

    It does not where some living rank has no step like its last: whom that waits for is not known.
    ``conditions`` says how the processes of ranks are, as far as anything tells; ``ended`` counts
    the collectives of a recording of which ``trace`` is the end alone.
    """
    counts = ended or {rank: _ended(trace, rank) for rank in trace.ranks}
    given = groups_of_layout(trace.layout, "", trace.job.gpus_per_node) if trace.layout else None
    world = JobGroup(WORLD, WORLD, tuple(range(trace.job.world_size)))
    seen = [each.ranks for each in trace.groups]
    names = {ranks: f"{WORLD} {list(ranks)}" for ranks in seen} | {world.ranks: WORLD}
    named = given.groups if given else ()
    # One rank alone makes no group, and of several of equal ranks the first is meant.
    names |= {each.ranks: each.name for each in reversed(named) if len(each.ranks) > 1}
    groups = [JobGroup(name, name.rstrip("0123456789_"), ranks) for ranks, name in names.items()]
    groups.append(JobGroup(EVERYBODY, EVERYBODY, world.ranks))
    ranks = [_rank(trace, rank, names, conditions, counts.get(rank)) for rank in trace.ranks]
    if None in ranks:
        return None
    return JobState.of(
        trace.job.world_size,
        groups,
        filter(None, ranks),
        axes=given.axes if given else (),
        num_microbatches=trace.job.num_microbatches,
        gpus_per_node=trace.job.gpus_per_node,
    )


def _rank(
    trace: Trace,
    rank: int,
    names: Mapping[tuple[int, ...], str],
    conditions: Mapping[int, RankCondition],
    ended: NDArray[np.int64] | None,
) -> RankState | None:
    condition = conditions.get(rank, RankCondition.UNKNOWN)
    steps = _latest_steps(trace, rank)
    coming, usual = _coming(steps) if len(steps) > 1 else (None, [])
    if not usual:
        is_held = condition in (RankCondition.DEAD, RankCondition.STOPPED)
        return RankState(rank, condition, counts={}) if is_held else None
    step = max(steps)
    counts = _counts(trace, ended, steps, names)
    if condition is RankCondition.FINISHED and coming is not None:
        condition = RankCondition.DEAD  # it ended in the middle of a step
    if condition is RankCondition.FINISHED:
        return RankState(rank, condition, counts=counts, step=step)
    if coming is None:
        coming, step = usual[0], step + 1
    name = coming.named(trace)
    quote = Quote(file_name(rank), 0, f"{name} of step {step} comes next")
    doing = _operation(trace, coming, names, counts, step, quote)
    if doing is not None and doing.group is not None and doing.seq is not None:
        counts[doing.group] = doing.seq
    within = said("{action} of step {step}", action=name, step=step) if doing is None else None
    return RankState(
        rank, condition, counts=counts, doing=doing, step=step, quotes=(quote,), within=within
    )


def _latest_steps(trace: Trace, rank: int) -> dict[int, list[_Next]]:
    """Returns what a rank did in its last steps, in the order in which it began."""
    spans = trace.spans
    mine = (spans.rank == rank) & (spans.kind != ActionKind.IN_FLIGHT)
    last = int(spans.step[mine].max(initial=-1))
    rows = np.flatnonzero(mine & (spans.step > last - LOOKED_BACK))
    found: dict[int, list[_Next]] = defaultdict(list)
    for row in rows[np.lexsort((spans.end_ns[rows], spans.start_ns[rows]))].tolist():
        kind, peer = ActionKind(int(spans.kind[row])), int(spans.peer[row])
        if kind is ActionKind.SPAN and trace.called(peer) == COLLECTION:
            continue
        place = int(spans.stage[row]), int(spans.microbatch[row])
        found[int(spans.step[row])].append(_Next(kind, *place, peer, int(spans.group[row])))
    return dict(found)


def _coming(steps: Mapping[int, list[_Next]]) -> tuple[_Next | None, list[_Next]]:
    """Returns what the last step lacks first, None for nothing; and the step that tells it."""
    *before, last = sorted(steps)
    done = Counter(steps[last])
    usual = next((steps[n] for n in reversed(before) if not done - Counter(steps[n])), [])
    for at, each in enumerate(usual):
        if done[each]:
            done[each] -= 1
        elif not any(done[later] for later in usual[at:] if later.kind in COMPUTE):
            return each, usual
    return None, usual


def _ended(trace: Trace, rank: int) -> NDArray[np.int64]:
    groups = trace.spans.group[trace.spans.rank == rank]
    return np.bincount(groups[groups >= 0], minlength=len(trace.groups))


def _counts(
    trace: Trace,
    numbers: NDArray[np.int64] | None,
    steps: Mapping[int, list[_Next]],
    names: Mapping[tuple[int, ...], str],
) -> dict[str, int]:
    """Returns how many collectives a rank ended in each group since the recording began.

    Of the reduction that no span tells of, it is the last step of which it ended.
    """
    counted = [0] * len(trace.groups) if numbers is None else numbers.tolist()
    found: dict[str, int] = {}
    for each, number in zip(trace.groups, counted, strict=True):
        found[names[each.ranks]] = found.get(names[each.ranks], 0) + number
    ended = [n for n, did in steps.items() if any(e.kind is ActionKind.OPTIMIZER for e in did)]
    return found | {EVERYBODY: max(ended, default=-1)}


def _operation(
    trace: Trace,
    coming: _Next,
    names: Mapping[tuple[int, ...], str],
    counts: Mapping[str, int],
    step: int,
    quote: Quote,
) -> RankOperation | None:
    """Returns the operation that a rank waits in; None where it computes, or loads its data."""
    if coming.kind in RECEIVES or coming.kind in SENDS:
        op = "recv" if coming.kind in RECEIVES else "send"
        action = Action(coming.kind, coming.stage, coming.microbatch)
        peer = coming.peer if coming.peer >= 0 else None
        return RankOperation(op, peer=peer, step=step, action=action, quote=quote)
    if coming.group >= 0:
        name = names[trace.groups[coming.group].ranks]
        op = coming.kind.name.lower()
        return RankOperation(op, name, seq=counts[name] + 1, step=step, quote=quote)
    if not trace.has_pipeline and coming.kind in _REDUCING and trace.job.world_size > 1:
        return RankOperation("all_reduce of step", EVERYBODY, seq=step, step=step, quote=quote)
    return None
