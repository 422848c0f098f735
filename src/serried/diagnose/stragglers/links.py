"""Slow links: pairs of ranks whose messages take longer than those of other pairs, or than before.

    sender     |--SEND--|                      from when both are there until it has arrived;
    receiver |...waits..|                      counted where the receiver was there first
               └ transfer ┘

    0 ──42ms── 1 ──42ms── 2 ──1ms── 3          all links of rank 1 are slow, and only those: it is
                                               its card or cable, and most links being slow is no
                                               sign that this is usual

Links between machines are slower than those inside one, so like is compared with like.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.steps.table import JobSteps
from serried.diagnose.stragglers.cost import Costing
from serried.diagnose.stragglers.naming import period_of, ranks_at
from serried.diagnose.stragglers.slow import raised
from serried.finding import Sentence, said
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


@dataclass(frozen=True)
class _Group:
    """Holds the slow links of one rank, or those between two."""

    ranks: tuple[int, ...]
    slow: tuple[_Slow, ...]

    @property
    def first(self) -> int:
        """The first row in which one is slow."""
        return min(each.first for each in self.slow)

    @property
    def last(self) -> int:
        """The row after the last in which one is slow."""
        return max(each.last for each in self.slow)


def link_causes(trace: Trace, job: JobSteps, costing: Costing | None) -> Iterator[Cause]:
    """Yields links that are slower than their like or than before, and cost enough to say.

    Where they are all links of one rank, and others have none, it is that rank's.
    """
    links, table, each = _transfers(trace, job)
    for group in _grouped(list(_slow_links(job, links, table)), links):
        cost = _cost(job, group, each, costing)
        if cost < _WORTH:
            continue
        count = min(slow.num_others for slow in group.slow)
        yield Cause(
            CauseClass.STRAGGLER,
            "slow_link",
            group.ranks,
            _verdict(job, group, cost),
            confidence=0.8 if count > 1 else 0.65,
            chain=(
                said("compared with {count} links of its kind", count=count)
                if count
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


def _verdict(job: JobSteps, group: _Group, cost: float) -> Sentence:
    values = {
        "time": duration_text(float(np.median([each.transfer_ns for each in group.slow]))),
        "usual": duration_text(float(np.median([each.usual_ns for each in group.slow]))),
        "cost": cost,
        "period": period_of(job, group.first, group.last),
    }
    if len(group.ranks) == 1:
        return said(
            "the links of {who} are slow: a message to or from it takes {time} and not {usual}, "
            "which costs {cost:.1%} of each step, {period}",
            who=ranks_at(job, group.ranks),
            **values,
        )
    if len(group.slow) > 1:
        return said(
            "the link between {one} and {other} is slow: a message takes {time} and not {usual}, "
            "which costs {cost:.1%} of each step, {period}",
            one=ranks_at(job, group.ranks[:1]),
            other=ranks_at(job, group.ranks[1:]),
            **values,
        )
    return said(
        "the link from {sender} to {receiver} is slow: a message takes {time} and not {usual}, "
        "which costs {cost:.1%} of each step, {period}",
        sender=ranks_at(job, group.ranks[:1]),
        receiver=ranks_at(job, group.ranks[1:]),
        **values,
    )


def _cost(job: JobSteps, group: _Group, each: float, costing: Costing | None) -> float:
    """Returns the share of a step that links cost; ``each`` messages go over one in a step."""
    period = float(np.median(job.period_ns[group.first : group.last]))
    if costing is not None:
        usual = {slow.link: slow.usual_ns for slow in group.slow}
        first, last = int(job.steps[group.first]), int(job.steps[group.last - 1])
        saved = costing.without_links(usual, first, last)
        if saved > 0:
            return saved * 1e9 / period
    return sum((slow.transfer_ns - slow.usual_ns) * each for slow in group.slow) / period


def _grouped(slow: list[_Slow], links: Sequence[Link]) -> Iterator[_Group]:
    """Yields the slow links of a rank all of whose links are, then those between two ranks."""
    left = {each.link: each for each in slow}
    while left:
        rank = _common_rank([*left], links)
        if rank is not None:
            mine = [link for link in left if rank in link]
            ranks: tuple[int, ...] = (rank,)
        else:
            ranks = next(iter(left))
            mine = [link for link in (ranks, ranks[::-1]) if link in left]
        yield _Group(ranks, tuple(left.pop(link) for link in mine))


def _common_rank(slow: Sequence[Link], links: Sequence[Link]) -> int | None:
    """Returns a rank of several peers all of whose links are slow, where others have quick ones."""
    for rank in dict.fromkeys(rank for link in slow for rank in link):
        own = [link for link in links if rank in link]
        peers = {other for link in own for other in link if other != rank}
        if len(peers) > 1 and len(own) < len(links) and {*own} <= {*slow}:
            return rank
    return None


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
    known = (~np.isnan(table)).sum(axis=0) >= _LEAST_STEPS
    for crosses in (True, False):
        alike = [at for at in np.flatnonzero(known).tolist() if _crosses(job, links[at]) is crosses]
        quick = _quick(table, alike, links)
        usual = float(np.nanmedian(table[:, quick])) if quick else 0.0
        for at in alike:
            filled = np.where(np.isnan(table[:, at]), np.nanmedian(table[:, at]), table[:, at])
            if at not in quick and np.mean(filled >= _TIMES * usual) >= _TOLD:
                slow = float(np.nanmedian(table[:, at]))
                yield _Slow(links[at], slow, usual, 0, len(job), len(quick))
                continue
            for first, last, base in raised(filled / (usual or np.median(filled))):
                before, after = (float(np.median(filled[slice(*s)])) for s in (base, (first, last)))
                if after >= _TIMES * before:
                    yield _Slow(links[at], after, before, first, last, 0)


def _quick(table: NDArray[np.float64], alike: list[int], links: list[Link]) -> list[int]:
    """Returns which of the links that are alike are the quick ones; all where none stands out.

    The widest gap parts them from the slow ones. Most may be slow only where one rank has them all.
    """
    if not alike:
        return []
    medians = np.nanmedian(table[:, alike], axis=0)
    order = np.argsort(medians)
    ascending = medians[order]
    ratios = ascending[1:] / np.maximum(ascending[:-1], 1.0)
    cut = int(np.argmax(ratios)) + 1 if len(ratios) and ratios.max() >= _TIMES else len(alike)
    slow = [links[alike[at]] for at in order[cut:]]
    if 2 * len(slow) > len(alike) and _common_rank(slow, [links[at] for at in alike]) is None:
        return alike
    return [alike[at] for at in order[:cut].tolist()]


def _crosses(job: JobSteps, link: Link) -> bool:
    return job.hosts.get(link[0]) != job.hosts.get(link[1])
