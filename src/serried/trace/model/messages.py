"""Messages of a run: whether sends and receives pair, and what they say of the hosts' clocks."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from serried.pipeline import ideal_bubble
from serried.trace.model.pairs import RECEIVES, SENDS, Pairs, pair_messages
from serried.trace.model.record import TracedJob
from serried.trace.model.trace import AlignedClock, Trace

CLOSED_FORM = ("1f1b", "gpipe")
"""Schedules, one stage a rank, whose ideal bubble is (p - 1) / (m + p - 1)."""


@dataclass(frozen=True)
class MessageStatistics:
    """Counts the sends and receives of complete steps."""

    spans: int
    pairs: int
    lone_sends: int
    lone_receives: int
    expected_spans: int | None
    """What the schedule makes: 4 (p - 1) m per pipeline and step; None where it is not known."""


@dataclass(frozen=True)
class Alignment:
    """Says how far the clocks can be trusted, and what the messages say about them.

    A violation is a message that was received before its sender began to send it, by more than
    a time stamp can tell and the clocks' stated uncertainty allows.
    """

    num_hosts: int
    """Hosts with clocks of their own; all ranks of a plan share one."""
    checked: int
    causality_violations: int
    uncertainty_ns: float | None = 0.0
    """The largest of any host; None where some host's clock is tied to no other."""
    clocks: tuple[AlignedClock, ...] = ()
    """How each host's clock was aligned."""

    @property
    def uncertainty_us(self) -> float | None:
        """The same in microseconds: 0 on one host, whose ranks share a clock."""
        return None if self.uncertainty_ns is None else self.uncertainty_ns / 1e3


def measure_messages(trace: Trace, steps: NDArray[np.int32]) -> tuple[MessageStatistics, Alignment]:
    """Counts the messages of ``steps``, and those of all that were received before sent."""
    spans = trace.spans
    pairs = pair_messages(spans)
    counts = np.isin(spans.step, steps)
    uncertainty_ns = _uncertainty_ns(trace)
    allowed_ns = trace.resolution_ns + _apart_ns(trace, pairs)
    early = spans.end_ns[pairs.receives] + allowed_ns < spans.start_ns[pairs.sends]
    messages = MessageStatistics(
        spans=int(np.isin(spans.kind[counts], SENDS + RECEIVES).sum()),
        pairs=int(counts[pairs.sends].sum()),
        lone_sends=int(counts[pairs.lone_sends].sum()),
        lone_receives=int(counts[pairs.lone_receives].sum()),
        expected_spans=_expected_spans(trace.job, len(steps)),
    )
    violations = int(early.sum())
    return messages, Alignment(
        1 if trace.is_planned else len(trace.hosts),
        len(pairs),
        violations,
        uncertainty_ns,
        trace.clocks,
    )


def _uncertainty_ns(trace: Trace) -> float | None:
    """Returns how far any two hosts' clocks may be apart, None where that is not known."""
    if len(trace.hosts) == 1 or trace.is_planned:
        return 0.0
    known = [clock.uncertainty_ns for clock in trace.clocks]
    worst = [each for each in known if each is not None]
    # Two hosts are each tied to the first: both may be off.
    return sum(sorted(worst)[-2:]) if worst and len(worst) == len(trace.hosts) else None


def _apart_ns(trace: Trace, pairs: Pairs) -> NDArray[np.float64]:
    """Returns, message by message, how far the clocks of its two ends may be apart.

    Ranks of one host share a clock. Of a host whose clock is tied to no other nothing is
    allowed: each message that it seems to have received early is one to look at.
    """
    host = np.zeros(trace.job.world_size, dtype=np.int64)
    for number, each in enumerate(trace.hosts):
        host[list(each.ranks)] = number
    off_ns = np.array([clock.uncertainty_ns or 0.0 for clock in trace.clocks] or [0.0])
    # Before alignment nothing is stated of any clock, so nothing is allowed.
    known = len(trace.clocks) == len(trace.hosts)
    ends = host[trace.spans.rank[pairs.sends]], host[trace.spans.rank[pairs.receives]]
    apart = off_ns[ends[0]] + off_ns[ends[1]] if known else np.zeros(len(pairs))
    return np.where(ends[0] == ends[1], 0.0, apart)


def _expected_spans(job: TracedJob, num_steps: int) -> int | None:
    """Returns the sends and receives of ``num_steps``: one of each way per boundary and microbatch.

    4 (p - 1) m per pipeline: forward and backward, a send and a receive for each.
    """
    p = _stages(job)
    if p is None:
        return None
    return 4 * (p - 1) * job.num_microbatches * (job.world_size // p) * num_steps


def ideal_of(job: TracedJob) -> Fraction | None:
    """Returns the least bubble of a job's schedule, None without a closed form."""
    p = _stages(job)
    return None if p is None else ideal_bubble(p, job.num_microbatches)


def _stages(job: TracedJob) -> int | None:
    """Returns the number of stages where the schedule is one with a closed form, else None.

    One stage is no pipeline: it has no schedule, whatever its job calls it.
    """
    is_closed = job.schedule.lower() in CLOSED_FORM and job.num_microbatches > 0
    stages = job.sizes.get("pp", 1)
    return stages if is_closed and stages > 1 else None
