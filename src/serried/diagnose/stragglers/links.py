"""Slow links: a pair of ranks whose messages take longer than those of other pairs, or than before.

    sender     |--SEND--|                      from when both are there until it has arrived;
    receiver |...waits..|                      counted where the receiver was there first
               └ transfer ┘

Links between machines are slower than those inside one, so like is compared with like.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.steps.table import JobSteps
from serried.diagnose.stragglers.cost import Costing
from serried.diagnose.stragglers.naming import period_of, ranks_at
from serried.diagnose.stragglers.slow import raised
from serried.finding import said
from serried.trace.model.pairs import pair_messages
from serried.trace.model.trace import Trace
from serried.units import duration_text

_TIMES = 2.0
"""How many times as long as on other links a transfer must take."""
_TOLD = 0.8
_WORTH = 0.02
"""The least share of a step that a link must cost to be told."""
_LEAST_STEPS = 3

Link = tuple[int, int]


@dataclass(frozen=True)
class _Slow:
    link: Link
    transfer_ns: float
    usual_ns: float
    first: int
    last: int
    """The row after its last."""
    num_others: int
    """How many links it was compared with; 0 where with its own past."""


def link_causes(trace: Trace, job: JobSteps, costing: Costing | None) -> Iterator[Cause]:
    """Yields every link that is slower than its like or than before, and costs enough to say."""
    links, table, each = _transfers(trace, job)
    for slow in _slow_links(job, links, table):
        period = float(np.median(job.period_ns[slow.first : slow.last]))
        cost = (slow.transfer_ns - slow.usual_ns) * each / period
        if costing is not None:
            first, last = int(job.steps[slow.first]), int(job.steps[slow.last - 1])
            saved = costing.without_link(*slow.link, slow.usual_ns, first, last)
            cost = saved * 1e9 / period if saved > 0 else cost
        if cost < _WORTH:
            continue
        yield Cause(
            CauseClass.STRAGGLER,
            "slow_link",
            slow.link,
            said(
                "the link from {sender} to {receiver} is slow: a message takes {time} and not "
                "{usual}, which costs {cost:.1%} of each step, {period}",
                sender=ranks_at(job, slow.link[:1]),
                receiver=ranks_at(job, slow.link[1:]),
                time=duration_text(slow.transfer_ns),
                usual=duration_text(slow.usual_ns),
                cost=cost,
                period=period_of(job, slow.first, slow.last),
            ),
            confidence=0.8 if slow.num_others > 1 else 0.65,
            chain=(
                said("compared with {count} links of its kind", count=slow.num_others)
                if slow.num_others
                else said("compared with its own messages of other steps"),
            ),
            cures=(
                said(
                    "measure the link alone (serried check, ib_write_bw, iperf3); look at its "
                    "cable, port counters and NIC (ibstat, ethtool -S), and at what else uses it"
                ),
            ),
            cost=cost,
        )


def _transfers(trace: Trace, job: JobSteps) -> tuple[list[Link], NDArray[np.float64], float]:
    """Returns links, by row and link the median transfer, and how many messages a step has each."""
    spans = trace.spans
    pairs = pair_messages(spans)
    sends, receives = pairs.sends, pairs.receives
    was_there = spans.start_ns[receives] <= spans.start_ns[sends]
    sends, receives = sends[was_there], receives[was_there]
    took = (spans.end_ns[receives] - spans.start_ns[sends]).astype(np.float64)
    at = np.stack([spans.rank[sends], spans.rank[receives]], axis=1)
    if not len(at):
        return [], np.zeros((len(job), 0)), 0.0
    links, of = np.unique(at, axis=0, return_inverse=True)
    row = np.searchsorted(job.steps, spans.step[sends])
    known = np.isin(spans.step[sends], job.steps)
    table = np.full((len(job), len(links)), np.nan)
    order = np.lexsort((took[known], row[known], of.ravel()[known]))
    of, row, took = of.ravel()[known][order], row[known][order], took[known][order]
    edges = np.flatnonzero(np.diff(of * (len(job) + 1) + row, prepend=-1))
    counts = np.diff(np.append(edges, len(of)))
    table[row[edges], of[edges]] = took[edges + counts // 2]
    each = float(counts.mean()) if len(counts) else 0.0
    return [(int(a), int(b)) for a, b in links], table, each


def _slow_links(job: JobSteps, links: list[Link], table: NDArray[np.float64]) -> Iterator[_Slow]:
    for at, link in enumerate(links):
        mine = table[:, at]
        known = ~np.isnan(mine)
        if known.sum() < _LEAST_STEPS:
            continue
        like = [
            other
            for other, (a, b) in enumerate(links)
            if other != at and _crosses(job, (a, b)) == _crosses(job, link)
        ]
        usual = np.nanmedian(table[:, like]) if like and not np.isnan(table[:, like]).all() else 0.0
        filled = np.where(known, mine, np.nanmedian(mine))
        spread = filled / usual if usual > 0 else filled / np.median(filled)
        if usual > 0 and np.mean(filled >= _TIMES * usual) >= _TOLD:
            slow = float(np.nanmedian(mine))
            yield _Slow(link, slow, float(usual), 0, len(job), len(like))
            continue
        for first, last, base in raised(spread):
            before, after = (float(np.median(filled[slice(*s)])) for s in (base, (first, last)))
            if after >= _TIMES * before:
                yield _Slow(link, after, before, first, last, 0)


def _crosses(job: JobSteps, link: Link) -> bool:
    return job.hosts.get(link[0]) != job.hosts.get(link[1])
