"""Slow nodes, ranks, links and groups, by comparing like with like; numpy only.

Times are compared as logarithms, item by item within one kind: links between nodes with links
between nodes, groups with groups of their kind, size and spread. For n items x:

    reference   the median of x in a round (the lower one, so that half of the items may be slow)
    spread      the median of |x - reference|, over rounds: how far apart healthy items lie
    noise       how much one item differs from round to round (its median, over items)
    slow        x - reference > log(least), 5 spreads and 5 noises, in *every* round

and at sizes that go together: from some size up (bandwidth) or down (latency). ``least`` is
larger where few items are alike. A machine that is noisy as a whole has large spreads and
noises, and names nobody.

    best send of each node                 n2 n0 n1  …           links left over
    n0 ████ n1 ████ n2 ███████████  ─>  name n2, drop its  ─>   compare link by link
    (over the node's best partner)         messages

Ends come before links: a node whose best message is slow has a slow end, whoever it sends to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from serried.errors import listed
from serried.finding import Finding, Sentence, said
from serried.runtime.check.report import GroupTimes, Link, Seat
from serried.units import bytes_text

Times = NDArray[np.float64]
Key = TypeVar("Key", bound=Hashable)

LEAST = {2: 3.0, 3: 2.0}
LEAST_OF_MANY = 1.6
"""Ratios below which nothing is called slow, by the number of items alike."""

# Normal noise goes beyond five standard deviations once in three million times.
SPREADS = 5.0
SIGMA = 1.4826
"""Median absolute deviations in a standard deviation of normal noise."""

SENDS, RECEIVES = "sends", "receives"


@dataclass(frozen=True)
class Slow:
    """Says how many times longer something takes than its like, and at which sizes (columns)."""

    ratio: float
    columns: tuple[int, ...]
    num_alike: int


def slow_ones(items: Mapping[Key, Times]) -> dict[Key, Slow]:
    """Returns which items are slow; each has times (rounds, sizes), nanoseconds.

    >>> even = np.array([[10.0, 100.0], [11.0, 105.0]])
    >>> slow_ones({"a": even, "b": even * 1.1, "c": even * [1.0, 8.0], "d": even})
    {'c': Slow(ratio=8.0, columns=(1,), num_alike=4)}
    """
    if len(items) < 2:
        return {}
    # Logarithms, so that half as fast and twice as slow are equally far; medians, so that a few
    # slow items move neither the reference nor the spread by which they are judged.
    x = np.log(np.stack(list(items.values())))
    beyond = x - _lower_median(x)
    spread = SIGMA * np.median(_lower_median(np.abs(beyond)), axis=0)
    noise = SIGMA * np.median(np.abs(x - np.median(x, axis=1, keepdims=True)), axis=(0, 1))
    least = math.log(LEAST.get(len(items), LEAST_OF_MANY))
    limit = np.maximum(least, SPREADS * np.maximum(spread, noise))
    is_slow = (beyond > limit).all(axis=1)  # in every round: a hiccup is in one
    ratios = np.exp(np.median(beyond, axis=1))
    found = {}
    for key, flags, ratio in zip(items, is_slow, ratios, strict=True):
        columns = tuple(int(column) for column in np.flatnonzero(flags))
        if _go_together(columns, x.shape[2]):
            found[key] = Slow(round(float(ratio[list(columns)].max()), 1), columns, len(items))
    return found


def slow_links(
    links: Sequence[Link], seats: Sequence[Seat], sizes_bytes: Sequence[int]
) -> list[Finding]:
    """Returns findings that name slow nodes, ranks and links, the wider ones first."""
    search = _Search(links, seats, sizes_bytes)
    search.ends(lambda link: link.is_inter, of_node=True)
    search.links(lambda link: link.is_inter, of_node=True)
    search.ends(lambda link: link.is_inter, of_node=False)
    search.ends(lambda link: not link.is_inter, of_node=False)
    search.links(lambda link: True, of_node=False)
    return search.findings


def slow_groups(
    timings: Iterable[GroupTimes], members: Mapping[str, list[list[int]]]
) -> list[Finding]:
    """Returns findings on groups that are slow beside their like in every operation."""
    # Groups are compared with those of their kind that have as many ranks on as many nodes.
    tables: dict[tuple[str, int, int], dict[str, dict[int, list[Times]]]] = {}
    for each in timings:
        for number, shape in enumerate(zip(each.sizes, each.nodes, strict=True)):
            groups = tables.setdefault((each.kind, *shape), {}).setdefault(each.operation, {})
            groups.setdefault(number, []).append(each.times_ns[number])
    findings = []
    for (kind, _, _), operations in tables.items():
        slow = [
            slow_ones({number: np.stack(rows, axis=1) for number, rows in groups.items()})
            for groups in operations.values()
        ]
        for number in sorted(set.intersection(*(set(each) for each in slow))):
            worst = max((each[number] for each in slow), key=lambda one: one.ratio)
            findings.append(_slow_group(kind, number, members[kind][number], worst))
    return findings


class _Search:
    """Looks for slow ends and links, leaving out what is explained by those found before."""

    def __init__(
        self, links: Sequence[Link], seats: Sequence[Seat], sizes_bytes: Sequence[int]
    ) -> None:
        self._links = list(links)
        self._seats = {seat.rank: seat for seat in seats}
        self._sizes_bytes = sizes_bytes
        self.findings: list[Finding] = []

    def ends(self, among: Callable[[Link], bool], *, of_node: bool) -> None:
        """Names nodes (or ranks) that are slow at sending or receiving, whoever the partner."""
        found: dict[int, dict[str, Slow]] = {}
        for does in (SENDS, RECEIVES):
            for end, slow in slow_ones(self._best(among, does, of_node)).items():
                found.setdefault(end, {})[does] = slow
        for end, ways in sorted(found.items()):
            self.findings.append(self._slow_end(end, ways, of_node))
        # The messages that a slow sender sends are explained by it and left out of narrower
        # searches; those that it receives stay.
        self._links = [
            link
            for link in self._links
            if SENDS not in found.get(self._end(link.source, of_node), {})
            and RECEIVES not in found.get(self._end(link.target, of_node), {})
        ]

    def links(self, among: Callable[[Link], bool], *, of_node: bool) -> None:
        """Names single links, between nodes or between ranks; each with links of its sort."""
        items: dict[bool, dict[tuple[int, int], Times]] = {}
        for link in filter(among, self._links):
            # Several ranks of two nodes may have met: the best of their times is what the nodes'
            # link can do.
            pair = self._end(link.source, of_node), self._end(link.target, of_node)
            alike = items.setdefault(link.is_inter, {})
            alike[pair] = np.minimum(alike.get(pair, link.times_ns), link.times_ns)
        named = set()
        for alike in items.values():
            for pair, slow in slow_ones(alike).items():
                self.findings.append(self._slow_link(pair, slow, of_node))
                named.add(pair)
        self._links = [
            link
            for link in self._links
            if (self._end(link.source, of_node), self._end(link.target, of_node)) not in named
        ]

    def _best(self, among: Callable[[Link], bool], does: str, of_node: bool) -> dict[int, Times]:
        """Returns each end's times with its best partner, where it has two partners or more."""
        partners: dict[int, dict[int, Times]] = {}
        for link in filter(among, self._links):
            ends = self._end(link.source, of_node), self._end(link.target, of_node)
            end, other = ends if does == SENDS else ends[::-1]
            times = partners.setdefault(end, {})
            times[other] = np.minimum(times.get(other, link.times_ns), link.times_ns)
        # An end that has met one partner only cannot be told from the link between the two.
        return {
            end: np.minimum.reduce(list(times.values()))
            for end, times in partners.items()
            if len(times) > 1
        }

    def _end(self, rank: int, of_node: bool) -> int:
        return self._seats[rank].node if of_node else rank

    def _slow_end(self, end: int, ways: Mapping[str, Slow], of_node: bool) -> Finding:
        worst = max(ways.values(), key=lambda slow: slow.ratio)
        both = said("sends and receives")
        does = both if len(ways) > 1 else said("sends") if SENDS in ways else said("receives")
        evidence = said(
            "{who} {does} {ratio} x slower than its like, of {count} compared, in every round, "
            "with messages of {sizes}",
            who=self._name(end, of_node),
            does=does,
            ratio=worst.ratio,
            count=worst.num_alike,
            sizes=self._sizes(worst),
        )
        ranks = [s.rank for s in self._seats.values() if s.node == end] if of_node else [end]
        cure = said("look at its network card, cable and switch port, and at what else runs there")
        kind = "slow-node" if of_node else "slow-rank"
        return Finding(kind, (evidence,), ranks=tuple(ranks), cure=cure)

    def _slow_link(self, pair: tuple[int, int], slow: Slow, of_node: bool) -> Finding:
        evidence = said(
            "messages from {source} to {target} take {ratio} x as long as on links like it, of "
            "{count} compared, in every round, with messages of {sizes}",
            source=self._name(pair[0], of_node),
            target=self._name(pair[1], of_node),
            ratio=slow.ratio,
            count=slow.num_alike,
            sizes=self._sizes(slow),
        )
        ranks = [seat.rank for seat in self._seats.values() if of_node and seat.node in pair]
        cure = said("look at the path between the two")
        return Finding("slow-link", (evidence,), ranks=tuple(ranks) or pair, cure=cure)

    def _name(self, end: int, of_node: bool) -> Sentence:
        seats = self._seats.values()
        if of_node:
            host = next(seat.host for seat in seats if seat.node == end)
            return said("node {node} ({host})", node=end, host=host)
        return said("rank {rank} on node {node}", rank=end, node=self._seats[end].node)

    def _sizes(self, slow: Slow) -> str:
        return listed(bytes_text(self._sizes_bytes[column]) for column in slow.columns)


def _slow_group(kind: str, number: int, members: list[int], slow: Slow) -> Finding:
    evidence = said(
        "{kind} group {number} {members} takes {ratio} x as long as groups like it, of {count} "
        "compared, in every operation and round",
        kind=kind,
        number=number,
        members=f"[{listed(members, limit=16).replace(',', '')}]",
        ratio=slow.ratio,
        count=slow.num_alike,
    )
    return Finding("slow-group", (evidence,), ranks=tuple(members), groups=(kind,))


def _lower_median(x: Times) -> Times:
    """Returns the median over items, the lower of the two middle ones where they are even."""
    ordered: Times = np.sort(x, axis=0)
    middle: Times = ordered[(len(x) - 1) // 2]
    return middle


def _go_together(columns: tuple[int, ...], num_sizes: int) -> bool:
    """Tells whether these sizes are all from one on upwards, or all from one on downwards."""
    # Latency tells at small sizes and bandwidth at large ones; a size in between alone is chance.
    if not columns or columns[-1] - columns[0] != len(columns) - 1:
        return False
    return columns[0] == 0 or columns[-1] == num_sizes - 1
