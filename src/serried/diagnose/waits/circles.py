"""The roots of circles: of ranks that wait for each other, the one that is where it should not be.

    1. a rank that left the order of its peers or of its own steps before    (order)
    2. a rank that called what its peers call from another line of theirs    (lines_apart)
    3. of two neighbours whose messages cross, the one out of schedule       (messages)
    4. a rank that is past a collective which it has not issued              (position)
    5. a rank that waits in an operation which its steps before did not have

Where none of these holds, the circle is named and nobody is accused.
"""

from __future__ import annotations

from collections.abc import Iterator

from serried.diagnose.job_state.state import MESSAGES
from serried.diagnose.waits.graph import WaitGraph
from serried.diagnose.waits.knots import Knot, inner_circles
from serried.diagnose.waits.lines_apart import lines_apart
from serried.diagnose.waits.messages import HowCrossed, crossed
from serried.diagnose.waits.order import Deviation, HowStrayed, is_unusual
from serried.diagnose.waits.position import left_out
from serried.diagnose.waits.root import Root, RootKind

_OF_DEPARTURE = {
    HowStrayed.SKIPPED: RootKind.SKIPPED,
    HowStrayed.SWAPPED: RootKind.SWAPPED,
    HowStrayed.EXTRA: RootKind.ALONE,
    HowStrayed.OTHER_OPERATION: RootKind.OTHER_OPERATION,
    HowStrayed.OTHER_GROUP: RootKind.OTHER_GROUP,
}

_OF_CROSSING = {
    HowCrossed.BOTH_SEND: RootKind.OUT_OF_SCHEDULE,
    HowCrossed.BOTH_RECEIVE: RootKind.LEFT_OUT_SEND,
    HowCrossed.APART: RootKind.WRONG_PEER,
}

_OF_STANDING = {
    HowCrossed.BOTH_SEND: 0.6,  # one send too many of the earlier stage stands just so
    HowCrossed.APART: 0.65,
}
"""How sure a rank is named by where the two stand, and by no recorded action."""


def roots_of_circle(graph: WaitGraph, knot: Knot, strayed: dict[int, Deviation]) -> Iterator[Root]:
    """Yields the root of a circle, without ranks where nothing tells who it is.

    ``strayed`` holds who left an order, by rank.
    """
    inside = [strayed[rank] for rank in knot.ranks if rank in strayed]
    if inside and len(inside) < len(knot.ranks):
        yield _strayed(graph, knot, inside)
    elif 0 < len(apart := lines_apart(graph.state, knot.ranks)) < len(knot.ranks):
        ranks = tuple(sorted(apart))
        waiters = tuple(sorted({*knot.waiters, *knot.ranks} - set(ranks)))
        kind = RootKind.LEFT_ORDER
        yield Root(kind, ranks, 0.8, waiters, circle=knot.ranks, line_apart=apart[ranks[0]])
    elif pairs := [each for each in crossed(graph, knot.ranks) if each.culprit is not None]:
        for pair in pairs[:1]:
            assert pair.culprit is not None
            waiters = tuple(sorted({*knot.waiters, *knot.ranks} - {pair.culprit}))
            confidence = 0.8 if pair.is_recorded else _OF_STANDING[pair.crossing]
            kind = _OF_CROSSING[pair.crossing]
            yield Root(kind, (pair.culprit,), confidence, waiters, circle=knot.ranks, crossed=pair)
    elif passed := left_out(graph, knot.ranks):
        ranks = tuple(sorted(passed))
        waiters = tuple(sorted({*knot.waiters, *knot.ranks} - set(ranks)))
        yield Root(
            RootKind.SKIPPED, ranks, 0.8, waiters, circle=knot.ranks, meeting=passed[ranks[0]]
        )
    elif odd := _unusual(graph, knot):
        waiters = tuple(sorted({*knot.waiters, *knot.ranks} - set(odd)))
        meeting = graph.meeting_of(odd[0])
        yield Root(RootKind.ALONE, odd, 0.75, waiters, circle=knot.ranks, meeting=meeting)
    elif both := [p for p in crossed(graph, knot.ranks) if p.crossing is HowCrossed.BOTH_SEND]:
        pair = both[0]
        circle = (pair.earlier, pair.later)
        waiters = tuple(sorted({*knot.waiters, *knot.ranks} - set(circle)))
        yield Root(RootKind.OUT_OF_SCHEDULE, None, 0.6, waiters, circle=circle, crossed=pair)
    else:
        yield Root(RootKind.CIRCLE, None, 0.4, knot.waiters, circle=knot.ranks)


def roots_of_inner(graph: WaitGraph, strayed: dict[int, Deviation]) -> Iterator[Root]:
    """Yields who strayed in a circle that waits for others besides."""
    for knot in inner_circles(graph):
        inside = [strayed[rank] for rank in knot.ranks if rank in strayed]
        if inside and len(inside) < len(knot.ranks):
            yield _strayed(graph, knot, inside)


def _strayed(graph: WaitGraph, knot: Knot, inside: list[Deviation]) -> Root:
    ranks = tuple(sorted(each.rank for each in inside))
    first = inside[0]
    meeting = next((m for m in graph.meetings if first.rank in m.awaited), None)
    kind = kind_of_deviation(first)
    if kind is RootKind.SKIPPED and len(ranks) > 1 and all(each.is_last for each in inside):
        # One that leaves out a collective holds others up; a circle of those who have each
        # come to a later one first is the opposite order of two groups.
        kind = RootKind.SWAPPED
    return Root(
        kind,
        ranks,
        0.9 if first.by_peers else 0.85,
        tuple(sorted({*knot.waiters, *knot.ranks} - set(ranks))),
        circle=knot.ranks,
        meeting=meeting,
        deviation=first,
    )


def kind_of_deviation(deviation: Deviation) -> RootKind:
    """Returns the kind of a departure: of messages it tells which was left out, or went astray."""
    expected = deviation.expected[1]
    if expected not in MESSAGES:
        return _OF_DEPARTURE[deviation.departure]
    is_ahead = deviation.departure is HowStrayed.SKIPPED
    if deviation.operation.op == expected and not is_ahead:
        return RootKind.WRONG_PEER
    if deviation.departure in (HowStrayed.EXTRA, HowStrayed.SWAPPED):
        return RootKind.OUT_OF_SCHEDULE
    return RootKind.LEFT_OUT_SEND if expected == "send" else RootKind.LEFT_OUT_RECEIVE


def _unusual(graph: WaitGraph, knot: Knot) -> tuple[int, ...]:
    """Returns those of a circle that wait in what their steps before did not have, if not all."""
    odd: list[int] = []
    usual: list[int] = []
    for rank in knot.ranks:
        doing = graph.state.ranks[rank].doing
        if doing is None:
            continue
        is_odd = doing.op not in MESSAGES and is_unusual(graph.state, graph.state.ranks[rank])
        (odd if is_odd else usual).append(rank)
    return tuple(odd) if usual else ()
