"""Where chains of waiting end: at a rank that waits for nobody, or in a circle of ranks.

    7 ──▶ 5        5 waits for nobody: it is the root       (a loose end)
    2 ──▶ 5 ⇄ 7    5 and 7 wait for each other: one of them is out of order     (a circle)

A chain's end is a strongly connected part of the graph that nothing leads out of (Tarjan's
algorithm, without recursion, in time linear in edges).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from serried.diagnose.waits.graph import WaitGraph


@dataclass(frozen=True)
class Knot:
    """Holds where chains of waiting end, and who waits for it in the end."""

    ranks: tuple[int, ...]
    is_circle: bool
    waiters: tuple[int, ...]
    """All who wait for it, directly or not, without its own ranks."""


def knots(graph: WaitGraph) -> tuple[Knot, ...]:
    """Returns the ends of all chains of waiting, that which most ranks wait for first."""
    found = [knot for knot, is_end in _knots(graph) if is_end]
    return tuple(sorted(found, key=lambda knot: (-len(knot.waiters), knot.ranks)))


def inner_circles(graph: WaitGraph) -> tuple[Knot, ...]:
    """Returns the circles of ranks that wait for others besides, as a barrier waits for all.

    Whoever else comes, those in a circle never do.
    """
    return tuple(knot for knot, is_end in _knots(graph) if knot.is_circle and not is_end)


def _knots(graph: WaitGraph) -> Iterator[tuple[Knot, bool]]:
    """Yields all parts that anybody waits for, and whether nothing leads out of them."""
    for part in _components(graph.successors):
        ranks = tuple(sorted(node for node in part if node < graph.state.world_size))
        inside = set(part)
        is_end = all(after in inside for node in part for after in graph.successors[node])
        if not ranks or not (is_end or len(ranks) > 1):
            continue
        waiters = graph.waiters(ranks)
        if waiters or len(ranks) > 1:
            yield Knot(ranks, len(ranks) > 1, waiters), is_end


def _components(successors: Sequence[Sequence[int]]) -> list[list[int]]:
    """Returns the strongly connected parts of a graph, each as its nodes."""
    count, found = 0, []
    order = [-1] * len(successors)
    low = [0] * len(successors)
    is_open = [False] * len(successors)
    path: list[int] = []
    for start in range(len(successors)):
        if order[start] >= 0:
            continue
        work = [(start, 0)]
        while work:
            node, taken = work.pop()
            if not taken:
                order[node] = low[node] = count
                count += 1
                path.append(node)
                is_open[node] = True
            for taken in range(taken, len(successors[node])):  # noqa: B020
                after = successors[node][taken]
                if order[after] < 0:
                    work += [(node, taken + 1), (after, 0)]
                    break
                if is_open[after]:
                    low[node] = min(low[node], order[after])
            else:
                if low[node] == order[node]:
                    found.append(_closed(path, is_open, node))
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
    return found


def _closed(path: list[int], is_open: list[bool], root: int) -> list[int]:
    """Takes the nodes of a finished part off the path and returns them."""
    part: list[int] = []
    while not part or part[-1] != root:
        part.append(path.pop())
        is_open[part[-1]] = False
    return part
