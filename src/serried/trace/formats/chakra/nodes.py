"""A rank's spans as nodes of a Chakra trace: what it computes and sends, and what waits for what.

    spans    ├── F0 ──├ all_reduce ┤── F0 ──┤├ SEND_F0 ┤   ├ RECV_B0 ┤├── B0 …
    nodes    COMP 1 ── COLL 2 ── COMP 3 ──┬────────────── COMP 6 …
                                          ├─ SEND 4       │
                                          └─ RECV 5 ──────┘

Computations and collectives follow one another as they ran. A send comes after what made it and
holds up nothing; a receive holds up what stands behind it, and so does a collective that is on its
way behind a computation, from where it was waited for. Time in which a rank waited is no node: the
simulator finds it anew.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from serried.action import COMPUTE, EXCHANGES, ActionKind
from serried.trace.formats.chakra.node import COLLECTIVES, ChakraNode, NodeType
from serried.trace.model.pairs import RECEIVES, SENDS, pair_messages
from serried.trace.model.trace import Trace

_WORK = [*COMPUTE, ActionKind.OPTIMIZER]
_WAITS = [*EXCHANGES, ActionKind.REDUCE_GRAD, ActionKind.UNSHARD, ActionKind.RESHARD]


@dataclass(frozen=True)
class StepCollective:
    """Describes a collective that a plan runs over a rank's group at the end of a step."""

    kind: ActionKind
    ranks: tuple[int, ...]
    size_bytes: int


@dataclass(frozen=True)
class StepEnd:
    """Holds what a planned rank does once its pipeline has drained."""

    reduced: tuple[StepCollective, ...] = ()
    gathered: tuple[StepCollective, ...] = ()
    """What stands behind the optimizer."""
    work_ns: int = 0
    """What the optimizer and the rest take."""


class _Item(NamedTuple):
    """Names something of a rank in the order in which it happens; waits first at one moment."""

    start: int
    order: int
    row: int
    end: int


_WAIT, _LAUNCH, _SEND, _RECEIVE, _COMPUTE = range(5)


@dataclass
class TraceNodes:
    """Makes the nodes of a trace's ranks, with the messages and groups that ranks share."""

    trace: Trace
    message_bytes: int | None = None
    """What a message has of which the trace does not tell it."""
    ends: Mapping[int, StepEnd] = field(default_factory=dict)
    """How the step of each rank of a plan ends."""
    num_untold: int = 0
    """Collectives left out so far, of which nobody recorded what they moved."""

    def __post_init__(self) -> None:
        spans = self.trace.spans
        pairs = pair_messages(spans)
        self._tags = {
            row: number
            for number, both in enumerate(zip(pairs.sends, pairs.receives, strict=True))
            for row in map(int, both)
        }
        self._groups: dict[tuple[int, ...], str] = {}
        self._bounds = np.searchsorted(spans.rank, [*self.trace.ranks, 1 << 31])

    @property
    def groups(self) -> dict[str, list[int]]:
        """The groups that nodes name, each with its ranks."""
        return {name: list(ranks) for ranks, name in self._groups.items()}

    def is_sized(self) -> bool:
        """Tells whether it is known of every message how many bytes it has."""
        rows = np.fromiter(self._tags, dtype=np.int64, count=len(self._tags))
        return self.message_bytes is not None or not (self.trace.spans.size_bytes[rows] < 0).any()

    def of_rank(self, rank: int) -> Iterator[ChakraNode]:
        """Yields the nodes of one rank."""
        place = self.trace.ranks.index(rank)
        first, last = self._bounds[place], self._bounds[place + 1]
        chain = _Chain()
        for item in sorted(self._items(range(first, last))):
            yield from self._nodes(item, chain)

    def _items(self, rows: range) -> Iterator[_Item]:
        spans = self.trace.spans
        kinds = [ActionKind(each) for each in spans.kind[rows.start : rows.stop].tolist()]
        starts = spans.start_ns[rows.start : rows.stop].tolist()
        ends = spans.end_ns[rows.start : rows.stop].tolist()
        table = list(zip(rows, kinds, starts, ends, strict=True))
        waits = [_Item(start, _WAIT, row, end) for row, kind, start, end in table if kind in _WAITS]
        launched = dict(self._launches(table, waits))
        yield from (_Item(at, _LAUNCH, row, at) for row, at in launched.items())
        yield from waits
        free = 0
        for row, kind, start, end in table:
            if kind is ActionKind.IN_FLIGHT and row in launched:
                yield _Item(end, _WAIT, row, end)
            elif row in self._tags:
                yield _Item(start, _SEND if kind in SENDS else _RECEIVE, row, end)
            elif kind in _WORK:
                yield from _pieces(_Item(max(start, free), _COMPUTE, row, end), waits)
                free = max(free, end)

    def _launches(
        self, table: Sequence[tuple[int, ActionKind, int, int]], waits: Sequence[_Item]
    ) -> Iterator[tuple[int, int]]:
        """Yields the row of each collective that was on its way behind work, and its launch."""
        waited = {wait.start: wait.row for wait in waits if self._is_told(wait.row)}
        for row, kind, start, end in table:
            if kind is not ActionKind.IN_FLIGHT:
                continue
            if self._is_told(row):
                yield row, start
            elif end in waited:
                yield waited[end], start

    def _nodes(self, item: _Item, chain: _Chain) -> Iterator[ChakraNode]:
        row, kind = item.row, ActionKind(int(self.trace.spans.kind[item.row]))
        rank = int(self.trace.spans.rank[row])
        times = item.start, item.end
        what = str(self.trace.spans[row].action)
        if item.order in (_SEND, _RECEIVE):
            yield chain.message(item.order == _RECEIVE, what, times, self._message(row))
            return
        end = self.ends.get(rank)
        if item.order == _LAUNCH:
            for told in self._moved(row):
                yield chain.launch(row, told.kind.name, times, self._collective(told))
            return
        if item.order == _WAIT:
            if chain.await_launched(row):
                return
            for told in end.reduced if end else self._moved(row):
                yield chain.follow(NodeType.COMM_COLL_NODE, what, times, self._collective(told))
            return
        is_last = kind is ActionKind.OPTIMIZER and end is not None
        if end is not None and is_last:
            times = item.start, item.start + end.work_ns
        if times[1] > times[0]:
            yield chain.follow(NodeType.COMP_NODE, what, times)
        for told in end.gathered if end is not None and is_last else ():
            yield chain.follow(
                NodeType.COMM_COLL_NODE, told.kind.name, (item.end,) * 2, self._collective(told)
            )

    def _moved(self, row: int) -> Sequence[StepCollective]:
        """Returns the collectives that a span is made of, each with an equal part of its bytes."""
        if not self._is_told(row):
            self.num_untold += 1
            return ()
        group = self.trace.groups[int(self.trace.spans.group[row])]
        size = int(self.trace.spans.size_bytes[row])
        parts = np.diff(np.linspace(0, size, group.count + 1).round().astype(int)).tolist()
        return [StepCollective(group.kind, group.ranks, part) for part in parts]

    def _is_told(self, row: int) -> bool:
        number = int(self.trace.spans.group[row])
        is_known = number >= 0 and self.trace.groups[number].kind in COLLECTIVES
        return is_known and int(self.trace.spans.size_bytes[row]) > 0

    def _collective(self, told: StepCollective) -> dict[str, int | str]:
        # Number 0 is what simulators take for all ranks, so groups begin at 1.
        name = self._groups.setdefault(told.ranks, str(len(self._groups) + 1))
        return {
            "comm_type": COLLECTIVES[told.kind],
            "comm_size": told.size_bytes,
            "pg_name": name,
        }

    def _message(self, row: int) -> dict[str, int | str]:
        spans = self.trace.spans
        mine, peer = int(spans.rank[row]), int(spans.peer[row])
        is_sent = int(spans.kind[row]) not in RECEIVES
        size = int(spans.size_bytes[row])
        return {
            "comm_src": mine if is_sent else peer,
            "comm_dst": peer if is_sent else mine,
            "comm_tag": self._tags[row],
            "comm_size": size if size >= 0 else self.message_bytes or 0,
        }


@dataclass
class _Chain:
    """Numbers a rank's nodes, and knows what the next one must wait for."""

    count: int = 0
    last: tuple[int, ...] = ()
    awaited: tuple[int, ...] = ()
    launched: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """By row, the collectives that are on their way."""

    def follow(
        self,
        type_: NodeType,
        what: str,
        times: tuple[int, int],
        attributes: Mapping[str, int | str] | None = None,
    ) -> ChakraNode:
        """Returns the next node of those that run one after the other."""
        self.count += 1
        after, self.last, self.awaited = (*self.last, *self.awaited), (self.count,), ()
        return ChakraNode(self.count, type_, what, after, *times, attributes or {})

    def launch(
        self, row: int, what: str, times: tuple[int, int], attributes: Mapping[str, int | str]
    ) -> ChakraNode:
        """Returns a collective that holds up nothing before ``await_launched``."""
        self.count += 1
        before = self.launched.get(row, ())
        self.launched[row] = (*before, self.count)
        after = before[-1:] or self.last
        return ChakraNode(self.count, NodeType.COMM_COLL_NODE, what, after, *times, attributes)

    def await_launched(self, row: int) -> bool:
        """Lets what stands behind wait for what was launched of ``row``; False where nothing."""
        found = self.launched.pop(row, ())
        self.awaited = (*self.awaited, *found)
        return bool(found)

    def message(
        self,
        is_received: bool,
        what: str,
        times: tuple[int, int],
        attributes: Mapping[str, int | str],
    ) -> ChakraNode:
        """Returns a message beside them; one that is received holds up what stands behind it."""
        self.count += 1
        type_ = NodeType.COMM_RECV_NODE if is_received else NodeType.COMM_SEND_NODE
        if is_received:
            self.awaited = (*self.awaited, self.count)
        return ChakraNode(self.count, type_, what, self.last, *times, attributes)


def _pieces(whole: _Item, waits: Sequence[_Item]) -> Iterator[_Item]:
    """Yields a computation without the exchanges inside it, whose time the network makes."""
    at = whole.start
    for place in range(bisect_left(waits, (whole.start,)), len(waits)):
        wait = waits[place]
        if wait.start >= whole.end:
            break
        if wait.start > at:
            yield whole._replace(start=at, end=wait.start)
        at = max(at, wait.end)
    if at < whole.end or whole.start == whole.end:
        yield whole._replace(start=at, end=whole.end)
