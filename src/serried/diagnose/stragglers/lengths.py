"""Unequal microbatches: sequences of varying length make some of them long, forwards and backwards.

    microbatch     0    1    2    3        forward and backward of one microbatch are long together,
    forward       ▇    ▇▇▇  ▇    ▇▇        on whatever rank: the work differs, and no device does
    backward      ▇▇   ▇▇▇▇▇▇ ▇▇  ▇▇▇▇

So it is told in Lin et al. (OSDI 2025, section 5.3): by the correlation of the two. A busy host
makes them long together as well: a stall of one moment, which the longest alone show, or a while in
which all that a rank computes is long, the next microbatch's forward too. Neither is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serried.action import ActionKind, Spans
from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.stragglers.cost import Costing
from serried.finding import said
from serried.trace.measure.moments import computing_ns
from serried.trace.model.pairs import packed
from serried.trace.model.trace import Trace

_LEAST_CORRELATION = 0.8
_LEAST_VARIATION = 0.05
"""By how much the middle half of lengths must vary over their median: of a few long ones a busy
host is to blame as well."""
_LEAST_COUNT = 12
_WORTH = 0.05
_LONGEST = 0.1
"""The share of microbatches, the longest, without which lengths must still vary together."""
_LEAST_WITHOUT_LONGEST = 0.6
_MOST_OF_NEXT = 0.5
"""What part of that a backward may have in common with the forward of the next microbatch."""


class _Together(NamedTuple):
    """Holds forwards and backwards of the same microbatches, by rank and then by time.

    Both are over the median of their rank and stage: what ranks differ by goes out.
    """

    forward: NDArray[np.float64]
    backward: NDArray[np.float64]
    rank: NDArray[np.int64]

    @property
    def variation(self) -> float:
        """How far the middle half goes, of forwards or backwards, whichever vary less."""
        quarters = [np.quantile(each, (0.25, 0.75)) for each in (self.forward, self.backward)]
        return float(min(high - low for low, high in quarters))

    @property
    def correlation(self) -> float:
        """How far forwards and backwards vary together."""
        return _correlation(self.forward, self.backward)

    def of_sequences(self) -> bool:
        """Tells whether the lengths are a microbatch's own, not those of a moment or a while."""
        longest = np.maximum(self.forward, self.backward)
        kept = longest <= np.quantile(longest, 1 - _LONGEST)
        rest = _Together(self.forward[kept], self.backward[kept], self.rank[kept])
        follows = rest.rank[1:] == rest.rank[:-1]
        next_ = _correlation(rest.backward[:-1][follows], rest.forward[1:][follows])
        together = rest.correlation
        return together >= _LEAST_WITHOUT_LONGEST and next_ <= _MOST_OF_NEXT * together


def length_causes(
    trace: Trace, steps: NDArray[np.int32], costing: Costing | None
) -> Iterator[Cause]:
    """Yields that microbatches take unequal times, where forwards and backwards do so together."""
    spans = trace.spans
    took = computing_ns(spans).astype(np.float64)
    counted = np.isin(spans.step, steps) & (took > 0)
    pairs = _together(spans, took, counted)
    forward = pairs.forward
    if len(forward) < _LEAST_COUNT or pairs.variation < _LEAST_VARIATION:
        return
    if pairs.correlation < _LEAST_CORRELATION or not pairs.of_sequences():
        return
    cost = costing.with_even_microbatches() if costing is not None else None
    if cost is None or cost < _WORTH:
        return
    yield Cause(
        CauseClass.STRAGGLER,
        "sequence_length",
        (),
        said(
            "microbatches take unequal times, which costs {cost:.1%} of each step: their sequences "
            "differ in length, and no rank is at fault",
            cost=cost,
        ),
        confidence=0.8,
        chain=(
            said(
                "forward and backward of a microbatch are long together (correlation {correlation:"
                ".2f}); the longest tenth takes {most:.1f} times the median",
                correlation=pairs.correlation,
                most=float(np.quantile(forward, 0.9) / np.median(forward)),
            ),
        ),
        cures=(
            said(
                "give microbatches and ranks equal work: sort or pack sequences by length, and "
                "balance by the square of the length where attention dominates"
            ),
        ),
        cost=cost,
    )


def _together(spans: Spans, took: NDArray[np.float64], counted: NDArray[np.bool_]) -> _Together:
    """Returns forwards and backwards of the same microbatches, over their rank's median step."""
    found = []
    for kinds in ((ActionKind.F,), (ActionKind.B, ActionKind.I)):
        rows = np.flatnonzero(counted & np.isin(spans.kind, kinds))
        columns = (spans.rank, spans.stage, spans.step, spans.microbatch)
        found.append((rows, [column[rows].astype(np.int64) for column in columns]))
    (first, one), (second, two) = found
    both = packed([np.concatenate(pair) for pair in zip(one, two, strict=True)])
    _, a, b = np.intersect1d(both[: len(first)], both[len(first) :], return_indices=True)
    if not len(a):
        return _Together(np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64))
    in_order = np.lexsort((spans.start_ns[first[a]], one[0][a]))
    a, b = a[in_order], b[in_order]
    of = packed([one[0][a], one[1][a]])
    return _Together(_over_median(took[first[a]], of), _over_median(took[second[b]], of), one[0][a])


def _correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Returns how far two series vary together; 0 where one of them does not vary."""
    if len(one) < 2 or not one.std() or not other.std():
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


def _over_median(took: NDArray[np.float64], of: NDArray[np.int64]) -> NDArray[np.float64]:
    """Returns times over the median of their own rank and stage: what ranks differ by goes out."""
    kinds, at = np.unique(of, return_inverse=True)
    order = np.argsort(at, kind="stable")
    parts = np.split(took[order], np.cumsum(np.bincount(at, minlength=len(kinds)))[:-1])
    medians = np.array([np.median(part) for part in parts])
    return np.asarray(took / medians[at])
