"""Moments: what a rank does at every one, of each exactly one thing; waiting is not computing.

    rank   [F......|ALL_REDUCE|....] .recv wait..[B...........|tail]  [OPTIMIZER]
            forward  exchange  fwd    late transf. backward exchange  o  optimizer

Where several spans of a rank cover one moment, the first named here counts:

    exchange    the rank is held up by a collective, inside a computation or outside of any
    forward, backward, weight     computations
    late        a receive whose sender has not begun to send;  transfer  from then on
    send        a message being sent
    reduce      gradients or parameters of data parallel ranks, behind no computation
    optimizer   its step
    data        a batch being loaded, where that was recorded
    flight      an exchange on its way that nothing waits for
    other       nothing recorded: Python, launches

So between any two moments the states of a rank add up to the time, to the nanosecond, whatever
overlaps. Sums between two moments are differences of running sums, so that windows may overlap too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE, EXCHANGES, ActionKind, Spans
from serried.trace.model.pairs import (
    RECEIVES,
    SENDS,
    computed_from,
    pair_messages,
    whole_hand_overs,
)

Times = NDArray[np.int64]
Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


class State(IntEnum):
    """Names what a rank does at a moment; of several the lowest number counts."""

    EXCHANGE = 0
    FORWARD = 1
    BACKWARD = 2
    WEIGHT = 3
    LATE = 4
    TRANSFER = 5
    SEND = 6
    REDUCE = 7
    OPTIMIZER = 8
    DATA = 9
    FLIGHT = 10
    OTHER = 11


COMPUTING = (State.FORWARD, State.BACKWARD, State.WEIGHT)
WAITING = (State.EXCHANGE, State.LATE, State.TRANSFER, State.SEND, State.REDUCE)
"""States in which a rank is held up by others, or by what it hands them."""

_STATE_OF: dict[ActionKind, State] = {
    **dict.fromkeys(EXCHANGES, State.EXCHANGE),
    ActionKind.F: State.FORWARD,
    ActionKind.OVERLAP_F_B: State.FORWARD,
    ActionKind.B: State.BACKWARD,
    ActionKind.I: State.BACKWARD,
    ActionKind.W: State.WEIGHT,
    **dict.fromkeys(RECEIVES, State.TRANSFER),
    **dict.fromkeys(SENDS, State.SEND),
    ActionKind.REDUCE_GRAD: State.REDUCE,
    ActionKind.UNSHARD: State.REDUCE,
    ActionKind.OPTIMIZER: State.OPTIMIZER,
    ActionKind.IN_FLIGHT: State.FLIGHT,
}


def wait_rows(spans: Spans) -> Mask:
    """Tells which spans are waits wherever they lie, inside a computation too.

    A reduction with a microbatch is one that a backward was held up by; one without is on its way
    behind the backward, or follows it.
    """
    is_held = (spans.kind == ActionKind.REDUCE_GRAD) & (spans.microbatch >= 0)
    return np.asarray(np.isin(spans.kind, sorted(EXCHANGES)) | is_held)


def computing_ns(spans: Spans) -> Times:
    """Returns how long each span took less what the rank waited inside it, overlaps once.

    >>> none, wait = np.zeros(3, dtype=np.int32), ActionKind.ALL_REDUCE
    >>> kind = np.array([ActionKind.B, wait, wait], dtype=np.int32)
    >>> starts, ends = np.array([0, 4, 5]), np.array([10, 6, 9])
    >>> int(computing_ns(Spans(none, none, kind, none, none, none, starts, ends))[0])
    5
    """
    computes = np.flatnonzero(_is_compute(spans))
    taken = spans.end_ns - spans.start_ns
    taken[computes] -= _overlap_ns(spans, computes, np.flatnonzero(wait_rows(spans)))
    return taken


def without_waits(spans: Spans) -> Spans:
    """Returns the same spans, where computations end as early as if they had not waited inside."""
    return replace(spans, end_ns=spans.start_ns + computing_ns(spans))


def hidden_reductions(spans: Spans) -> Mask:
    """Tells which spans are reductions on their way behind the rank's computations, wholly."""
    is_behind = (spans.kind == ActionKind.REDUCE_GRAD) & ~wait_rows(spans)
    return np.asarray(is_behind & in_computations(spans))


def in_computations(spans: Spans) -> Mask:
    """Tells which spans that are no computations lie in the rank's computations, wholly."""
    computes = _is_compute(spans)
    rows = np.flatnonzero(~computes & (spans.end_ns > spans.start_ns))
    inside = np.zeros(len(spans), dtype=np.bool_)
    covered = _overlap_ns(spans, rows, np.flatnonzero(computes))
    inside[rows[covered == spans.end_ns[rows] - spans.start_ns[rows]]] = True
    return inside


def _overlap_ns(spans: Spans, rows: Rows, others: Rows) -> Times:
    """Returns how much of each of ``rows`` some of ``others`` on its rank covers."""
    found = np.zeros(len(rows), dtype=np.int64)
    order = np.argsort(spans.rank[rows], kind="stable")
    rows = rows[order]
    others = others[np.argsort(spans.rank[others], kind="stable")]
    for rank in np.intersect1d(spans.rank[rows], spans.rank[others]):
        mine = slice(*np.searchsorted(spans.rank[rows], [rank, rank + 1]))
        own = others[slice(*np.searchsorted(spans.rank[others], [rank, rank + 1]))]
        found[order[mine]] = _covered(
            spans.start_ns[own],
            spans.end_ns[own],
            spans.start_ns[rows[mine]],
            spans.end_ns[rows[mine]],
        )
    return found


def _is_compute(spans: Spans) -> Mask:
    return np.isin(spans.kind, sorted(COMPUTE))


def _covered(starts: Times, ends: Times, begin: Times, end: Times) -> Times:
    """Returns how much of each time from ``begin`` to ``end`` some of the intervals covers."""
    # Each interval is cut to what those that began before it leave of it: then none intersect,
    # and the sum of their lengths up to a moment is how much of the time before it is covered.
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    reached = np.concatenate([starts[:1], ends[:-1]])
    starts = np.maximum(starts, reached)
    ends = np.maximum(ends, starts)
    before = np.concatenate([[0], np.cumsum(ends - starts)])

    def until(moment: Times) -> Times:
        at = np.searchsorted(starts, moment, "right") - 1
        inside = np.clip(moment - starts[at], 0, ends[at] - starts[at])
        return np.where(at < 0, 0, before[at] + inside)

    return until(end) - until(begin)


@dataclass(frozen=True, eq=False)
class Between:
    """Holds pairs of moments of ranks, as places among the pieces of ``Moments``."""

    begin: Rows
    begin_rest: Times
    end: Rows
    end_rest: Times


@dataclass(frozen=True, eq=False)
class Moments:
    """Holds the time of every rank cut wherever something begins or ends."""

    ranks: NDArray[np.int64]
    at_ns: Times
    """The moment of each cut, rank by rank, ascending."""
    first: Rows
    """The place of each rank's first cut, and the number of cuts."""
    state: NDArray[np.int8]
    """From each cut to the next; ``OTHER`` behind a rank's last."""
    communicates: Mask
    """Whether a message or a reduction goes on, behind a computation or not."""
    receives: Mask
    """Whether a receive goes on, whatever it waits for."""
    reduces: Mask
    """Whether a reduction goes on, behind a computation or not."""
    computes: Mask
    """Whether a computation's span covers it, a wait inside it too."""

    @classmethod
    def of(
        cls,
        spans: Spans,
        ranks: NDArray[np.int64],
        edges: Times,
        *,
        loads: Mask | None = None,
    ) -> Moments:
        """Cuts the time of ``ranks``, which ascend and hold all spans, from all ``edges`` on.

        ``loads`` tells which spans are the loading of data, of which a kind does not tell.
        """
        rank, begin, end, state, is_receive = _intervals(spans, loads)
        ends = np.concatenate([begin, end, edges])
        low, high = (int(ends.min()), int(ends.max())) if len(ends) else (0, 0)
        count = len(ranks)
        column = np.concatenate([np.searchsorted(ranks, rank), np.arange(count)])
        begin = np.append(begin, np.full(count, low))
        end = np.append(end, np.full(count, high))
        state = np.append(state, np.full(count, State.OTHER)).astype(np.int8)
        is_receive = np.append(is_receive, np.zeros(count, dtype=np.bool_))
        # A sweep: every begin adds 1 and every end takes 1 off, in order of rank and time, so that
        # a running sum tells at each cut how many spans of a state go on. The spans of nothing
        # over all the time make a rank's first and last cut those of all ranks.
        at = np.concatenate([begin, end])
        order = np.lexsort((at, np.tile(column, 2)))
        change = np.repeat(np.array([1, -1], dtype=np.int32), len(begin))[order]

        def goes_on(which: Mask) -> Mask:
            return np.cumsum(np.where(np.tile(which, 2)[order], change, 0), dtype=np.int32) > 0

        active = {each: goes_on(state == each) for each in State if (state == each).any()}
        # From the last named to the first, so that what counts first is written last.
        first_state = np.full(len(at), State.OTHER, dtype=np.int8)
        for each in sorted(active, reverse=True):
            first_state[active[each]] = each
        nothing = np.zeros(len(at), dtype=np.bool_)

        def any_of(*states: State) -> Mask:
            return np.asarray(np.any([active.get(each, nothing) for each in states], axis=0))

        return cls(
            ranks=ranks,
            at_ns=at[order],
            first=np.searchsorted(np.tile(column, 2)[order], np.arange(count + 1)),
            state=first_state,
            communicates=any_of(State.TRANSFER, State.SEND, State.REDUCE, State.FLIGHT),
            receives=goes_on(is_receive),
            reduces=any_of(State.REDUCE),
            computes=any_of(*COMPUTING),
        )

    def between(self, begin: Times, end: Times) -> Between:
        """Returns the places of moments given as a column per rank."""
        return Between(*self._places(begin), *self._places(end))

    def time(self, what: Mask, between: Between) -> Times:
        """Returns how much of the time between the moments ``what`` holds in."""
        sums = self._running(what)

        def until(place: Rows, rest: Times) -> Times:
            return sums[place] + rest * what[place]

        found = until(between.end, between.end_rest) - until(between.begin, between.begin_rest)
        return np.asarray(found, dtype=np.int64)

    def is_in(self, *states: State) -> Mask:
        """Tells of each piece whether the rank is in one of ``states``."""
        return np.isin(self.state, states)

    def _running(self, what: Mask) -> Times:
        """Returns how long ``what`` held before each cut; from one rank to the next it goes on."""
        return np.concatenate([[0], np.cumsum(np.where(what[:-1], self._length, 0))])

    @cached_property
    def _length(self) -> Times:
        length = np.diff(self.at_ns)
        # From one rank's last cut to the next one's first is no time.
        length[self.first[1:-1] - 1] = 0
        return length

    def _places(self, moment: Times) -> tuple[Rows, Times]:
        place = np.empty(moment.shape, dtype=np.int64)
        for column in range(len(self.ranks)):
            low, high = self.first[column], self.first[column + 1]
            found = np.searchsorted(self.at_ns[low:high], moment[:, column], "right")
            place[:, column] = low + found - 1
        return place, moment - self.at_ns[place]


def _intervals(
    spans: Spans, loads: Mask | None
) -> tuple[NDArray[np.int64], Times, Times, NDArray[np.int64], Mask]:
    """Returns rank, begin, end and state of all that goes on, and which are whole receives.

    Receives are cut at their send.
    """
    state = np.full(len(spans), -1, dtype=np.int64)
    for kind, each in _STATE_OF.items():
        state[spans.kind == kind] = each
    state[wait_rows(spans)] = State.EXCHANGE
    if loads is not None:
        state[loads] = State.DATA
    begin, end = spans.start_ns.copy(), spans.end_ns.copy()
    pairs = pair_messages(spans)
    # From here on the message was on its way; before, the receiver waited for the sender.
    sent = np.clip(spans.start_ns[pairs.sends], begin[pairs.receives], end[pairs.receives])
    late_rank, late_begin = spans.rank[pairs.receives], begin[pairs.receives].copy()
    begin[pairs.receives] = sent
    state[pairs.lone_receives] = State.LATE  # a peer that never recorded its send
    known = state >= 0
    unseen_rank, unseen_begin, unseen_end = _unseen_waits(spans)
    late = len(sent) + len(unseen_rank)
    whole = spans.where(np.isin(spans.kind, RECEIVES))
    states = [state[known], np.full(late, State.LATE), np.full(len(whole), State.OTHER)]
    return (
        np.concatenate([spans.rank[known], late_rank, unseen_rank, whole.rank]).astype(np.int64),
        np.concatenate([begin[known], late_begin, unseen_begin, whole.start_ns]),
        np.concatenate([end[known], sent, unseen_end, whole.end_ns]),
        np.concatenate(states),
        np.arange(known.sum() + late + len(whole)) >= known.sum() + late,
    )


def _unseen_waits(spans: Spans) -> tuple[NDArray[np.int32], Times, Times]:
    """Returns the waits that no receive tells of: a computation's, until its input was made."""
    before, after = whole_hand_overs(spans)
    computed = computed_from(spans, pair_messages(spans).receives)
    told = np.zeros(len(spans), dtype=bool)
    told[computed[computed >= 0]] = True
    before, after = before[~told[after]], after[~told[after]]
    made, begun = spans.end_ns[before], spans.start_ns[after]
    compute = np.flatnonzero(_is_compute(spans))
    order = compute[np.lexsort((spans.start_ns[compute], spans.rank[compute]))]
    # A rank was free from when its computation before ended; what is made later kept it waiting
    # from then until it was made, or until the computation began all the same.
    free = np.zeros(len(spans), dtype=np.int64)
    free[order[1:]] = spans.end_ns[order[:-1]]
    free = free[after]
    waits = (spans.rank[before] != spans.rank[after]) & (made > free)
    until = np.minimum(made, begun)
    waits &= until > free
    return spans.rank[after][waits], free[waits], until[waits]
